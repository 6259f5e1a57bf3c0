//go:build unix

package whatif

import (
	"runtime"
	"syscall"
)

// lowestPriority is the nice value of a process that yields to all others.
const lowestPriority = 19

// lowerPriority gives this process the lowest priority, and one CPU. On Linux, priorities belong to threads: a process group of its own
// selects all threads of this process.
func lowerPriority() error {
	runtime.GOMAXPROCS(1)
	if err := syscall.Setpgid(0, 0); err != nil && syscall.Getpgrp() != syscall.Getpid() {
		return err
	}
	return syscall.Setpriority(syscall.PRIO_PGRP, 0, lowestPriority)
}
