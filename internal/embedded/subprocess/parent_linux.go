package subprocess

import "syscall"

// endWithParent makes a process end when the one that started it does.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
