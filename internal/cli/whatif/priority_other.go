//go:build !unix

package whatif

import "runtime"

// lowerPriority gives this process one CPU.
func lowerPriority() error {
	runtime.GOMAXPROCS(1)
	return nil
}
