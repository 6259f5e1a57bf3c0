// Package subprocess runs programs that exit with this process.
package subprocess

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
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
	err     error // set when exited is closed
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
		p.err = command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Exited returns a channel that is closed when the program has exited.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err waits until the program has exited, and returns an error unless its exit code is 0.
func (p *Process) Err() error {
	<-p.exited
	return p.err
}

// ID returns the process ID.
func (p *Process) ID() int { return p.command.Process.Pid }

// Signal sends a signal. It returns an error if the program has exited.
func (p *Process) Signal(signal os.Signal) error { return p.command.Process.Signal(signal) }

// Stop stops the program and waits until it has exited. It may be called more than once.
func (p *Process) Stop() {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.Kill()
	}
}

// Kill kills the program, unless it has exited, and waits for it.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}

// The bounds of FreePort are below the ephemeral ports of Linux (32768 and more by default): an outgoing connection, or a
// listener without a port, could take a free ephemeral port before the program listens on it.
const (
	firstPort = 20_000
	lastPort  = 31_999
)

// FreePort returns a TCP port of 127.0.0.1, from 20000 to 31999, that was free at the time of the call, for a program that cannot
// choose one itself.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		var listener net.Listener
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("found no free port from %d to %d: %w", firstPort, lastPort, err)
}
