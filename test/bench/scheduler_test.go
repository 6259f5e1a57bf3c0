// Package bench has benchmarks of complete programs, whose results are in docs/benchmarks.md.
package bench

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

func newNode(i int) *v1.Node {
	node := schedtest.Node(fmt.Sprintf("node-%04d", i), "cpu", "64", "memory", "256Gi", "pods", "250")
	node.Labels = map[string]string{v1.LabelHostname: node.Name}
	return node
}

// workloads is the number of workloads that pods belong to.
const workloads = 1000

// newPod returns the i-th pod, of one of the workloads. Pods have several sizes, so that nodes differ.
func newPod(i int, node string) *v1.Pod {
	name, owner := fmt.Sprintf("pod-%06d", i), fmt.Sprint("app-", i%workloads)
	request := int64(250 + 250*(i%5))
	limits := clustertest.List(request*int64(1+i%4), 1024*int64(1+i%3))
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID(owner), Controller: new(true),
		}}},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{
			Name: "c", Image: "app",
			Resources: v1.ResourceRequirements{Requests: clustertest.List(request, 1024), Limits: limits},
		}}},
	}
}

// BenchmarkScheduler schedules pods on 5,000 nodes with 30 pods each, in turn with the default profile, each
// built-in profile, the default profile with all plugins, with as many plugins that do nothing, and with one of them. Equal
// pods are not batched: each pod is filtered and scored. It reports pods per second with the default profile, and the
// throughput of every other configuration relative to the default profile, in CPU time, which other programs on the machine
// hardly affect. All plugins, and profiles with one plugin, are also compared with as many plugins that do nothing. The log
// has the intervals, and the ratios in elapsed time. The lowest allowed ratio is far below the measured ratios: a score that
// fits distributions, sums pods or allocates memory for each node fails.
func BenchmarkScheduler(b *testing.B) {
	const warmUp, podsPerRound, lowest = 10, 10, 0.5
	c := newComparison(b, selectedNames(), 5000, 30, 1)
	for b.Loop() {
		c.run(b, *rounds, warmUp, podsPerRound)
	}
	var rates []float64
	for _, s := range c.samples[byDefault] {
		rates = append(rates, podsPerRound/s.wall)
	}
	b.ReportMetric(newEstimate(rates).median, "pods/s-default")
	for _, name := range c.names {
		b.Logf("%s: allocates %.0f KiB for each pod", name, c.bytesPerPod(name, podsPerRound))
		if name != byDefault {
			ratio := c.ratio(name, byDefault, byCPU)
			b.ReportMetric(ratio.median, "ratio-"+name)
			b.Logf("%s relative to default: %v; elapsed %v", name, ratio, c.ratio(name, byDefault, byWall))
			if ratio.high < lowest {
				b.Errorf("%s relative to default: %v, want at least %.1f", name, ratio, lowest)
			}
		}
	}
	for _, pair := range [][2]string{
		{withAll, withNothing}, {"limits", withOneNothing}, {"low-risk", withOneNothing}, {"predicted", withOneNothing},
	} {
		if name, nothing := pair[0], pair[1]; c.engines[name] != nil && c.engines[nothing] != nil {
			ratio := c.ratio(name, nothing, byCPU)
			b.ReportMetric(ratio.median, "ratio-"+name+"-to-nothing")
			b.Logf("%s relative to %s: %v; elapsed %v", name, nothing, ratio, c.ratio(name, nothing, byWall))
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBatches is BenchmarkScheduler with 50 equal pods in a row, as in a Deployment, and opportunistic batching, with a reading of
// load in between: with the profile batch, most pods take the next node in the order of the first pod's scores.
func BenchmarkBatches(b *testing.B) {
	const rounds, warmUp, podsPerRound, equal = 100, 10, 20, 50
	c := newComparison(b, []string{byDefault, "limits", "predicted", "batch"}, 5000, 30, equal)
	for b.Loop() {
		c.run(b, rounds, warmUp, podsPerRound)
	}
	for _, name := range c.names[1:] {
		ratio := c.ratio(name, byDefault, byCPU)
		b.ReportMetric(ratio.median, "ratio-"+name)
		b.Logf("%s relative to default: %v; elapsed %v", name, ratio, c.ratio(name, byDefault, byWall))
		if name == "batch" && ratio.high < 1.3 {
			b.Errorf("batch relative to default: %v, want at least 1.3", ratio)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkGarbage schedules pods with the default profile and the garbage collector on, in turn with GOGC=100, the default of Go, and
// GOGC=400, in blocks that are long enough for several collections. It reports the throughput with 400 relative to 100, and the heap.
func BenchmarkGarbage(b *testing.B) {
	const rounds, warmUp, podsPerRound = 7, 100, 3000
	c := newComparison(b, []string{byDefault}, 5000, 30, 1)
	for b.Loop() {
		ratios, heap := map[string][]float64{}, map[int]float64{}
		for range rounds {
			taken := map[int]sample{}
			for _, percent := range []int{100, 400} {
				before := debug.SetGCPercent(percent)
				runtime.GC()
				c.schedule(b, byDefault, warmUp)
				taken[percent] = c.schedule(b, byDefault, podsPerRound)
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				heap[percent] = max(heap[percent], float64(m.NextGC)/(1<<20))
				debug.SetGCPercent(before)
			}
			ratios["cpu"] = append(ratios["cpu"], byCPU(taken[100])/byCPU(taken[400]))
			ratios["elapsed"] = append(ratios["elapsed"], byWall(taken[100])/byWall(taken[400]))
		}
		for name, values := range ratios {
			b.ReportMetric(newEstimate(values).median, "ratio-"+name)
			b.Logf("GOGC=400 relative to 100, %s: %v", name, newEstimate(values))
		}
		b.Logf("heap at which the collector runs: %.0f MiB, %.0f MiB with 400", heap[100], heap[400])
	}
	b.ReportMetric(0, "ns/op")
}
