package summarize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// inputOf returns the input of a summary.
func inputOf(nodes []*v1.Node, pods []*v1.Pod) *Input {
	in := &Input{Cluster: "cluster1", Now: clustertest.Now, Pods: Pods{}}
	for _, n := range nodes {
		in.Nodes = append(in.Nodes, NewNode(n))
	}
	for _, p := range pods {
		in.Pods.Set(NewPod(p))
	}
	return in
}

func asJSON(t testing.TB, status *v1alpha1.ClusterCapacityStatus) []byte {
	t.Helper()
	raw, err := json.Marshal(status)
	must.Succeed(t, err)
	return raw
}

// TestSummarize checks the groups of a small cluster.
func TestSummarize(t *testing.T) {
	zone := func(z string) map[string]string { return map[string]string{v1.LabelTopologyZone: z} }
	held := clustertest.Pod("held", "a1", 500, 512)
	held.Labels = map[string]string{slack.PlaceholderLabel: "default"}
	cordoned := clustertest.Node("b2", 8000, 8192, zone("b"))
	cordoned.Spec.Unschedulable = true
	nodes := []*v1.Node{
		clustertest.Node("a1", 4000, 8192, zone("a")),
		clustertest.Node("a2", 4000, 8192, zone("a")),
		clustertest.Node("a3", 4000, 8192, zone("a")),
		clustertest.Node("b1", 8000, 8192, zone("b"), v1.Taint{Key: "gpu", Effect: v1.TaintEffectNoSchedule}),
		cordoned,
	}
	pods := []*v1.Pod{
		clustertest.Pod("p1", "a2", 1000, 1024),
		clustertest.Pod("p2", "a3", 1000, 1024),
		held,
		clustertest.Pod("gone", "z", 1000, 1024),
	}
	got := Summarize(inputOf(nodes, pods))
	var groups []string
	for _, g := range got.Groups {
		c := got.Classes[g.Class]
		groups = append(groups, fmt.Sprintf("%d in %s%v: %s CPU, %s, %s pods, slack %s", g.Nodes, c.Labels[v1.LabelTopologyZone], c.Taints,
			g.Free.Cpu(), g.Free.Memory(), g.Free.Pods(), g.Slack.Cpu()))
	}
	want := []string{
		"2 in a[]: 3 CPU, 7Gi, 109 pods, slack 0",           // a2, a3: 4 - 1 CPU
		"1 in a[]: 3500m CPU, 7680Mi, 109 pods, slack 500m", // a1: the placeholder holds 0.5 CPU
		"1 in b[{gpu  NoSchedule <nil>}]: 8 CPU, 8Gi, 110 pods, slack 0",
		"1 in b[]: 0 CPU, 0, 0 pods, slack 0", // cordoned
	}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// TestPrices checks that prices of nodes have a form that the hub accepts, at most 16 characters, and that other texts are left out.
func TestPrices(t *testing.T) {
	for text, want := range map[string]string{
		"0.192": "0.192", "0.19200000000000001": "0.192", "1e-3": "0.001", "0": "0", "": "", "free": "", "-1": "", "1e9": "", "NaN": "",
		"0.1234567": "0.123457",
	} {
		n := clustertest.Node("a", 4000, 8192, map[string]string{"pool": "general"})
		n.Annotations = map[string]string{v1alpha1.AnnotationPrice: text}
		in := inputOf([]*v1.Node{n}, nil)
		in.Pools = []Pool{{Name: "general", Label: "pool", Value: "general", MaxNodes: 1}}
		if got := Summarize(in).ScaleUp[0].PricePerHour; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestSummaryIsDeterministic checks that the summary depends on neither order nor names.
func TestSummaryIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		nodes, pods := clustertest.Random(rng, rapid.IntRange(1, 400).Draw(t, "nodes"))
		first, err := json.Marshal(Summarize(inputOf(nodes, pods)))
		must.Succeed(t, err)
		rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		rng.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		for _, n := range nodes {
			n.Labels[v1.LabelHostname] = "renamed-" + n.Name
		}
		if second, err := json.Marshal(Summarize(inputOf(nodes, pods))); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("differs after a change of order: %v", err)
		}
	})
}

