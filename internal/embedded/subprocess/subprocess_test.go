package subprocess

import (
	"fmt"
	"net"
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

// TestFreePort expects ports that no outgoing connection takes, and no port that is in use.
func TestFreePort(t *testing.T) {
	used := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		must.Succeed(t, err)
		if port < firstPort || port > lastPort || lastPort >= 32768 || used[port] {
			t.Errorf("port %d, want a free one from %d to %d", port, firstPort, lastPort)
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // another program has taken it
		}
		defer listener.Close()
		used[port] = true
	}
	if len(used) == 0 {
		t.Error("no port can be listened on")
	}
}
