package apiproxy

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// TCPProxy forwards connections to one server.
type TCPProxy struct {
	address, server string

	mu       sync.Mutex
	listener net.Listener // nil while disconnected
	open     map[net.Conn]struct{}
	// lost is shared by all connections of one period: when set, their data is dropped.
	lost    *atomic.Bool
	running sync.WaitGroup
}

// StartTCP starts a proxy for a server, host:port, that runs until the end of the test. No outgoing connection takes its port
// while it is disconnected.
func StartTCP(t testing.TB, server string) *TCPProxy {
	t.Helper()
	p := &TCPProxy{
		address: fmt.Sprintf("127.0.0.1:%d", program.FreePort(t)),
		server:  server,
		open:    map[net.Conn]struct{}{},
		lost:    &atomic.Bool{},
	}
	p.Reconnect(t)
	t.Cleanup(func() {
		p.Disconnect()
		p.running.Wait()
	})
	return p
}

// Address returns the host:port of the proxy, which stays the same after Reconnect.
func (p *TCPProxy) Address() string { return p.address }

// Disconnect closes all connections and refuses new connections.
func (p *TCPProxy) Disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
	}
	for connection := range p.open {
		_ = connection.Close()
	}
	p.listener = nil
}

// Reconnect accepts connections again after Disconnect.
func (p *TCPProxy) Reconnect(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", p.address)
	must.Succeed(t, err)
	p.mu.Lock()
	p.listener, p.address = listener, listener.Addr().String()
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.forward(listener, client) })
		}
	})
}

// DropData drops all data from now on without closing connections.
func (p *TCPProxy) DropData() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost.Store(true)
}

// ForwardData forwards the data of new connections again after DropData. Existing connections stay
// silent, as behind a router that has lost its connection table.
func (p *TCPProxy) ForwardData() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = &atomic.Bool{}
}

// forward copies data between a client and the server until one of them closes its connection.
func (p *TCPProxy) forward(listener net.Listener, client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	if p.listener != listener { // disconnected while dialing
		p.mu.Unlock()
		_, _ = client.Close(), server.Close()
		return
	}
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	lost := p.lost
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(lossyWriter{pair[0], lost}, pair[1])
			_ = pair[0].Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// lossyWriter drops all data once lost is set.
type lossyWriter struct {
	io.Writer
	lost *atomic.Bool
}

// Write implements io.Writer.
func (w lossyWriter) Write(b []byte) (int, error) {
	if w.lost.Load() {
		return len(b), nil
	}
	return w.Writer.Write(b)
}
