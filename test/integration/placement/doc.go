// Package placement runs the controller of placements and agents against control planes.
package placement
