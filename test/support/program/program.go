// Package program builds and runs programs for tests.
package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// stopTimeout is how long a process may take to exit after SIGTERM.
const stopTimeout = 30 * time.Second

// Run runs a program to its end.
func Run(t testing.TB, path string, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	return RunCommand(t, exec.CommandContext(t.Context(), path, args...))
}

// RunCommand runs a command to its end. The command must not have an output yet.
func RunCommand(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, exitCode int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Output collects the output of a process and can be read while the process writes it. The zero
// value is ready to use.
type Output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// Process is a running program. Its String method returns the standard output and the standard
// error of the program so far.
type Process struct {
	Output
	*subprocess.Process

	name string
}

// Start starts a program, which is killed at the end of the test.
func Start(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(path, args...)
	p := &Process{name: cmd.Args[0]}
	cmd.Stdout, cmd.Stderr = &p.Output, &p.Output
	var err error
	if p.Process, err = subprocess.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// Pause stops the process as SIGSTOP does, until Resume is called.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	must.Succeed(t, p.Signal(syscall.SIGSTOP))
}

// Resume continues a paused process.
func (p *Process) Resume(t testing.TB) {
	t.Helper()
	must.Succeed(t, p.Signal(syscall.SIGCONT))
}

// Stop sends SIGTERM and fails the test unless the process then exits with code 0.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.Exited():
		if err := p.Err(); err != nil {
			t.Errorf("%s exited with %v\n%s", p.name, err, p)
		}
	case <-time.After(stopTimeout):
		t.Errorf("%s did not exit within %s of SIGTERM\n%s", p.name, stopTimeout, p)
	}
}

// FreePort returns a TCP port of 127.0.0.1 that was free at the time of the call and that no outgoing connection takes.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := subprocess.FreePort()
	must.Succeed(t, err)
	return port
}

// PeakMemory returns the largest resident memory of the running program so far in bytes, or 0 if it is unknown.
func (p *Process) PeakMemory() int64 { return measure.PeakMemory(p.ID()) }

// CPUTime returns the CPU time that the process has used so far, in steps of 10 ms.
func (p *Process) CPUTime(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.ID()))
	must.Succeed(t, err)
	// The 14th and 15th fields are the time as a user and in the kernel; the second one is the name in parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks time.Duration
	for _, field := range fields[14-3 : 16-3] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", stat, err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// Get returns the body of the answer to a request. Another status than 200 is an error.
func Get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), err
}

// Usage has the resident memory in bytes and the number of goroutines of a program.
type Usage struct{ Memory, Goroutines float64 }

// String returns the usage in the form "51 MiB, 93 goroutines".
func (u Usage) String() string {
	return fmt.Sprintf("%.0f MiB, %.0f goroutines", u.Memory/(1<<20), u.Goroutines)
}

// ReadUsage reads the usage of a program from its metrics.
func ReadUsage(ctx context.Context, client *http.Client, url string) (u Usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return u, err
	}
	response, err := client.Do(request)
	if err != nil {
		return u, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case name == "process_resident_memory_bytes":
			u.Memory = value
		case name == "go_goroutines":
			u.Goroutines = value
		}
	}
	if u.Memory == 0 || u.Goroutines == 0 {
		return u, fmt.Errorf("%s: status %s, no metrics of the process", url, response.Status)
	}
	return u, lines.Err()
}
