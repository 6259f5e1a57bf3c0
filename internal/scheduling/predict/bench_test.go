package predict

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
)

// cluster returns a reading of a generated cluster.
func cluster(r *rand.Rand, nodes, podsPerNode, workloads int, withPods bool) *Reading {
	reading := &Reading{Second: 1_700_000_000, Window: 900}
	keys := make([]resources.WorkloadKey, workloads)
	for i := range keys {
		keys[i] = resources.Workload{Namespace: "default", Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d", i)}.Key()
	}
	for i := range nodes {
		n := NodeReading{Name: fmt.Sprintf("node-%d", i)}
		for range podsPerNode {
			p := PodReading{State: &PodState{}, Seen: 1, IsUsed: withPods}
			workload := r.IntN(workloads)
			p.Workload = keys[workload]
			for k := range p.Amounts {
				base := []float64{500, 1 << 30}[k]
				if workload%10 > 0 {
					p.Amounts[k].Request = base
				}
				p.Used[k] = base * (0.5 + 0.5*float64(workload%5)/5 + 0.2*r.Float64())
				n.Measured[k].Mean += p.Used[k]
			}
			n.Pods = append(n.Pods, p)
		}
		for k := range n.Measured {
			n.Measured[k].Known = true
		}
		reading.Nodes = append(reading.Nodes, n)
	}
	return reading
}

// BenchmarkObserve is one reading of 5,000 nodes and 150,000 pods.
func BenchmarkObserve(b *testing.B) {
	for _, withPods := range []bool{false, true} {
		b.Run(fmt.Sprintf("pods=%t", withPods), func(b *testing.B) {
			reading := cluster(rand.New(rand.NewPCG(1, 2)), 5000, 30, 15_000, withPods)
			before := measure.Heap()
			l := NewLearner(Options{HistoryWeight: 1, HalfLife: DefaultHalfLife})
			model := l.Observe(reading)
			kept := measure.Heap() - before
			for b.Loop() {
				reading.Second += 60
				model = l.Observe(reading)
			}
			b.ReportMetric(float64(kept)/(1<<20), "MiB-kept")
			runtime.KeepAlive(model)
		})
	}
}

// TestHistoryIsSmall checks that the state of a workload takes at most 1 KiB.
func TestHistoryIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(workloadState{}); size > 1024 {
		t.Errorf("the state of a workload has %d bytes, want at most 1024", size)
	}
}
