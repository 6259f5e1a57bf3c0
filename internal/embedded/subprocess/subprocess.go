// Package subprocess runs programs that exit with this process.
package subprocess

import (
	"os/exec"
	"syscall"
	"time"
)

// stopTimeout is how long a program may take to exit after SIGTERM.
const stopTimeout = 10 * time.Second

// Process is a running program.
type Process struct {
	command *exec.Cmd
	exited  chan struct{}
}

// Start starts a program.
func Start(command *exec.Cmd) (*Process, error) {
	// The program exits with this process, even if this process is killed.
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

// Exited returns a channel that is closed when the program has exited.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop stops the program and waits until it has exited. It may be called more than once.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		_ = p.command.Process.Kill()
	}
	<-p.exited
}
