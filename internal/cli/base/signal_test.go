package base

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// childVariable makes TestMain run a program that ends by its context, or a program that ignores its context.
const childVariable = "PLIMSOLL_TEST_SIGNAL"

// TestMain runs the programs of TestSignalContext.
func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "graceful":
		ctx, stop := SignalContext("child", ExitFailure)
		fmt.Println("ready")
		<-ctx.Done()
		stop()
		os.Exit(7)
	default:
		_, stop := SignalContext("child", ExitFailure)
		defer stop()
		fmt.Println("ready")
		for n := uint64(0); ; n++ { // computes and never looks at its context
			if n == 1<<63 {
				fmt.Println(n)
			}
		}
	}
}

// TestSignalContext checks that a program ends by its context, and that a program that ignores its
// context is terminated after the grace period, or at once by a second signal.
func TestSignalContext(t *testing.T) {
	for name, tc := range map[string]struct {
		child         string
		signals, code int
		atLeast       time.Duration
		stderr        string
	}{
		"graceful":      {"graceful", 1, 7, 0, ""},
		"computing":     {"computing", 1, ExitFailure, gracePeriod, "child: terminated: it has not ended within 900ms of a signal\n"},
		"second signal": {"computing", 2, ExitFailure, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := os.Executable()
			must.Succeed(t, err)
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), childVariable+"="+tc.child)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			must.Succeed(t, err)
			must.Succeed(t, cmd.Start())
			if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			start := time.Now()
			must.Succeed(t, cmd.Process.Signal(syscall.SIGTERM))
			for range tc.signals - 1 {
				_ = cmd.Process.Signal(os.Interrupt) // the process may have ended
			}
			_ = cmd.Wait() // the exit code is checked below
			if code := cmd.ProcessState.ExitCode(); code != tc.code || stderr.String() != tc.stderr {
				t.Errorf("exit code %d, %q, want %d, %q", code, stderr.String(), tc.code, tc.stderr)
			}
			if took := time.Since(start); took < tc.atLeast {
				t.Errorf("ended after %s, want at least %s", took, tc.atLeast)
			}
		})
	}
}
