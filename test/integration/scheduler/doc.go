// Package scheduler runs the scheduler and the load watcher against control planes.
package scheduler
