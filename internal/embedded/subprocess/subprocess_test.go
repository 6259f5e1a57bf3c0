package subprocess

import (
	"os/exec"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestProcess expects that a program has exited when Stop returns, also when called twice, and that Exited
// is closed when a program exits by itself.
func TestProcess(t *testing.T) {
	long, err := Start(exec.Command("sleep", "1000"))
	must.Succeed(t, err)
	select {
	case <-long.Exited():
		t.Error("exited before Stop")
	default:
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
