package slack

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// newLoop returns the loop of a policy that keeps as much to spare as is
// requested, in placeholders of a quarter of a node and no larger than the
// biggest pod: n pods of (1, 4) on nodes of (4, 16) are n placeholders of (1, 4).
func newLoop(t testing.TB, changes ...func(*v1alpha1.ResourceSlackSpec)) *Loop {
	t.Helper()
	loop, err := NewLoop(newPolicy("100%", append([]func(*v1alpha1.ResourceSlackSpec){uncovered, granularity(4)}, changes...)...), "slack")
	if err != nil {
		t.Fatal(err)
	}
	return loop
}

// one is a pod of (1, 4) on a node.
func one(name, node string) *v1.Pod { return newPod(name, node, "1", "4Gi") }

// put plays the autoscaler: it puts placeholders on nodes, in copies of them.
func put(pods []*v1.Pod, nodes map[string]string) (placed []*v1.Pod) {
	for _, p := range pods {
		p = p.DeepCopy()
		if node := nodes[p.Name]; node != "" {
			p.Spec.NodeName = node
		}
		placed = append(placed, p)
	}
	return placed
}

// where tells which placeholder is on which node, as name=node.
func where(pods []*v1.Pod) (all []string) {
	for _, p := range pods {
		all = append(all, p.Name+"="+p.Spec.NodeName)
	}
	return all
}

// wantWhere checks which placeholders there are, and where.
func wantWhere(t *testing.T, got []*v1.Pod, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, where(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEqualPlaceholdersHaveOneOwner(t *testing.T) {
	nodes := nodesOf(2, "n", "4", "16Gi")
	loop := newLoop(t, func(s *v1alpha1.ResourceSlackSpec) { s.CoverBiggestPod = nil })
	// (2, 8) is the head; the rest of (2, 8) + 2 x (1, 4) is 2 x (1, 4).
	got, _ := loop.Next(nodes, []*v1.Pod{newPod("a", "n0", "2", "8Gi"), one("b", "n0"), one("c", "n1")}, nil, noon)
	wantWhere(t, got, "web-head-0=", "web-rate-0=", "web-rate-1=")
	names, uids := map[string]bool{}, map[types.UID]bool{}
	for _, p := range got {
		names[p.Namespace+"/"+p.Name], uids[p.UID] = true, true
		owner := metav1.GetControllerOf(p)
		if owner == nil || owner.UID != "1234" || owner.Kind != v1alpha1.Kind || owner.Name != "web" || len(p.OwnerReferences) != 1 {
			t.Errorf("%s is owned by %v, want the policy only", p.Name, p.OwnerReferences)
		}
		if p.Namespace != "slack" || p.Labels[PlaceholderLabel] != "web" || p.Status.Phase != v1.PodPending {
			t.Errorf("%s is in %q with the labels %v, %s", p.Name, p.Namespace, p.Labels, p.Status.Phase)
		}
	}
	if len(names) != len(got) || len(uids) != len(got) {
		t.Errorf("names %v, UIDs %v, want all to differ", names, uids)
	}
	// But for name and UID those of a group are equal: an autoscaler works out
	// only once for all of them where they fit.
	a, b := got[1].DeepCopy(), got[2].DeepCopy()
	a.Name, a.UID = b.Name, b.UID
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("two of a group differ:\n%s", diff)
	}
}

func TestPlaceholderKeepsNode(t *testing.T) {
	nodes := nodesOf(4, "n", "4", "16Gi")
	loop := newLoop(t)
	base := []*v1.Pod{one("a", "n0"), one("b", "n0"), one("c", "n1")}
	first, _ := loop.Next(nodes, base, nil, noon)
	wantWhere(t, first, "web-rate-0=", "web-rate-1=", "web-rate-2=")
	placed := put(first, map[string]string{"web-rate-0": "n1", "web-rate-1": "n2", "web-rate-2": "n2"})
	iterations := []struct {
		pods []*v1.Pod
		// want beside the first three: those that are new have no node.
		more []string
	}{
		{nil, nil},
		{[]*v1.Pod{one("d", "n0")}, []string{"web-rate-3="}},
		{[]*v1.Pod{one("d", "n0"), one("e", "n3"), one("f", "n3")}, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}},
		{[]*v1.Pod{one("f", "n3")}, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}}, // fewer only after ten minutes
		{[]*v1.Pod{one("g", "n1")}, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}}, // beside it, with room for both
		{nil, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}},
	}
	for i, it := range iterations {
		got, _ := loop.Next(nodes, slices.Concat(base, it.pods), placed, noon.Add(time.Duration(i+1)*10*time.Second))
		wantWhere(t, got, append([]string{"web-rate-0=n1", "web-rate-1=n2", "web-rate-2=n2"}, it.more...)...)
		for j := range first {
			if got[j].UID != first[j].UID {
				t.Errorf("iteration %d: %s has the UID %s, had %s", i, got[j].Name, got[j].UID, first[j].UID)
			}
		}
		if out := Displaced(placed, got); len(out) > 0 {
			t.Errorf("iteration %d: %v are pushed out", i, out)
		}
		placed = got
	}
}

