package generate

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// generated returns the cluster of a valid specification.
func generated(t testing.TB, text string, seed uint64) *trace.Cluster {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s.Cluster(seed)
}

func TestParse(t *testing.T) {
	small := Spec{
		Nodes: 3, Shapes: []Shape{{16, 64}, {32, 128}, {64, 256}}, Pods: 5, Replicas: 10, Fill: 0.7, MemoryFill: 0.7, CPUCV: 0.8,
		PerCoreCV: 0.4,
	}
	all := Spec{
		Nodes: 3, Shapes: []Shape{{8, 32}, {4, 1}}, Pods: 5, Replicas: 2, Fill: 0.5, MemoryFill: 0.6, CPUCV: 1, PerCoreCV: 0,
		BestEffort: 0.25, Guaranteed: 0.75, Over: 3600, Life: 60,
	}
	for text, want := range map[string]Spec{
		"nodes=3,pods=5": small,
		"nodes=3,pods=5,shapes=8x32 + 4x1,replicas=2,fill=0.5,memory-fill=0.6,cpu-cv=1,memory-cv=0,best-effort=0.25,guaranteed=0.75," +
			"over=3600,life=60": all,
	} {
		got, err := Parse(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `nodes: invalid value "": must be a whole number from 1 to 100000`,
		"nodes=3":                           `pods: invalid value "": must be a whole number from 0 to 1000000`,
		"nodes=0,pods=1":                    `nodes: invalid value "0": must be a whole number from 1 to 100000`,
		"nodes=1,pods=99999999999999999999": `pods: invalid value "99999999999999999999": must be a whole number from 0 to 1000000`,
		"nodes=1,pods=1,bursts=2":           `bursts: invalid value "2": must be 0 without over`,
		"nodes=1,pods=1,burst-share=0.5":    `burst-share: invalid value "0.5": must be absent without bursts`,
		"nodes=1,pods=1,fill=101":           `fill: invalid value "101": must be a number from 0.01 to 100`,
		"nodes=1,pods=1,shapes=8":           `shapes: invalid value "8": must be CORESxGIB separated by +, from 1x1 to 10000x131072`,
		"nodes=1,pods=1,shapes=8x0":         `shapes: invalid value "8x0": must be CORESxGIB separated by +, from 1x1 to 10000x131072`,
		"nodes=1,pods=1,life=-1":            `life: invalid value "-1": must be a whole number from 0 to 31536000`,
		"nodes=1,pods=1,best-effort=0.6,guaranteed=0.6": `guaranteed: invalid value "0.6": must be at most 1 in total with ` +
			`best-effort, 0.6`,
		"nodes=1,pods=1,seed=1": `unknown key "seed": must be one of nodes, pods, replicas, fill, cpu-cv, ` +
			`memory-cv, batch, best-effort, guaranteed, over, life, memory-fill, shapes, bursts, burst-share`,
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := Parse(text); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

func TestFill(t *testing.T) {
	c := generated(t, "nodes=300,pods=9000,fill=0.8,memory-fill=0.6", 1)
	var have, want trace.Amounts
	for _, n := range c.Nodes {
		have.CPU, have.Memory = have.CPU+n.Capacity.CPU, have.Memory+n.Capacity.Memory
	}
	var sum, squares float64
	for _, p := range c.Pods {
		want.CPU, want.Memory = want.CPU+p.Request.CPU, want.Memory+p.Request.Memory
		sum, squares = sum+float64(p.Request.CPU), squares+float64(p.Request.CPU)*float64(p.Request.CPU)
	}
	cpu, memory := float64(want.CPU)/float64(have.CPU), float64(want.Memory)/float64(have.Memory)
	if math.Abs(cpu-0.8) > 0.01 || math.Abs(memory-0.6) > 0.02 {
		t.Errorf("CPU fill %v and memory fill %v, want 0.8 and 0.6", cpu, memory)
	}
	mean := sum / 9000
	if cv := math.Sqrt(squares/9000-mean*mean) / mean; math.Abs(cv-0.8) > 0.1 {
		t.Errorf("coefficient of variation of CPU %v, want 0.8", cv)
	}
}

// TestFillOfConcurrentPods checks the fill of pods that run for a tenth of the time over which they
// arrive.
func TestFillOfConcurrentPods(t *testing.T) {
	c := generated(t, "nodes=300,pods=30000,fill=0.5,over=10000,life=1000", 1)
	var capacity, requested float64
	for _, n := range c.Nodes {
		capacity += float64(n.Capacity.CPU)
	}
	for _, p := range c.Pods {
		if p.Arrival <= 8000 && p.End > 8000 {
			requested += float64(p.Request.CPU)
		}
	}
	if got := requested / capacity; math.Abs(got-0.5) > 0.03 {
		t.Errorf("fill %v, want 0.5", got)
	}
}

// TestClusterProperties checks that a cluster has the specified numbers of nodes and pods, that every
// pod fits a node, that the pods of a group are equal, and that the same seed gives the same cluster.
func TestClusterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("nodes=%d,pods=%d,shapes=%dx%d+8x32,replicas=%d,fill=%v,cpu-cv=%v,best-effort=%v,guaranteed=%v,over=%d,life=%d",
			rapid.IntRange(1, 30).Draw(t, "nodes"), rapid.IntRange(0, 300).Draw(t, "pods"), rapid.IntRange(1, 64).Draw(t, "cores"),
			rapid.IntRange(1, 256).Draw(t, "gib"), rapid.IntRange(1, 400).Draw(t, "replicas"), rapid.Float64Range(0.01, 2).Draw(t, "fill"),
			rapid.Float64Range(0, 3).Draw(t, "cv"), rapid.Float64Range(0, 0.5).Draw(t, "bestEffort"),
			rapid.Float64Range(0, 0.5).Draw(t, "guaranteed"),
			rapid.IntRange(0, 100).Draw(t, "over"), rapid.IntRange(0, 100).Draw(t, "life"))
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		c := s.Cluster(seed)
		if diff := cmp.Diff(c, s.Cluster(seed)); diff != "" {
			t.Fatal(diff)
		}
		if len(c.Nodes) != s.Nodes || len(c.Pods) != s.Pods {
			t.Fatalf("%d nodes, %d pods", len(c.Nodes), len(c.Pods))
		}
		smallest := c.Nodes[0].Capacity
		for _, n := range c.Nodes {
			smallest.CPU, smallest.Memory = min(smallest.CPU, n.Capacity.CPU), min(smallest.Memory, n.Capacity.Memory)
		}
		groups, last := map[string]trace.Pod{}, int64(0)
		for _, p := range c.Pods {
			size := p.UsedFrom()
			if size.CPU < 10 || size.CPU > smallest.CPU/2 || size.Memory < 1<<20 || size.Memory > smallest.Memory/2 {
				t.Fatalf("%+v on nodes from %+v", p, smallest)
			}
			if p.Arrival < last || p.Start != p.Arrival || p.End <= p.Start || (p.Class == trace.BestEffort) != p.Request.IsZero() {
				t.Fatalf("%+v after second %d", p, last)
			}
			last = p.Arrival
			other, ok := groups[p.Group]
			if ok && (other.Request != p.Request || other.Nominal != p.Nominal || other.Limit != p.Limit || other.Class != p.Class) {
				t.Fatalf("%+v and %+v", other, p)
			}
			groups[p.Group] = p
		}
	})
}

