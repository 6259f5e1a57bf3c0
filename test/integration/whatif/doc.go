// Package whatif runs the command line tool against control planes.
package whatif
