// Package whatif runs the command line tool against control planes, and compares recordings with what real servers measured.
package whatif
