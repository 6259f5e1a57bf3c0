package subprocess

import "syscall"

// endWithParent returns the attributes of a process that is terminated when its parent exits.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
