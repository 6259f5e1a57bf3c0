package subprocess

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The bounds of FreePort are below the ephemeral ports of Linux (32768 and more by default): an outgoing connection, or a
// listener without a port, could take a free ephemeral port before the program listens on it.
const (
	firstPort = 20_000
	lastPort  = 31_999
)

// FreePort returns a TCP port of 127.0.0.1, from 20000 to 31999, that was free at the time of the call, for a program that cannot
// choose one itself.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		var listener net.Listener
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("found no free port from %d to %d: %w", firstPort, lastPort, err)
}
