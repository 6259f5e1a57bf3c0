package slack

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

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
	loop, err := NewLoop(newPolicy("100%", granularity(4)), "slack")
	must.Succeed(t, err)
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