func TestDisplacedPlaceholdersLoseTheirNode(t *testing.T) {
	nodes := nodesOf(3, "n", "4", "16Gi")
	loop := newLoop(t)
	base := []*v1.Pod{one("a", "n0"), one("b", "n0"), one("c", "n0"), one("d", "n0")}
	got, _ := loop.Next(nodes, base, nil, noon)
	placed := put(got, map[string]string{"web-rate-0": "n1", "web-rate-1": "n2", "web-rate-2": "n1", "web-rate-3": "n1"})
	// n1 has (4, 16): beside real (2, 8) two of its three have room. n2 has none
	// beside (4, 16).
	real := append(base, newPod("e", "n1", "2", "8Gi"), newPod("f", "n2", "4", "16Gi"))
	got, _ = loop.Next(nodes, real, placed, noon.Add(10*time.Second))
	wantWhere(t, got[:4], "web-rate-0=n1", "web-rate-1=", "web-rate-2=n1", "web-rate-3=")
	if diff := cmp.Diff([]string{"web-rate-1", "web-rate-3"}, Displaced(placed, got)); diff != "" {
		t.Errorf("pushed out: -want +got:\n%s", diff)
	}
	// Where a real pod has ended, there is room once more.
	real[5].Status.Phase = v1.PodSucceeded
	got, _ = loop.Next(nodes, real, put(got, map[string]string{"web-rate-1": "n2"}), noon.Add(20*time.Second))
	wantWhere(t, got[:4], "web-rate-0=n1", "web-rate-1=n2", "web-rate-2=n1", "web-rate-3=")
}

func TestPlaceholdersAreRemovedFromHighestIndex(t *testing.T) {
	nodes := nodesOf(2, "n", "4", "16Gi")
	loop := newLoop(t)
	four := podsOf(4, nodes[:1], "p", "1", "4Gi")
	got, _ := loop.Next(nodes, four, nil, noon)
	placed := put(got, map[string]string{"web-rate-1": "n1", "web-rate-2": "n1", "web-rate-3": "n1"})
	// Two go, once two have been wanted for ten minutes: the last, though they have
	// a node and the first has none.
	for _, it := range []struct {
		after time.Duration
		want  []string
	}{
		{10 * time.Second, []string{"web-rate-0=", "web-rate-1=n1", "web-rate-2=n1", "web-rate-3=n1"}},
		{609 * time.Second, []string{"web-rate-0=", "web-rate-1=n1", "web-rate-2=n1", "web-rate-3=n1"}},
		{610 * time.Second, []string{"web-rate-0=", "web-rate-1=n1"}},
	} {
		got, _ = loop.Next(nodes, four[:2], placed, noon.Add(it.after))
		wantWhere(t, got, it.want...)
		// To go is not to be pushed out: nobody has to find another node for them.
		if out := Displaced(placed, got); len(out) > 0 {
			t.Errorf("after %s: %v are pushed out", it.after, out)
		}
		placed = got
	}
	// Those that come back are new ones, wherever their like was.
	got, _ = loop.Next(nodes, four, placed, noon.Add(620*time.Second))
	wantWhere(t, got, "web-rate-0=", "web-rate-1=n1", "web-rate-2=", "web-rate-3=")
}

func TestPlaceholdersOfDeletedNodeLoseTheirNode(t *testing.T) {
	tests := map[string]func(*v1.Node){
		"removed":                 nil,
		"cordoned":                cordoned,
		"deleting":                deleting,
		"not ready for a minute":  readySince(v1.ConditionFalse, time.Minute),
		"no longer of the pool":   label("pool", "db"),
		"tainted by the drainer":  taint("drain", "", v1.TaintEffectNoSchedule),
		"smaller than it was":     func(n *v1.Node) { n.Status.Allocatable[v1.ResourceMemory] = resource.MustParse("1Gi") },
		"its kubelet takes fewer": func(n *v1.Node) { delete(n.Status.Allocatable, v1.ResourcePods) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			nodes, loop := nodesOf(3, "n", "4", "16Gi"), newLoop(t)
			pods := podsOf(3, nodes[:1], "p", "1", "4Gi")
			got, _ := loop.Next(nodes, pods, nil, noon)
			placed := put(got, map[string]string{"web-rate-0": "n1", "web-rate-1": "n2", "web-rate-2": "n1"})
			after := []*v1.Node{nodes[0], nodes[2]}
			if change != nil {
				change(nodes[1])
				after = nodes
			}
			got, _ = loop.Next(after, pods, placed, noon)
			// With a smaller node, placeholders are smaller and more.
			wantWhere(t, got[:3], "web-rate-0=", "web-rate-1=n2", "web-rate-2=")
			if diff := cmp.Diff([]string{"web-rate-0", "web-rate-2"}, Displaced(placed, got)); diff != "" {
				t.Errorf("pushed out: -want +got:\n%s", diff)
			}
		})
	}
}

