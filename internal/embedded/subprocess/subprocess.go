// Package subprocess runs programs that end with this one.
package subprocess

import (
	"os/exec"
	"syscall"
	"time"
)

// patience is how long a program may take to end when it is asked to.
const patience = 10 * time.Second

// Process is a running program.
type Process struct {
	command *exec.Cmd
	exited  chan struct{}
}

// Start starts a program.
func Start(command *exec.Cmd) (*Process, error) {
	// It ends with this process, even where that is killed.
	command.SysProcAttr = endWithParent()
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &Process{command: command, exited: make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Exited is closed when the program has ended, asked to or not.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop ends the program, and returns when it has ended. It may be called more
// than once.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
	}
	<-p.exited
}
