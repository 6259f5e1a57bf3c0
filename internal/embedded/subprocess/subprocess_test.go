package subprocess

import (
	"os/exec"
	"testing"
	"time"
)

// A program that is asked to end has ended when Stop returns, asked once or
// twice; one that ends by itself is told.
func TestProcess(t *testing.T) {
	long, err := Start(exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-long.Exited():
		t.Error("ended before it was asked to")
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
		t.Error("nobody was told that it ended")
	}
	if _, err := Start(exec.Command("/nowhere/at/all")); err == nil {
		t.Error("started what is not there")
	}
}
