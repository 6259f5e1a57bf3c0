package loadwatcher

import (
	"net"
	"time"
)

const (
	// maxConnections is the largest number of open connections. Further connections wait in the kernel until a connection is closed.
	maxConnections = 1000
	// idleTimeout is the longest time between two requests on a connection. With the other timeouts of the server, it bounds
	// how long a client holds a connection without a complete request.
	idleTimeout = 10 * time.Second
	// sendBuffer is the size in bytes of the kernel's buffer for a connection. The kernel would buffer up
	// to 4 MiB for each client that reads slowly, which counts as memory of the container.
	sendBuffer = 128 << 10
)

// smallBuffers is a listener whose connections have send buffers of a fixed size.
type smallBuffers struct{ net.Listener }

// Accept implements net.Listener.
func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // the default is larger but works
	}
	return conn, err
}
