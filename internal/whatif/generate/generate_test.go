package generate

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// generated returns the cluster of a valid specification.
func generated(t testing.TB, text string, seed uint64) NewCluster {
	t.Helper()
	s, err := ParseGenerated(text)
	must.Succeed(t, err)
	return s.cluster(seed)
}

// capacityOf returns the allocatable amounts of all nodes.
func capacityOf(in NewCluster) (sum resources.Amounts) {
	for _, n := range in.Nodes {
		sum = sum.Add(recording.Amounts(n.Object.Status.Allocatable))
	}
	return sum
}

// end returns the second at which a pod ends.
func end(p *NewPod) int64 { return resources.Add(p.Arrival, p.Duration) }

func TestParseGenerated(t *testing.T) {
	small := Generated{
		Nodes: 3, Shapes: []NodeShape{{16, 64, 0}, {32, 128, 0}, {64, 256, 0}}, Pods: 5, Replicas: 10, Fill: 0.7, MemoryFill: 0.7,
		CPUCV: 0.8, PerCoreCV: 0.4, LifeCV: 2, BurstShare: 0.2,
	}
	all := Generated{
		Nodes: 3, Shapes: []NodeShape{{8, 32, 0}, {4, 1, 2}}, Pods: 5, Replicas: 2, Fill: 0.5, MemoryFill: 0.6, CPUCV: 1, PerCoreCV: 0,
		BestEffort: 0.25, Guaranteed: 0.75, Over: 3600, Life: 60, GPU: 0.5, Zones: 3, Batch: 0.1,
		LifeCV: 2, BurstShare: 0.2,
	}
	churn := small
	churn.Churn, churn.Life = 86400, 60
	for text, want := range map[string]Generated{
		"nodes=3,pods=5": small,
		"nodes=3,pods=5,shapes=8x32 + 4x1x2,replicas=2,fill=0.5,memory-fill=0.6,cpu-cv=1,memory-cv=0,best-effort=0.25,guaranteed=0.75," +
			"over=3600,life=60,gpu=0.5,zones=3,batch=0.1": all,
		"nodes=3,pods=5,churn=86400,life=60": churn,
	} {
		got, err := ParseGenerated(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestParseGeneratedErrors(t *testing.T) {
	const required = "nodes, pods: required: must be nodes=N,pods=N"
	const shape = "must be CORESxGIB or CORESxGIBxGPUS, from 1x1 to 10000x131072x1000"
	for text, want := range map[string]string{
		"":       required,
		"pods=3": required, "nodes=3": required,
		"nodes=0,pods=1":                        `nodes: invalid value 0: must be from 1 to 100000`,
		"nodes=1,pods=1,bursts=2":               `bursts: invalid value 2: must be 0 without over`,
		"nodes=1,pods=1,burst-share=0.5":        `burst-share: invalid value 0.5: must be absent without bursts`,
		"nodes=1,pods=1,fill=90":                `fill: invalid value 90: must be from 0.01 to 10`,
		"nodes=1,pods=1,shapes=8":               `shapes[0]: invalid value "8": ` + shape,
		"nodes=1,pods=1,shapes=8x1+8x0":         `shapes[1]: invalid value "8x0": ` + shape,
		"nodes=1,pods=1,shapes=8x1x1x1":         `shapes[0]: invalid value "8x1x1x1": ` + shape,
		"nodes=1,pods=1,gpu=0.5":                `gpu: invalid value 0.5: must be 0 without a shape with GPUs`,
		"nodes=1,pods=1,churn=60":               `churn: invalid value 60: must be 0 without life`,
		"nodes=1,pods=1,churn=60,life=1,over=2": `churn: invalid value 60: must be 0 with over`,
		"nodes=1,pods=1,life=60,life-cv=1":      `life-cv: invalid value 1: must be absent without churn`,
		"nodes=1,pods=9999,churn=9999,life=60":  `churn: invalid value 9999: must be so short that pods (1 + churn/life), 1676332, is at most 1000000`,
		"nodes=1,pods=1,life=1h":                `life: json: cannot unmarshal string into Go struct field Generated.life of type int64`,
		"nodes=1,pods=1,best-effort=0.6,guaranteed=0.6": `guaranteed: invalid value 0.6: must be at most 1 in total with ` +
			`best-effort, 0.6`,
		"nodes=1,pods=1,seed=1": `unknown field "seed"`,
	} {
		if _, err := ParseGenerated(text); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestFill(t *testing.T) {
	c := generated(t, "nodes=300,pods=9000,fill=0.8,memory-fill=0.6", 1)
	have, want := capacityOf(c), resources.Amounts{}
	var sum, squares float64
	for _, p := range c.Pods {
		want = want.Add(p.Requests)
		sum, squares = sum+float64(p.Requests.CPU), squares+float64(p.Requests.CPU)*float64(p.Requests.CPU)
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
	var requested float64
	capacity := float64(capacityOf(c).CPU)
	for _, p := range c.Pods {
		if p.Arrival <= 8000 && end(&p) > 8000 {
			requested += float64(p.Requests.CPU)
		}
	}
	if got := requested / capacity; math.Abs(got-0.5) > 0.03 {
		t.Errorf("fill %v, want 0.5", got)
	}
}

// TestGeneratedChurn checks that pods arrive and end in a steady state: at any time concurrent pods request the specified
// fractions of the capacity, from the time at which the cluster has filled to the end, and about the specified number of pods arrives.
func TestGeneratedChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fill, memory := rapid.Float64Range(0.5, 0.95).Draw(t, "fill"), rapid.Float64Range(0.5, 0.95).Draw(t, "memory")
		text := fmt.Sprintf("nodes=300,pods=3000,fill=%v,memory-fill=%v,cpu-cv=0.5,memory-cv=0.2,churn=40000,life=%d,life-cv=%v", fill,
			memory, rapid.IntRange(4000, 20000).Draw(t, "life"), rapid.Float64Range(0, 3).Draw(t, "cv"))
		s, err := ParseGenerated(text)
		must.Succeed(t, err)
		c := s.cluster(rapid.Uint64().Draw(t, "seed"))
		if len(c.Pods) != s.totalPods() || c.Pods[s.Pods-1].Arrival >= fillTime || c.Pods[s.Pods].Arrival < fillTime {
			t.Fatalf("%d pods, want %d, %d of them while it fills", len(c.Pods), s.totalPods(), s.Pods)
		}
		capacity := capacityOf(c)
		for _, second := range []int64{0, 1000, 10_000, 39_999} {
			var requested resources.Amounts
			for _, p := range c.Pods {
				if at := fillTime + second; p.Arrival <= at && at < end(&p) {
					requested = requested.Add(p.Requests)
				}
			}
			// 3000 concurrent pods: the deviation of their number is 1.8 %, with the deviation of their sizes 2.1 %.
			gotCPU := float64(requested.CPU) / float64(capacity.CPU)
			gotMemory := float64(requested.Memory) / float64(capacity.Memory)
			if math.Abs(gotCPU/fill-1) > 0.11 || math.Abs(gotMemory/memory-1) > 0.11 {
				t.Fatalf("second %d: fill %v and %v, want %v and %v", second, gotCPU, gotMemory, fill, memory)
			}
		}
	})
}

// TestLifetimes checks the mean and the variation of the run times of pods that arrive during churn.
func TestLifetimes(t *testing.T) {
	s, err := ParseGenerated("nodes=10,pods=1000,churn=200000,life=1000,life-cv=1.5")
	must.Succeed(t, err)
	var lives []float64
	for _, p := range s.cluster(1).Pods {
		if p.Arrival > 0 {
			lives = append(lives, float64(p.Duration))
		}
	}
	mean, deviation := stat.MeanStdDev(lives, nil)
	if math.Abs(mean/1000-1) > 0.02 || math.Abs(deviation/mean/1.5-1) > 0.05 {
		t.Errorf("mean %v and coefficient of variation %v, want 1000 and 1.5", mean, deviation/mean)
	}
}

// TestGPUs checks that only the requested share of pods has GPUs, each as many as fit on a node, and that zones
// hold all shapes.
func TestGPUs(t *testing.T) {
	c := generated(t, "nodes=12,shapes=16x64+32x128x4+32x128x8,zones=2,pods=20000,replicas=1,gpu=0.3,best-effort=0.5", 1)
	gpu := func(n recording.Node) int64 { return recording.Amounts(n.Object.Status.Allocatable).Extended.Get(GPU) }
	zone := func(n recording.Node) string { return n.Object.Labels[v1.LabelTopologyZone] }
	if a, b := c.Nodes[2], c.Nodes[3]; gpu(a) != 8 || zone(a) != "zone-0" || gpu(b) != 0 || zone(b) != "zone-1" ||
		zone(c.Nodes[6]) != "zone-0" {
		t.Errorf("nodes %+v", c.Nodes)
	}
	counts := map[int64]float64{}
	for _, p := range c.Pods {
		if p.Class == v1.PodQOSBestEffort && p.Requests.Extended.Get(GPU) > 0 {
			t.Fatalf("%+v", p)
		}
		counts[p.Requests.Extended.Get(GPU)] += 1.0 / 20000
	}
	// Half of the pods are best-effort: 0.5 x 0.3 request GPUs; a tenth of them the 4 devices of the smallest node.
	if len(counts) != 3 || math.Abs(counts[1]-0.135) > 0.01 || math.Abs(counts[4]-0.015) > 0.005 {
		t.Errorf("shares of requests for GPUs %v", counts)
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
		s, err := ParseGenerated(text)
		must.Succeed(t, err)
		seed := rapid.Uint64().Draw(t, "seed")
		c := s.cluster(seed)
		if diff := cmp.Diff(c, s.cluster(seed)); diff != "" {
			t.Fatal(diff)
		}
		if len(c.Nodes) != s.Nodes || len(c.Pods) != s.Pods {
			t.Fatalf("%d nodes, %d pods", len(c.Nodes), len(c.Pods))
		}
		smallest := recording.Amounts(c.Nodes[0].Object.Status.Allocatable)
		for _, n := range c.Nodes {
			smallest = smallest.Min(recording.Amounts(n.Object.Status.Allocatable))
		}
		groups, last := map[*Owner]NewPod{}, int64(0)
		for _, p := range c.Pods {
			if p.Requests.CPU < 10 || p.Requests.CPU > smallest.CPU/2 || p.Requests.Memory < 1<<20 ||
				p.Requests.Memory > smallest.Memory/2 {
				t.Fatalf("%+v on nodes from %+v", p, smallest)
			}
			if p.Arrival < last || p.Duration <= 0 {
				t.Fatalf("%+v after second %d", p, last)
			}
			last = p.Arrival
			other, ok := groups[p.Owner]
			if ok && (other.Requests != p.Requests || other.Class != p.Class) {
				t.Fatalf("%+v and %+v", other, p)
			}
			groups[p.Owner] = p
		}
	})
}

// TestBatch checks the share of jobs, and that it changes nothing if it is 0.
func TestBatch(t *testing.T) {
	groups := map[string]bool{}
	for _, p := range generated(t, "nodes=10,pods=20000,replicas=2,batch=0.3", 1).Pods {
		groups[p.Owner.Name] = p.Owner.IsJob
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

func FuzzParseGenerated(f *testing.F) {
	f.Add("nodes=3,pods=5,shapes=8x32+4x1,fill=0.5,over=10,life=3")
	f.Add("nodes=3,pods=5,shapes=8x32x1+4x1,churn=100,life=10,life-cv=3,gpu=0.5,zones=2,batch=0.5,best-effort=0.1")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseGenerated(text)
		if err != nil || s.Nodes > 100 || s.totalPods() > 1000 {
			return
		}
		for _, p := range s.cluster(1).Pods {
			if p.Requests.CPU < 1 || p.Requests.Memory < 1 || p.Duration < 1 {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}

// TestBursts checks that 4 bursts in 1000 s are at 200, 400, 600 and 800 s, and that each has a quarter
// of the 30 % of pods that arrive in bursts.
func TestBursts(t *testing.T) {
	spec, err := ParseGenerated("nodes=3,pods=4000,over=1000,bursts=4,burst-share=0.3")
	must.Succeed(t, err)
	counts := map[int64]int{}
	for _, p := range spec.cluster(1).Pods {
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
