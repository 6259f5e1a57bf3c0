//go:build !linux

package subprocess

import "syscall"

// endWithParent makes a process end when the one that started it does, where
// the system has a way; here it has none.
func endWithParent() *syscall.SysProcAttr { return nil }
