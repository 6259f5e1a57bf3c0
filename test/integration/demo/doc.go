// Package demo runs the demo.
package demo
