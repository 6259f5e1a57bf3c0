package subprocess

import (
	"fmt"
	"net"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

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
