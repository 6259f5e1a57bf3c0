package loadwatcher

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxConnections is the largest number of open connections.
	maxConnections = 1000
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

// connections limits the number of open connections of an http.Server. Beyond the limit, the connection
// that has been idle for the longest time is closed; the new one if none is idle.
type connections struct {
	limit int

	mu sync.Mutex
	// open has the open connections with the time since which they are idle, zero if they are not.
	open map[net.Conn]time.Time
}

// track is the hook http.Server.ConnState.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = time.Time{}
		if len(c.open) > c.limit {
			c.closeOne(conn)
		}
	case http.StateActive:
		if _, ok := c.open[conn]; ok {
			c.open[conn] = time.Time{}
		}
	case http.StateIdle:
		if _, ok := c.open[conn]; ok {
			c.open[conn] = time.Now()
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// closeOne closes the connection that has been idle for the longest time, or newest.
func (c *connections) closeOne(newest net.Conn) {
	victim, since := newest, time.Time{}
	for conn, idle := range c.open {
		if !idle.IsZero() && (since.IsZero() || idle.Before(since)) {
			victim, since = conn, idle
		}
	}
	delete(c.open, victim)
	if secure, ok := victim.(*tls.Conn); ok {
		victim = secure.NetConn() // closing the TLS connection would wait for the client
	}
	_ = victim.Close() // it is also closed by its client
}
