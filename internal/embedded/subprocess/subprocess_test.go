package subprocess

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestProcess expects that a program has exited when Stop returns, also when called twice, and that Exited
// is closed when a program exits by itself. A running program has a peak memory.
func TestProcess(t *testing.T) {
	long, err := Start(exec.Command("sleep", "1000"))
	must.Succeed(t, err)
	select {
	case <-long.Exited():
		t.Error("exited before Stop")
	default:
	}
	if peak := long.PeakMemory(); runtime.GOOS == "linux" && (peak <= 0 || peak > 1<<30) {
		t.Errorf("%d bytes of memory, want at most 1 GiB", peak)
	}
	for range 2 {
		long.Stop()
	}
	short, err := Start(exec.Command("true"))
	must.Succeed(t, err)
	select {
	case <-short.Exited():
	case <-time.After(30 * time.Second):
		t.Error("Exited is not closed")
	}
	if err := short.Err(); err != nil {
		t.Error(err)
	}
	if long.Err() == nil {
		t.Error("no error of a program that a signal has ended")
	}
	if _, err := Start(exec.Command("/nowhere/at/all")); err == nil {
		t.Error("started a program that does not exist")
	}
}
