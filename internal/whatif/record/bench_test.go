package record

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// fakeVariable makes the test binary serve a large cluster as a process of its own, so that its CPU time is not counted as the
// recorder's. Its value is the number of nodes and pods.
const fakeVariable = "PLIMSOLL_FAKE_PROMETHEUS"

func TestMain(m *testing.M) {
	if size := os.Getenv(fakeVariable); size != "" {
		serveLarge(size)
	}
	os.Exit(m.Run())
}

// large returns a cluster. A third of the pods run all the time, the remaining pods for four hours each.
func large(nodes, pods, hours int) ([]fakePod, []fakeNode) {
	var outNodes []fakeNode
	for i := range nodes {
		outNodes = append(outNodes, fakeNode{name: fmt.Sprintf("node-%04d", i), created: -10000, gone: never, cores: 32})
	}
	var outPods []fakePod
	for i := range pods {
		created, deleted := -1000.0, never
		if i%3 != 0 {
			created = float64(i%(60*hours)) - 120
			deleted = created + 240.5
		}
		base := 0.05 + 0.01*float64(i%50)
		outPods = append(outPods, fakePod{
			namespace: fmt.Sprintf("team-%02d", i%40),
			name:      fmt.Sprintf("app-%05d-7d4b9c8f6d-x%04d", i/20, i),
			uid:       fmt.Sprintf("0d9e1a6c-%08d", i),
			node:      outNodes[i%nodes].name,
			owner:     fmt.Sprintf("ReplicaSet/app-%05d-7d4b9c8f6d", i/20),
			created:   created,
			scheduled: created + 0.1,
			finished:  never,
			deleted:   deleted,
			cpu:       0.25,
			usage: func(minute float64) (cores, bytes float64) {
				noise := math.Mod(math.Sin(minute*12.9898+float64(i)*78.233)*43758.5453, 1)
				return base * (1 + 0.3*math.Sin(minute/200+float64(i)) + 0.2*noise), 3e8 + 1e6*math.Floor(minute/30) + 4096*math.Floor(
					1000*noise,
				)
			},
		})
	}
	return outPods, outNodes
}

// serveLarge serves a large cluster until its standard input ends.
func serveLarge(size string) {
	var nodes, pods, hours int
	if _, err := fmt.Sscanf(size, "%d %d %d", &nodes, &pods, &hours); err != nil {
		panic(err)
	}
	f := &fakeServer{}
	f.pods, f.nodes = large(nodes, pods, hours)
	f.listen()
	fmt.Println(f.URL)
	_, _ = bufio.NewReader(os.Stdin).ReadString(0)
	os.Exit(0)
}

// startLarge starts a process that serves a large cluster.
func startLarge(b testing.TB, nodes, pods, hours int) string {
	b.Helper()
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d", fakeVariable, nodes, pods, hours))
	stdin, err := command.StdinPipe()
	must.Succeed(b, err)
	out, err := command.StdoutPipe()
	must.Succeed(b, err)
	must.Succeed(b, command.Start())
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must.Succeed(b, err)
	return strings.TrimSpace(line)
}

// BenchmarkRecord records days of clusters in steps of a minute and reads the recordings. It prints the CPU time, the largest heap
// while recording, the size of the file, and the memory of the recording that is read.
func BenchmarkRecord(b *testing.B) {
	for _, size := range []struct{ nodes, pods, hours int }{{200, 6000, 24}, {1000, 30000, 4}} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d/hours=%d", size.nodes, size.pods, size.hours), func(b *testing.B) {
			address := startLarge(b, size.nodes, size.pods, size.hours)
			for b.Loop() {
				config := (&fakeServer{}).emptyConfig()
				config.Server.Address = address
				config.To = start.Add(time.Duration(size.hours) * time.Hour)
				path := filepath.Join(b.TempDir(), "r.ndjson.gz")
				file, err := os.Create(path)
				must.Succeed(b, err)
				before, heap := measure.CPU(), peakHeap(b)
				progress, err := Record(b.Context(), file, config, Options{})
				if err = errors.Join(err, file.Close()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric((measure.CPU() - before).Seconds(), "CPU-s/op")
				b.ReportMetric(float64(heap())/(1<<20), "peak-MiB")
				b.ReportMetric(float64(progress.Bytes)/(1<<20), "file-MiB")
				readBack(b, path)
			}
		})
	}
}

// peakHeap samples the heap until the returned function is called, which returns the largest.
func peakHeap(b testing.TB) func() uint64 {
	b.Helper()
	runtime.GC()
	var largest uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			largest = max(largest, stats.HeapSys-stats.HeapReleased)
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return largest
	}
}

// readBack reads a recording and reports its memory and the number of its values.
func readBack(b *testing.B, path string) {
	b.Helper()
	before := measure.Heap()
	begin := measure.CPU()
	r, err := recording.Open(path)
	must.Succeed(b, err)
	b.ReportMetric((measure.CPU() - begin).Seconds(), "read-CPU-s/op")
	b.ReportMetric(float64(measure.Heap()-before)/(1<<20), "read-MiB")
	values := 0
	for i := range r.Pods {
		values += r.Pods[i].CPU.Len() + r.Pods[i].Memory.Len()
	}
	b.ReportMetric(float64(values)/1e6, "million-values")
	runtime.KeepAlive(r)
}
