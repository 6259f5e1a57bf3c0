package loadwatcher

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// asProgram is the environment variable that makes the test binary run load-watcher.
const asProgram = "PLIMSOLL_TEST_LOAD_WATCHER"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(base.RunService(NewCommand()))
	}
	os.Exit(m.Run())
}

const (
	capacityNodes   = 50_000
	capacityReaders = 200
	// capacityMemory is the largest resident memory of load-watcher in KiB.
	capacityMemory = 300 << 10
	// capacityRequests is the number of requests for one node per second of CPU time.
	capacityRequests = 1000
)

// BenchmarkCapacity measures the requests for one node that load-watcher answers per second of CPU time, and its memory,
// while many clients read the load of very many nodes slowly and it reads new load all the time. It fails beyond the
// documented limits.
func BenchmarkCapacity(b *testing.B) {
	feed := filepath.Join(b.TempDir(), "load.json")
	writeFeed(b, feed, 0)
	address := fmt.Sprintf("127.0.0.1:%d", program.FreePort(b))
	b.Setenv(asProgram, "1")
	watcher := program.Start(b, os.Args[0], "--provider=File", "--address="+feed, "--poll-interval=2s", "--listen="+address)
	get := func(ctx context.Context, path string) error {
		_, err := program.Get(ctx, "http://"+address+path)
		return err
	}
	eventually.True(b, "the load is not served", watcher, func(ctx context.Context) (bool, error) {
		return get(ctx, "/readyz") == nil, nil
	})
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var open atomic.Int64
	for i := range capacityReaders {
		go func() {
			for ctx.Err() == nil {
				readSlowly(ctx, address, i%2 == 0, &open)
			}
		}()
	}
	eventually.True(b, "the slow readers are not served", watcher, func(context.Context) (bool, error) {
		return open.Load() >= capacityReaders*9/10, nil
	})
	var answered atomic.Int64
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				if err := get(ctx, "/watcher?host=node-00777"); err != nil {
					if ctx.Err() == nil {
						b.Error(err)
					}
					return
				}
				answered.Add(1)
			}
		}()
	}
	// Other programs use the processors, too: the best rate per CPU time of load-watcher counts, over a second and at least
	// a fifth of CPU time, whose resolution is 10 ms.
	best, last, lastCPU, readings := 0.0, answered.Load(), watcher.CPUTime(b), 1
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for range 180 {
		<-second.C
		if now, cpu := answered.Load(), watcher.CPUTime(b); cpu-lastCPU >= 200*time.Millisecond {
			best = max(best, float64(now-last)/(cpu-lastCPU).Seconds())
			last, lastCPU = now, cpu
		}
		if readings < 6 {
			writeFeed(b, feed, readings)
			readings++
		} else if best >= capacityRequests {
			break
		}
		if err := get(ctx, "/livez"); err != nil {
			b.Error(err)
		}
	}
	peak := watcher.PeakMemory() >> 10
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(peak>>10), "MiB-peak")
	b.ReportMetric(best, "requests/cpu-s")
	if best < capacityRequests || peak > capacityMemory {
		b.Errorf("at best %.0f requests per second of CPU time and %d KiB, want at least %d and at most %d",
			best, peak, capacityRequests, capacityMemory)
	}
	stop()
	watcher.Kill()
}

// writeFeed writes the load of all nodes. Each version has other values.
func writeFeed(t testing.TB, path string, version int) {
	t.Helper()
	reading := load.Reading{Source: "Test", Time: time.Now(), Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for i := range capacityNodes {
		u := load.Utilization{Mean: float64((i+version)*7919%1000) / 1009, StdDev: float64((i+version)*104729%100) / 1013}
		reading.Nodes[fmt.Sprintf("node-%05d", i)] = load.Node{CPU: u, Memory: u, HasCPU: true, HasMemory: true}
	}
	var message bytes.Buffer
	must.Succeed(t, wire.Encode(&message, reading))
	must.Succeed(t, os.WriteFile(path+".new", message.Bytes(), 0o600))
	must.Succeed(t, os.Rename(path+".new", path))
}

// readSlowly requests the load of all nodes and reads the response in small steps. open counts the
// responses that are being read.
func readSlowly(ctx context.Context, address string, zipped bool, open *atomic.Int64) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
	encoding := "identity"
	if zipped {
		encoding = "gzip"
	}
	fmt.Fprintf(conn, "GET /watcher HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: %s\r\n\r\n", encoding)
	buffer := make([]byte, 4<<10)
	if _, err := conn.Read(buffer); err != nil || !bytes.Contains(buffer, []byte(" 200 ")) {
		return
	}
	open.Add(1)
	defer open.Add(-1)
	step := time.NewTicker(100 * time.Millisecond)
	defer step.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-step.C:
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	}
}