func TestNodeAtMaxPodsHoldsNoPlaceholder(t *testing.T) {
	// Room for three pods: a real one and a daemon are there, others have ended.
	few := func(n *v1.Node) { n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("3") }
	nodes := append(nodesOf(1, "n", "64", "256Gi"), newNode("few", "64", "256Gi", few))
	loop := newLoop(t)
	pods := slices.Concat(podsOf(3, nodes[:1], "p", "1", "4Gi"), []*v1.Pod{
		one("q", "few"), newPod("d", "few", "0", "0", ownedBy("DaemonSet", true)), newPod("done", "few", "1", "4Gi", phase(v1.PodFailed)),
	})
	got, _ := loop.Next(nodes, pods, nil, noon)
	placed := put(got, map[string]string{"web-rate-0": "few", "web-rate-1": "n0", "web-rate-2": "few"})
	got, _ = loop.Next(nodes, pods, placed, noon)
	wantWhere(t, got, "web-rate-0=few", "web-rate-1=n0", "web-rate-2=", "web-rate-3=")
	got, _ = loop.Next(nodes, append(pods, newPod("tiny", "few", "0", "0")), got, noon)
	wantWhere(t, got, "web-rate-0=", "web-rate-1=n0", "web-rate-2=", "web-rate-3=")
}

func TestFirstPlaceholderKeepsNode(t *testing.T) {
	nodes := nodesOf(2, "n", "4", "16Gi")
	loop := newLoop(t)
	pods := podsOf(4, nodes[:1], "p", "1", "4Gi")
	got, _ := loop.Next(nodes, pods, nil, noon)
	placed := put(got, map[string]string{"web-rate-1": "n1", "web-rate-3": "n1"})
	// In whatever order the autoscaler gives them back.
	slices.Reverse(placed)
	got, _ = loop.Next(nodes, append(pods, newPod("q", "n1", "3", "12Gi")), placed, noon)
	wantWhere(t, got[:4], "web-rate-0=", "web-rate-1=n1", "web-rate-2=", "web-rate-3=")
}

func TestInputObjectsAreNotModified(t *testing.T) {
	nodes := nodesOf(3, "n", "4", "16Gi", taint("dedicated", "web", v1.TaintEffectNoSchedule))
	pods := append(podsOf(2, nodes, "p", "1", "4Gi"), newPod("d", "n0", "100m", "0", ownedBy("DaemonSet", true)))
	policy := dedicatedPolicy()
	loop, err := NewLoop(policy, "slack")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := loop.Next(nodes, pods, nil, noon)
	placed := put(first, map[string]string{"web-head-0": "n1"})
	pods = append(pods, newPod("q", "n1", "4", "16Gi")) // pushes it out
	// Each list with a copy of all it has.
	deep := func() (all []any) {
		all = append(all, policy.DeepCopy())
		for _, n := range nodes {
			all = append(all, n.DeepCopy())
		}
		for _, p := range slices.Concat(pods, placed) {
			all = append(all, p.DeepCopy())
		}
		return all
	}
	before := deep()
	got, _ := loop.Next(nodes, pods, placed, noon)
	if diff := cmp.Diff(before, deep()); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if got[0].Spec.NodeName != "" || placed[0].Spec.NodeName != "n1" {
		t.Errorf("web-head-0 is on %q, and was on %q; want nowhere, and n1", got[0].Spec.NodeName, placed[0].Spec.NodeName)
	}
}

// What becomes of the policy's object after NewLoop is no matter of the loop.
func TestLoopKeepsItsPolicy(t *testing.T) {
	policy := newPolicy("100%", uncovered, granularity(4))
	loop, err := NewLoop(policy, "slack")
	if err != nil {
		t.Fatal(err)
	}
	policy.Spec.Pool.NodeSelector["pool"], policy.Name = "db", "db"
	nodes := nodesOf(1, "n", "4", "16Gi")
	got, plan := loop.Next(nodes, []*v1.Pod{one("p", "n0")}, nil, noon)
	wantWhere(t, got, "web-rate-0=")
	if got[0].Spec.NodeSelector["pool"] != "web" || plan.Policy != "web" {
		t.Errorf("selector %v of policy %s, want web", got[0].Spec.NodeSelector, plan.Policy)
	}
}

func TestDisplaced(t *testing.T) {
	named := func(where map[string]string) (pods []*v1.Pod) {
		for name, node := range where {
			pods = append(pods, one(name, node))
		}
		return pods
	}
	before := named(map[string]string{"stays": "a", "detached": "a", "moved": "a", "gone": "a", "waits": "", "found": ""})
	after := named(map[string]string{"stays": "a", "detached": "", "moved": "b", "waits": "", "found": "a", "new": ""})
	if got := fmt.Sprint(Displaced(before, after)); got != "[detached moved]" {
		t.Errorf("%s, want [detached moved]", got)
	}
}
