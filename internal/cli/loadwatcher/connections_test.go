package loadwatcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// TestConnectionsAreLimited checks that idle connections give way to new ones and that open requests do
// not.
func TestConnectionsAreLimited(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP": (*httptest.Server).Start, "TLS": (*httptest.Server).StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			tracked := &connections{limit: 3, open: map[net.Conn]time.Time{}}
			block := make(chan struct{})
			unblock := sync.OnceFunc(func() { close(block) })
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/blocked" {
					<-block
				}
				fmt.Fprint(w, "ok")
			}))
			server.Config.ConnState = tracked.track
			start(server)
			defer server.Close()
			defer unblock() // else Close waits for ever if the test fails
			idle := func() (n int) {
				tracked.mu.Lock()
				defer tracked.mu.Unlock()
				for _, since := range tracked.open {
					if !since.IsZero() {
						n++
					}
				}
				return n
			}
			// get uses a connection of its own for each request, which stays open.
			get := func(path string) error {
				client := server.Client()
				transport := client.Transport.(*http.Transport).Clone()
				t.Cleanup(transport.CloseIdleConnections)
				response, err := (&http.Client{Transport: transport}).Get(server.URL + path)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, response.Body) // a connection whose response is not read is not reused
				return errors.Join(err, response.Body.Close())
			}
			for i := range 10 {
				if err := get("/"); err != nil {
					t.Fatal(err)
				}
				// The newest one, too, must be idle before the next one is opened.
				eventually.True(t, "not as many idle connections as the limit allows", nil, func(context.Context) (bool, error) {
					return idle() == min(i+1, tracked.limit), nil
				})
			}
			blocked := make(chan error, tracked.limit)
			for range tracked.limit {
				go func() { blocked <- get("/blocked") }()
			}
			eventually.True(t, "the blocked requests do not replace the idle connections", nil, func(context.Context) (bool, error) {
				tracked.mu.Lock()
				defer tracked.mu.Unlock()
				return len(tracked.open) == tracked.limit, nil
			})
			eventually.True(t, "connections are idle", nil, func(context.Context) (bool, error) { return idle() == 0, nil })
			if err := get("/"); err == nil {
				t.Error("a connection beyond the limit is served")
			}
			unblock()
			for range tracked.limit {
				if err := <-blocked; err != nil {
					t.Errorf("an open request was aborted: %v", err)
				}
			}
			eventually.True(t, "connections are not idle after their requests", nil, func(context.Context) (bool, error) {
				return idle() == tracked.limit, nil
			})
			if err := get("/"); err != nil {
				t.Errorf("after the requests: %v", err)
			}
		})
	}
}

// TestSendBuffer checks that a client that does not read holds little data of the kernel.
func TestSendBuffer(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := smallBuffers{plain}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	fmt.Fprintln(server, "hello")
	if line, err := bufio.NewReader(client).ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	raw, err := server.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// The kernel doubles the value for its own structures.
	if size := sendBufferSize(t, raw); size > 2*sendBuffer {
		t.Errorf("send buffer of %d bytes, want at most %d", size, 2*sendBuffer)
	}
}

// sendBufferSize returns the size of the send buffer of a socket.
func sendBufferSize(t *testing.T, conn syscall.RawConn) (size int) {
	t.Helper()
	var optionErr error
	err := conn.Control(func(fd uintptr) {
		size, optionErr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	})
	if err != nil || optionErr != nil {
		t.Fatal(err, optionErr)
	}
	return size
}
