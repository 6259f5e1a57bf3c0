package loadwatcher

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// TestConnectionsAreLimited opens as many connections as the limit allows and leaves them idle: a further connection is answered,
// but not before the first connection is closed.
func TestConnectionsAreLimited(t *testing.T) {
	feed := filepath.Join(t.TempDir(), "load.json")
	faultyFeed(t, feed, 0)
	address := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	t.Setenv(asProgram, "1")
	watcher := program.Start(t, os.Args[0], "--provider=File", "--address="+feed, "--listen="+address)
	eventually.True(t, "the load is not served", watcher, func(ctx context.Context) (bool, error) {
		return status(ctx, address, "/readyz") == http.StatusOK, nil
	})
	http.DefaultClient.CloseIdleConnections()
	ask := func() {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		must.Succeed(t, err)
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
			t.Fatalf("%q, %v\n%s", line, err, watcher)
		}
	}
	ask()
	first := time.Now()
	for range maxConnections {
		ask()
	}
	if waited := time.Since(first); waited < idleTimeout-time.Second {
		t.Errorf("%d connections were answered within %s, want at most %d open ones", maxConnections+1, waited, maxConnections)
	}
}

// TestSendBuffer checks that the kernel holds little data for a client that does not read.
func TestSendBuffer(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	listener := smallBuffers{plain}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	must.Succeed(t, err)
	defer client.Close()
	server, err := listener.Accept()
	must.Succeed(t, err)
	defer server.Close()
	fmt.Fprintln(server, "hello")
	if line, err := bufio.NewReader(client).ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	raw, err := server.(*net.TCPConn).SyscallConn()
	must.Succeed(t, err)
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