// TestBatch checks the share of jobs, and that it changes nothing if it is 0.
func TestBatch(t *testing.T) {
	groups := map[string]bool{}
	for _, p := range generated(t, "nodes=10,pods=20000,replicas=2,batch=0.3", 1).Pods {
		if batch, known := groups[p.Group]; known && batch != p.Batch {
			t.Fatalf("%s has pods of both kinds", p.Group)
		}
		groups[p.Group] = p.Batch
	}
	jobs := 0
	for _, batch := range groups {
		if batch {
			jobs++
		}
	}
	if share := float64(jobs) / float64(len(groups)); math.Abs(share-0.3) > 0.02 {
		t.Errorf("%v of the groups are jobs, want 0.3", share)
	}
	without, zero := generated(t, "nodes=10,pods=200", 1), generated(t, "nodes=10,pods=200,batch=0", 1)
	if diff := cmp.Diff(without, zero); diff != "" {
		t.Error(diff)
	}
}

func TestSeedsDiffer(t *testing.T) {
	a, b := generated(t, "nodes=1,pods=100", 1), generated(t, "nodes=1,pods=100", 2)
	if cmp.Equal(a.Pods, b.Pods) {
		t.Error("different seeds give the same pods")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("nodes=3,pods=5,shapes=8x32+4x1,fill=0.5,over=10,life=3")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil || s.Nodes > 100 || s.Pods > 1000 {
			return
		}
		for _, p := range s.Cluster(1).Pods {
			if p.UsedFrom().CPU < 1 || p.UsedFrom().Memory < 1 || p.End <= p.Start {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}

// BenchmarkCluster generates 5,000 nodes and 150,000 pods and measures their memory.
func BenchmarkCluster(b *testing.B) {
	s, err := Parse("nodes=5000,pods=150000")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var c *trace.Cluster
	for b.Loop() {
		c = s.Cluster(1)
	}
	var with, without runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&with)
	runtime.KeepAlive(c)
	runtime.GC()
	runtime.ReadMemStats(&without)
	b.ReportMetric(float64(with.HeapAlloc-without.HeapAlloc)/(1<<20), "MiB")
}

// TestBursts checks that 4 bursts in 1000 s are at 200, 400, 600 and 800 s, and that each has a quarter
// of the 30 % of pods that arrive in bursts.
func TestBursts(t *testing.T) {
	spec, err := Parse("nodes=3,pods=4000,over=1000,bursts=4,burst-share=0.3")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int64]int{}
	for _, p := range spec.Cluster(1).Pods {
		counts[p.Arrival]++
	}
	for second, n := range counts {
		if second%200 == 0 && second > 0 {
			if n < 240 || n > 360 {
				t.Errorf("%d pods at second %d, want about 300", n, second)
			}
		} else if n > 20 {
			t.Errorf("%d pods at second %d, want about 3", n, second)
		}
	}
}
