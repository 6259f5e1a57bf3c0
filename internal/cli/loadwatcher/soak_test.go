package loadwatcher

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// soak is the duration of TestSoak.
var soak = flag.Duration("soak", 6*time.Second, "duration of TestSoak")

// soakClients is the number of clients of TestSoak.
const soakClients = 8

// TestSoak checks that memory and goroutines of load-watcher do not grow while its source fails in all ways
// and its clients come, read slowly and disappear. It runs longer with -args -soak=30m.
func TestSoak(t *testing.T) {
	feed := filepath.Join(t.TempDir(), "load.json")
	faultyFeed(t, feed, 0)
	address := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	t.Setenv(asProgram, "1")
	watcher := program.Start(t, os.Args[0], "--provider=File", "--address="+feed, "--poll-interval=1s", "--max-age=3s", "--listen="+address)
	eventually.True(t, "the load is not served", watcher, func(ctx context.Context) (bool, error) {
		return status(ctx, address, "/readyz") == http.StatusOK, nil
	})
	before := gauges(t, address)
	ctx, stop := context.WithTimeout(t.Context(), *soak)
	defer stop()
	var clients sync.WaitGroup
	var requests, unanswered atomic.Int64
	for i := range soakClients {
		clients.Go(func() {
			for ctx.Err() == nil {
				requests.Add(1)
				if err := soakRequest(ctx, t, address, i); err != nil && ctx.Err() == nil {
					unanswered.Add(1)
					t.Log(err)
				}
			}
		})
	}
	// A quarter of the time warms up; the memory of the rest must not exceed it by much.
	var warm, peak float64
	step := time.NewTicker(*soak / 20)
	defer step.Stop()
	for n := 1; ctx.Err() == nil; n++ {
		faultyFeed(t, feed, n)
		select {
		case <-step.C:
		case <-ctx.Done():
			continue
		}
		now := gauges(t, address)
		t.Logf("%s: %s", time.Duration(n)*(*soak/20), now)
		if peak = max(peak, now.Memory); n <= 5 {
			warm = peak
		}
	}
	clients.Wait()
	// When a busy machine stops for longer than the server waits for a request, each client loses the request that it sends.
	if count := unanswered.Load(); count > soakClients+requests.Load()/10_000 {
		t.Errorf("%d of %d requests were not answered, want at most one in 10,000 and %d", count, requests.Load(), soakClients)
	}
	http.DefaultClient.CloseIdleConnections()
	eventually.True(t, "goroutines are left behind", watcher, func(context.Context) (bool, error) {
		return gauges(t, address).Goroutines <= before.Goroutines+5, nil
	})
	if peak > 1.5*warm+50<<20 {
		t.Errorf("the memory grew from %.0f MiB to %.0f MiB", warm/(1<<20), peak/(1<<20))
	}
	select {
	case <-watcher.Exited():
		t.Errorf("load-watcher has exited\n%s", watcher)
	default:
	}
	faultyFeed(t, feed, 0)
	eventually.True(t, "the load is not served after the faults", watcher, func(ctx context.Context) (bool, error) {
		return status(ctx, address, "/readyz") == http.StatusOK, nil
	})
}

// faultyFeed replaces the file with load, mostly valid. Version 0 is valid.
func faultyFeed(t *testing.T, path string, version int) {
	t.Helper()
	node := `"node-%d":{"metrics":[{"type":"CPU","operator":"AVG","value":%d}]}`
	var nodes []string
	for i := range 2000 {
		nodes = append(nodes, fmt.Sprintf(node, i, (i+version)%100))
	}
	content := fmt.Sprintf(`{"timestamp":%d,"data":{"NodeMetricsMap":{%s}}}`, time.Now().Unix(), strings.Join(nodes, ","))
	switch version % 10 {
	case 2:
		content = content[:len(content)/2]
	case 4:
		content = "\x1b[2J"
	case 6:
		content = strings.Replace(content, `"metrics":[`, `"metrics":[`+strings.Repeat("{},", 100_000), 1)
	case 8:
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		return
	}
	replace(t, path, content)
}

// soakRequest sends one request of a kind. It returns an error if a request that waits for an answer gets no answer.
func soakRequest(ctx context.Context, t *testing.T, address string, kind int) error {
	switch kind {
	case 0, 1:
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil // a client that does not come
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /watcher HTTP/1.1\r\nHost: x\r\n\r\n")
		_, _ = io.CopyN(io.Discard, conn, rand.Int64N(200_000)) // and disappears
	case 2:
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil // a client that does not come
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /wat")
	default:
		path := []string{"/watcher", "/watcher?host=node-7", "/watcher?host=none", "/watcher/health", "/metrics"}[kind%5]
		got, err := get(ctx, address, path)
		if err != nil {
			return err
		}
		switch got {
		case http.StatusOK, http.StatusNotFound, http.StatusServiceUnavailable:
		default:
			t.Errorf("%s: status %d", path, got)
		}
	}
	return nil
}

// status requests a path and returns the status, 0 if there is no response.
func status(ctx context.Context, address, path string) int {
	got, _ := get(ctx, address, path)
	return got
}

// get requests a path and returns the status.
func get(ctx context.Context, address, path string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, nil
}

// gauges reads the usage from the metrics of load-watcher.
func gauges(t *testing.T, address string) program.Usage {
	t.Helper()
	var usage program.Usage
	eventually.True(t, "the metrics cannot be read", nil, func(ctx context.Context) (_ bool, err error) {
		if usage, err = program.ReadUsage(ctx, http.DefaultClient, "http://"+address+"/metrics"); err != nil {
			t.Log(err)
		}
		return err == nil, nil
	})
	return usage
}
