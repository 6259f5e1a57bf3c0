// Package slack runs the controller of slack policies against control planes.
package slack