// TestSummaryPromisesNothing checks that merged groups never have more than the nodes, in clusters of any kind: the nodes can be
// given to the groups such that each has at least the free amounts and the labels of its group.
func TestSummaryPromisesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		nodes, pods := clustertest.Random(rng, rapid.IntRange(1, 600).Draw(t, "nodes"))
		in := inputOf(nodes, pods)
		merged := newSummarizer(in).summaryWithin(rapid.IntRange(1, 60).Draw(t, "classes"), rapid.IntRange(60, 300).Draw(t, "groups"))
		exact := newSummarizer(in).summaryWithin(10_000, 10_000)
		// Hall's condition for thresholds: for each amount of a resource, no more nodes of the summary than of the cluster have it.
		count := func(s *v1alpha1.ClusterCapacityStatus, cpu, memory int64) (n int32) {
			for _, g := range s.Groups {
				if g.Free.Cpu().MilliValue() >= cpu && g.Free.Memory().Value() >= memory {
					n += g.Nodes
				}
			}
			return n
		}
		for _, g := range merged.Groups {
			cpu, memory := g.Free.Cpu().MilliValue(), g.Free.Memory().Value()
			if got, limit := count(merged, cpu, memory), count(exact, cpu, memory); got > limit {
				t.Fatalf("%d nodes with %dm CPU and %d memory, the cluster has %d", got, cpu, memory, limit)
			}
		}
	})
}

// TestSummaryIsBounded checks the size for a cluster in which nothing is equal.
func TestSummaryIsBounded(t *testing.T) {
	nodes, pods := clustertest.Random(rand.New(rand.NewPCG(1, 1)), 5000)
	for i, n := range nodes {
		for k := range 30 {
			n.Labels[fmt.Sprintf("example.com/a-label-with-a-long-name-%02d", k)] = fmt.Sprintf("a-value-that-is-long-as-well-%d", i%(k+2))
		}
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: fmt.Sprintf("taint-%d", i%500), Effect: v1.TaintEffectNoExecute})
		pods[i].Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: int32(1 + i%1000)}}
	}
	got := Summarize(inputOf(nodes, pods))
	if size := len(asJSON(t, got)); size > v1alpha1.MaxBytes || len(got.Groups) > v1alpha1.MaxGroups {
		t.Errorf("got %d bytes and %d groups", size, len(got.Groups))
	}
	if _, err := fit.NewSummary(got); err != nil {
		t.Error(err)
	}
	sum := int32(0)
	for _, g := range got.Groups {
		sum += g.Nodes
	}
	if sum != 5000 {
		t.Errorf("got %d nodes in the groups", sum)
	}
}

// TestLongClasses checks that nodes whose class would be refused by the hub have a group without labels, taints and free amounts, and that
// all other nodes keep theirs.
func TestLongClasses(t *testing.T) {
	var nodes []*v1.Node
	for i := range maxValues + 1 { // labels with as many values distinguish no classes
		various := map[string]string{}
		for k := range v1alpha1.MaxVariousLabels {
			various[fmt.Sprint("label-", k)] = fmt.Sprint(i)
		}
		nodes = append(nodes, clustertest.Node(fmt.Sprint("various-", i), 4000, 8192, various))
	}
	tainted := clustertest.Node("tainted", 4000, 8192, nil)
	for k := range v1alpha1.MaxTaints + 1 {
		tainted.Spec.Taints = append(tainted.Spec.Taints, v1.Taint{Key: fmt.Sprint("taint-", k), Effect: v1.TaintEffectNoSchedule})
	}
	nodes = append(nodes, tainted, clustertest.Node("plain", 4000, 8192, nil, v1.Taint{Key: "gpu", Effect: v1.TaintEffectNoSchedule}))
	got := Summarize(inputOf(nodes, nil))
	for _, g := range got.Groups {
		class := got.Classes[g.Class]
		isPlain := len(class.Taints) == 1
		if isLong := len(class.Labels)+len(class.VariousLabels)+len(class.Taints) == 0; isLong == isPlain || isLong != (len(g.Free) == 0) {
			t.Errorf("class %+v has %d nodes with %v", class, g.Nodes, g.Free)
		}
	}
	if len(got.Classes) != 3 {
		t.Errorf("got %d classes", len(got.Classes))
	}
}

// BenchmarkSummarize makes a summary of 5,000 nodes with 50,000 pods.
func BenchmarkSummarize(b *testing.B) {
	in := inputOf(clustertest.Random(rand.New(rand.NewPCG(1, 1)), 5000))
	for b.Loop() {
		if got := Summarize(in); len(got.Groups) != v1alpha1.MaxGroups {
			b.Fatal(len(got.Groups))
		}
	}
}

// FuzzPrice cleans prices of any text: the hub accepts the result.
func FuzzPrice(f *testing.F) {
	for _, text := range []string{"0.192", "1e-3", "NaN", "-0", "0x1p-2", "1_0", "99999999.9999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := cleanPrice(text)
		if clean == "" {
			return
		}
		if _, err := v1alpha1.ParsePrice(clean); err != nil || len(clean) > 16 || strings.ContainsAny(clean, "eE-_xp") {
			t.Errorf("%q: got %q, %v", text, clean, err)
		}
	})
}
