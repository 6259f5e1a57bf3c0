package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// restartPause is the time after which a replica that has exited is started again.
const restartPause = time.Second

// replica is a controller behind a proxy of its own, which is started again when it exits.
type replica struct {
	name  string
	proxy *apiproxy.Proxy
	log   program.Output
	args  []string

	mu      sync.Mutex
	process *exec.Cmd
	starts  []time.Time
	stopped bool // no further restart
}

// startReplica starts a replica, which runs until the end of the test.
func startReplica(t *testing.T, cp *controlplane.ControlPlane, name string) *replica {
	t.Helper()
	config, err := cp.Config(name, "system:masters")
	must.Succeed(t, err)
	r := &replica{name: name, proxy: apiproxy.Start(t, config)}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, r.proxy.WriteKubeconfig(kubeconfig))
	r.args = []string{
		program.Path(t, "plimsoll-controller"), "--kubeconfig=" + kubeconfig, "--placeholder-namespace=" + podNamespace, "--adopt=all",
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r.run() {
		}
	}()
	t.Cleanup(func() {
		r.mu.Lock()
		r.stopped = true
		r.mu.Unlock()
		r.signal(syscall.SIGKILL)
		<-done
	})
	return r
}

// run runs the controller until it exits. It reports whether to start it again.
func (r *replica) run() bool {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return false
	}
	cmd := exec.Command(r.args[0], r.args[1:]...) //nolint:gosec // the program that the test has built
	cmd.Stderr = &r.log
	err := cmd.Start()
	r.process, r.starts = cmd, append(r.starts, time.Now())
	r.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	fmt.Fprintf(&r.log, "the controller has exited: %v\n", err)
	timer := time.NewTimer(restartPause)
	defer timer.Stop()
	<-timer.C
	return true
}

// signal sends a signal to the controller, if it runs.
func (r *replica) signal(signal syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil && r.process.Process != nil {
		_ = r.process.Process.Signal(signal)
	}
}

// writes returns the writes of the replica.
func (r *replica) writes() replicaLog {
	r.mu.Lock()
	defer r.mu.Unlock()
	return replicaLog{r.name, slices.Clip(r.starts), r.proxy.Writes()}
}

// lastLease returns the time of the last lease write.
func (r *replica) lastLease() (last time.Time) {
	for _, w := range r.proxy.Writes() {
		if isLease(w) && w.Succeeded() && w.Answered.After(last) {
			last = w.Answered
		}
	}
	return last
}

// tail returns the last lines of the log.
func (r *replica) tail() string {
	lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
	return r.name + ":\n" + strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// memory returns the resident memory of the controller, such as "51200 kB".
func (r *replica) memory() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil || r.process.Process == nil {
		return "unknown"
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Process.Pid))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
