package compare

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestMain runs the processes of the tests: they are this program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve":
			if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "break":
			fmt.Fprintln(os.Stderr, "simulated failure")
			os.Exit(7)
		}
	}
	os.Exit(m.Run())
}

// processes returns the command of a process with an argument.
func processes(argument string) func(context.Context) *exec.Cmd {
	return func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], argument) }
}

// jobs returns two jobs for each profile.
func jobs(t *testing.T, spec string, names ...string) []Job {
	t.Helper()
	var list []Job
	for _, name := range names {
		profile, err := engine.ReadConfig(name)
		must.Succeed(t, err)
		for seed := range uint64(2) {
			list = append(list, Job{
				Source:  generate.Source{Source: recording.Source{Tail: 600}, Generate: spec, Usage: generate.Bursts},
				Profile: profile,
				Metrics: result.Metrics{IntervalSeconds: 60, DelaySeconds: 60, WindowSeconds: 900}, Seed: seed,
			})
		}
	}
	return list
}

// TestProcesses verifies that runs in separate processes equal runs in this process, in the order
// of the jobs.
func TestProcesses(t *testing.T) {
	list := jobs(t, "nodes=10,pods=200,over=600,life=300", "default", "low-risk")
	runs, err := Pool{Command: processes("serve"), Processes: 3}.Run(t.Context(), list)
	must.Succeed(t, err)
	for i, job := range list {
		want, err := job.Run(t.Context(), nil)
		must.Succeed(t, err)
		if diff := cmp.Diff(&want, runs[i]); diff != "" {
			t.Errorf("job %d: %s", i, diff)
		}
	}
}

// TestInterrupted verifies that an interruption ends the current run, and that later
// runs are not started.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// One pod per second: the run is not complete when it is interrupted.
	list := jobs(t, "nodes=200,pods=20000,over=20000", "default")
	pool := Pool{Command: processes("serve"), Processes: 1, Progress: func(job int, done, total int64) {
		if job != 0 || done <= 0 || done >= total {
			t.Errorf("job %d: progress %d of %d", job, done, total)
		}
		cancel()
	}}
	runs, err := pool.Run(ctx, list)
	must.Succeed(t, err)
	if run := runs[0]; run == nil || !run.Interrupted || run.Scheduled == 0 || run.NotArrived == 0 {
		t.Errorf("%+v, want an interrupted run", run)
	}
	if runs[1] != nil {
		t.Errorf("%+v, want no second run", runs[1])
	}
}

func TestFailures(t *testing.T) {
	list := jobs(t, "nodes=1", "default") // pods are required
	if _, err := (Pool{Command: processes("serve")}).Run(t.Context(), list); err == nil ||
		!strings.Contains(err.Error(), "profile default, seed 0: --generate: nodes, pods: required") {
		t.Errorf("%v, want the error of --generate", err)
	}
	if _, err := (Pool{Command: processes("break")}).Run(t.Context(), list); err == nil ||
		!strings.Contains(err.Error(), "exit status 7) simulated failure") {
		t.Errorf("%v, want the exit status", err)
	}
	missing := func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "/missing") }
	if _, err := (Pool{Command: missing}).Run(t.Context(), list); err == nil ||
		!strings.Contains(err.Error(), "starting the process of a run") {
		t.Errorf("%v, want a start error", err)
	}
}

// TestReasonOf verifies that a crash is named by its first line, not by the last line of its stack.
func TestReasonOf(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"warning\nout of disk\n\n": "out of disk",
		"warning\npanic: index out of range [3]\n\ngoroutine 1 [running]:\n\tmain.go:13 +0x2f\n": "panic: index out of range [3]",
		"fatal error: all goroutines are asleep\n\tmain.go:13\n":                                 "fatal error: all goroutines are asleep",
	} {
		if got := reasonOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
