//go:build !linux

package subprocess

import "syscall"

// endWithParent returns nil: this system cannot terminate a process when its parent exits.
func endWithParent() *syscall.SysProcAttr { return nil }
