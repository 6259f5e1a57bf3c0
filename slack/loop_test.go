package slack

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// newLoop returns the loop of a policy of 100% whose placeholders are at most a quarter of a node and not
// larger than the biggest pod: n pods of (1, 4) on nodes of (4, 16) need n placeholders of (1, 4).
func newLoop(t testing.TB, changes ...func(*v1alpha1.ResourceSlackSpec)) *Loop {
	t.Helper()
	loop, err := NewLoop(newPolicy("100%", append([]func(*v1alpha1.ResourceSlackSpec){uncovered, granularity(4)}, changes...)...), "slack")
	must.Succeed(t, err)
	return loop
}

// smallPod returns a pod of (1, 4) on a node.
func smallPod(name, node string) *v1.Pod { return newPod(name, node, "1", "4Gi") }

// placeOn returns copies of placeholders, put on nodes by name as an autoscaler does.
func placeOn(pods []*v1.Pod, nodes map[string]string) (placed []*v1.Pod) {
	for _, p := range pods {
		p = p.DeepCopy()
		if node := nodes[p.Name]; node != "" {
			p.Spec.NodeName = node
		}
		placed = append(placed, p)
	}
	return placed
}

// displaced returns the sorted names of the placeholders that had a node and are no longer on it, without those that were removed.
func displaced(before, after []*v1.Pod) (names []string) {
	for _, pod := range before {
		i := slices.IndexFunc(after, func(other *v1.Pod) bool { return other.Name == pod.Name })
		if i >= 0 && pod.Spec.NodeName != "" && after[i].Spec.NodeName != pod.Spec.NodeName {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// assignments returns the placeholders as name=node.
func assignments(pods []*v1.Pod) (all []string) {
	for _, p := range pods {
		all = append(all, p.Name+"="+p.Spec.NodeName)
	}
	return all
}

// checkAssignments checks the placeholders and their nodes.
func checkAssignments(t *testing.T, got []*v1.Pod, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, assignments(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEqualPlaceholdersHaveOneOwner(t *testing.T) {
	nodes := nodesOf(2, "n", "4", "16Gi")
	loop := newLoop(t, func(s *v1alpha1.ResourceSlackSpec) { s.CoverBiggestPod = nil })
	// (2, 8) is the head; the rest of (2, 8) + 2 x (1, 4) is 2 x (1, 4).
	got, _ := loop.Next(nodes, []*v1.Pod{newPod("a", "n0", "2", "8Gi"), smallPod("b", "n0"), smallPod("c", "n1")}, nil, noon)
	checkAssignments(t, got, "web-head-0=", "web-rate-0=", "web-rate-1=")
	names, uids := map[string]bool{}, map[types.UID]bool{}
	for _, p := range got {
		names[p.Namespace+"/"+p.Name], uids[p.UID] = true, true
		owner := metav1.GetControllerOf(p)
		if owner == nil || owner.UID != "1234" || owner.Kind != v1alpha1.Kind || owner.Name != "web" || len(p.OwnerReferences) != 1 {
			t.Errorf("%s has owners %v, want the policy only", p.Name, p.OwnerReferences)
		}
		if p.Namespace != "slack" || p.Labels[PlaceholderLabel] != "web" || p.Status.Phase != v1.PodPending {
			t.Errorf("%s has namespace %q, labels %v, phase %s", p.Name, p.Namespace, p.Labels, p.Status.Phase)
		}
	}
	if len(names) != len(got) || len(uids) != len(got) {
		t.Errorf("names %v and UIDs %v are not unique", names, uids)
	}
	// Except for name and UID, placeholders of a group are equal, so that an autoscaler can schedule them
	// together.
	a, b := got[1].DeepCopy(), got[2].DeepCopy()
	a.Name, a.UID = b.Name, b.UID
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("placeholders of one group differ:\n%s", diff)
	}
}

func TestPlaceholderKeepsNode(t *testing.T) {
	nodes := nodesOf(4, "n", "4", "16Gi")
	loop := newLoop(t)
	base := []*v1.Pod{smallPod("a", "n0"), smallPod("b", "n0"), smallPod("c", "n1")}
	first, _ := loop.Next(nodes, base, nil, noon)
	checkAssignments(t, first, "web-rate-0=", "web-rate-1=", "web-rate-2=")
	placed := placeOn(first, map[string]string{"web-rate-0": "n1", "web-rate-1": "n2", "web-rate-2": "n2"})
	for i, it := range []struct {
		pods []*v1.Pod
		// more are the placeholders after the first three.
		more []string
	}{
		{nil, nil},
		{[]*v1.Pod{smallPod("d", "n0")}, []string{"web-rate-3="}},
		{[]*v1.Pod{smallPod("d", "n0"), smallPod("e", "n3"), smallPod("f", "n3")}, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}},
		{[]*v1.Pod{smallPod("f", "n3")}, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}}, // cool-down
		{[]*v1.Pod{smallPod("g", "n1")}, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}}, // both fit the node
		{nil, []string{"web-rate-3=", "web-rate-4=", "web-rate-5="}},
	} {
		got, _ := loop.Next(nodes, slices.Concat(base, it.pods), placed, noon.Add(time.Duration(i+1)*10*time.Second))
		checkAssignments(t, got, append([]string{"web-rate-0=n1", "web-rate-1=n2", "web-rate-2=n2"}, it.more...)...)
		for j := range first {
			if got[j].UID != first[j].UID {
				t.Errorf("iteration %d: %s has UID %s, want %s", i, got[j].Name, got[j].UID, first[j].UID)
			}
		}
		if out := displaced(placed, got); len(out) > 0 {
			t.Errorf("iteration %d: %v are displaced", i, out)
		}
		placed = got
	}
}

func TestDisplacedPlaceholdersLoseTheirNode(t *testing.T) {
	nodes := nodesOf(3, "n", "4", "16Gi")
	loop := newLoop(t)
	base := []*v1.Pod{smallPod("a", "n0"), smallPod("b", "n0"), smallPod("c", "n0"), smallPod("d", "n0")}
	got, _ := loop.Next(nodes, base, nil, noon)
	placed := placeOn(got, map[string]string{"web-rate-0": "n1", "web-rate-1": "n2", "web-rate-2": "n1", "web-rate-3": "n1"})
	// n1 has (4, 16): with a pod of (2, 8), two of its three placeholders fit. n2 is full.
	current := append(base, newPod("e", "n1", "2", "8Gi"), newPod("f", "n2", "4", "16Gi"))
	got, _ = loop.Next(nodes, current, placed, noon.Add(10*time.Second))
	checkAssignments(t, got[:4], "web-rate-0=n1", "web-rate-1=", "web-rate-2=n1", "web-rate-3=")
	if diff := cmp.Diff([]string{"web-rate-1", "web-rate-3"}, displaced(placed, got)); diff != "" {
		t.Errorf("displaced: -want +got:\n%s", diff)
	}
	// A finished pod does not use its node.
	current[5].Status.Phase = v1.PodSucceeded
	got, _ = loop.Next(nodes, current, placeOn(got, map[string]string{"web-rate-1": "n2"}), noon.Add(20*time.Second))
	checkAssignments(t, got[:4], "web-rate-0=n1", "web-rate-1=n2", "web-rate-2=n1", "web-rate-3=")
}

func TestPlaceholdersAreRemovedFromHighestIndex(t *testing.T) {
	nodes := nodesOf(2, "n", "4", "16Gi")
	loop := newLoop(t)
	four := podsOf(4, nodes[:1], "p", "1", "4Gi")
	got, _ := loop.Next(nodes, four, nil, noon)
	placed := placeOn(got, map[string]string{"web-rate-1": "n1", "web-rate-2": "n1", "web-rate-3": "n1"})
	// The last two are removed after the cool-down, although they have a node and the first has none.
	for _, it := range []struct {
		after time.Duration
		want  []string
	}{
		{10 * time.Second, []string{"web-rate-0=", "web-rate-1=n1", "web-rate-2=n1", "web-rate-3=n1"}},
		{609 * time.Second, []string{"web-rate-0=", "web-rate-1=n1", "web-rate-2=n1", "web-rate-3=n1"}},
		{610 * time.Second, []string{"web-rate-0=", "web-rate-1=n1"}},
	} {
		got, _ = loop.Next(nodes, four[:2], placed, noon.Add(it.after))
		checkAssignments(t, got, it.want...)
		// Removed placeholders are not displaced.
		if out := displaced(placed, got); len(out) > 0 {
			t.Errorf("after %s: %v are displaced", it.after, out)
		}
		placed = got
	}
	// Placeholders of the same name that are added later have no node.
	got, _ = loop.Next(nodes, four, placed, noon.Add(620*time.Second))
	checkAssignments(t, got, "web-rate-0=", "web-rate-1=n1", "web-rate-2=", "web-rate-3=")
}

func TestPlaceholdersOfDeletedNodeLoseTheirNode(t *testing.T) {
	for name, change := range map[string]func(*v1.Node){
		"removed":                nil,
		"cordoned":               cordoned,
		"deleting":               deleting,
		"not ready for a minute": readySince(v1.ConditionFalse, time.Minute),
		"not in the pool":        label("pool", "db"),
		"tainted":                taint("drain", "", v1.TaintEffectNoSchedule),
		"less memory":            func(n *v1.Node) { n.Status.Allocatable[v1.ResourceMemory] = resource.MustParse("1Gi") },
		"no pods":                func(n *v1.Node) { delete(n.Status.Allocatable, v1.ResourcePods) },
	} {
		t.Run(name, func(t *testing.T) {
			nodes, loop := nodesOf(3, "n", "4", "16Gi"), newLoop(t)
			pods := podsOf(3, nodes[:1], "p", "1", "4Gi")
			got, _ := loop.Next(nodes, pods, nil, noon)
			placed := placeOn(got, map[string]string{"web-rate-0": "n1", "web-rate-1": "n2", "web-rate-2": "n1"})
			after := []*v1.Node{nodes[0], nodes[2]}
			if change != nil {
				change(nodes[1])
				after = nodes
			}
			got, _ = loop.Next(after, pods, placed, noon)
			// A smaller node makes placeholders smaller and more numerous.
			checkAssignments(t, got[:3], "web-rate-0=", "web-rate-1=n2", "web-rate-2=")
			if diff := cmp.Diff([]string{"web-rate-0", "web-rate-2"}, displaced(placed, got)); diff != "" {
				t.Errorf("displaced: -want +got:\n%s", diff)
			}
		})
	}
}

func TestNodeAtMaxPodsHoldsNoPlaceholder(t *testing.T) {
	// The node supports three pods: it has one, a daemon pod and a finished pod.
	few := func(n *v1.Node) { n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("3") }
	nodes := append(nodesOf(1, "n", "64", "256Gi"), newNode("few", "64", "256Gi", few))
	loop := newLoop(t)
	pods := slices.Concat(podsOf(3, nodes[:1], "p", "1", "4Gi"), []*v1.Pod{
		smallPod("q", "few"),
		newPod("d", "few", "0", "0", ownedBy("DaemonSet", true)),
		newPod("done", "few", "1", "4Gi", phase(v1.PodFailed)),
	})
	got, _ := loop.Next(nodes, pods, nil, noon)
	placed := placeOn(got, map[string]string{"web-rate-0": "few", "web-rate-1": "n0", "web-rate-2": "few"})
	got, _ = loop.Next(nodes, pods, placed, noon)
	checkAssignments(t, got, "web-rate-0=few", "web-rate-1=n0", "web-rate-2=", "web-rate-3=")
	got, _ = loop.Next(nodes, append(pods, newPod("tiny", "few", "0", "0")), got, noon)
	checkAssignments(t, got, "web-rate-0=", "web-rate-1=n0", "web-rate-2=", "web-rate-3=")
}

func TestFirstPlaceholderKeepsNode(t *testing.T) {
	nodes := nodesOf(2, "n", "4", "16Gi")
	loop := newLoop(t)
	pods := podsOf(4, nodes[:1], "p", "1", "4Gi")
	got, _ := loop.Next(nodes, pods, nil, noon)
	placed := placeOn(got, map[string]string{"web-rate-1": "n1", "web-rate-3": "n1"})
	// The order of the placed placeholders does not matter.
	slices.Reverse(placed)
	got, _ = loop.Next(nodes, append(pods, newPod("q", "n1", "3", "12Gi")), placed, noon)
	checkAssignments(t, got[:4], "web-rate-0=", "web-rate-1=n1", "web-rate-2=", "web-rate-3=")
}

func TestInputObjectsAreNotModified(t *testing.T) {
	nodes := nodesOf(3, "n", "4", "16Gi", taint("dedicated", "web", v1.TaintEffectNoSchedule))
	pods := append(podsOf(2, nodes, "p", "1", "4Gi"), newPod("d", "n0", "100m", "0", ownedBy("DaemonSet", true)))
	policy := dedicatedPolicy()
	loop, err := NewLoop(policy, "slack")
	must.Succeed(t, err)
	first, _ := loop.Next(nodes, pods, nil, noon)
	placed := placeOn(first, map[string]string{"web-head-0": "n1"})
	pods = append(pods, newPod("q", "n1", "4", "16Gi")) // displaces the placeholder
	// deep returns copies of all input objects.
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
		t.Errorf("web-head-0 is on %q, its input is on %q; want no node, and n1", got[0].Spec.NodeName, placed[0].Spec.NodeName)
	}
}

// TestLoopKeepsItsPolicy checks that changes of the policy object after NewLoop do not affect the loop.
func TestLoopKeepsItsPolicy(t *testing.T) {
	policy := newPolicy("100%", uncovered, granularity(4))
	loop, err := NewLoop(policy, "slack")
	must.Succeed(t, err)
	policy.Spec.Pool.NodeSelector["pool"], policy.Name = "db", "db"
	nodes := nodesOf(1, "n", "4", "16Gi")
	got, plan := loop.Next(nodes, []*v1.Pod{smallPod("p", "n0")}, nil, noon)
	checkAssignments(t, got, "web-rate-0=")
	if got[0].Spec.NodeSelector["pool"] != "web" || plan.Policy != "web" {
		t.Errorf("selector %v, policy %s, want web", got[0].Spec.NodeSelector, plan.Policy)
	}
}
