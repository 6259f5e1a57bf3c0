package subprocess

import (
	"os/exec"
	"testing"
	"time"
)

// TestProcess expects that a program has exited when Stop returns, also when called twice, and that Exited
// is closed when a program exits by itself.
func TestProcess(t *testing.T) {
	long, err := Start(exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-long.Exited():
		t.Error("exited before Stop")
	default:
	}
	for range 2 {
		long.Stop()
	}
	short, err := Start(exec.Command("true"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-short.Exited():
	case <-time.After(30 * time.Second):
		t.Error("Exited is not closed")
	}
	if _, err := Start(exec.Command("/nowhere/at/all")); err == nil {
		t.Error("started a program that does not exist")
	}
}
