package slack

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// load is CPU in millicores, memory in bytes and the number of pods.
type load [3]int64

// loadOf returns the load of a pod with one container.
func loadOf(pod *v1.Pod) load {
	requests := pod.Spec.Containers[0].Resources.Requests
	return load{requests.Cpu().MilliValue(), requests.Memory().Value(), 1}
}

func (l load) plus(other load) load {
	for i := range l {
		l[i] += other[i]
	}
	return l
}

// fits reports whether a pod fits in addition to the used load. Like the scheduler, it ignores resources
// that the pod does not request.
func (l load) fits(used, pod load) bool {
	for i := range l {
		if pod[i] > 0 && used[i]+pod[i] > l[i] {
			return false
		}
	}
	return true
}

// model is an independent implementation that counts everything in each iteration.
type model struct {
	nodes map[string]*v1.Node
	pods  map[string]*v1.Pod
}

// capacity returns the capacity of a node, and whether placeholders may be on it.
func (m *model) capacity(name string) (load, bool) {
	n, ok := m.nodes[name]
	if !ok || n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || n.Labels["pool"] != "web" {
		return load{}, false
	}
	return load{n.Status.Allocatable.Cpu().MilliValue(), n.Status.Allocatable.Memory().Value(), n.Status.Allocatable.Pods().Value()}, true
}

// used returns the requests of the pods on a node, without placeholders.
func (m *model) used(name string) (sum load) {
	for _, p := range m.pods {
		if p.Spec.NodeName == name && p.Status.Phase == v1.PodRunning && p.Labels[PlaceholderLabel] == "" {
			sum = sum.plus(loadOf(p))
		}
	}
	return sum
}

// change adds, changes and deletes nodes and pods. Pods may exceed a node: a scheduler puts them where
// placeholders are.
func (m *model) change(t *rapid.T) {
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		name := fmt.Sprint("node-", rapid.IntRange(0, 4).Draw(t, "node"))
		id := fmt.Sprint("pod-", rapid.IntRange(0, 14).Draw(t, "pod"))
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0:
			delete(m.nodes, name)
		case 1, 2, 3:
			m.nodes[name] = newNode(name, rapid.SampledFrom([]string{"2", "4", "4", "8"}).Draw(t, "CPU"),
				rapid.SampledFrom([]string{"4Gi", "16Gi", "16Gi"}).Draw(t, "memory"),
				rapid.SampledFrom([]func(*v1.Node){func(*v1.Node) {}, func(*v1.Node) {}, func(*v1.Node) {}, cordoned, taint("gpu", "",
					v1.TaintEffectNoSchedule), label("pool", "db")}).Draw(t, "state"))
			m.nodes[name].Status.Allocatable[v1.ResourcePods] = *resource.NewQuantity(rapid.SampledFrom([]int64{0, 2, 5, 110}).Draw(t, "slots"),
				resource.DecimalSI)
		case 4, 5:
			delete(m.pods, id)
		default:
			m.pods[id] = newPod(id, name, rapid.SampledFrom([]string{"0", "250m", "500m", "1", "3"}).Draw(t, "CPU"),
				rapid.SampledFrom([]string{"0", "1Gi", "1Gi", "4Gi"}).Draw(t, "memory"),
				rapid.SampledFrom([]func(*v1.Pod){
					func(*v1.Pod) {}, func(*v1.Pod) {}, func(*v1.Pod) {}, phase(v1.PodSucceeded), placeholderOf("other"),
					ownedBy("DaemonSet", true),
				}).Draw(t, "kind"))
		}
	}
}

// lists returns nodes and pods sorted by name.
func (m *model) lists() (nodes []*v1.Node, pods []*v1.Pod) {
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		nodes = append(nodes, m.nodes[name])
	}
	for _, id := range slices.Sorted(maps.Keys(m.pods)) {
		pods = append(pods, m.pods[id])
	}
	return nodes, pods
}

// autoscale puts some placeholders without a node on nodes that they fit.
func (m *model) autoscale(t *rapid.T, placeholders []*v1.Pod) (placed []*v1.Pod) {
	used := map[string]load{}
	for name := range m.nodes {
		used[name] = m.used(name)
	}
	for _, p := range placeholders {
		used[p.Spec.NodeName] = used[p.Spec.NodeName].plus(loadOf(p))
	}
	for _, p := range placeholders {
		p = p.DeepCopy()
		if p.Spec.NodeName == "" {
			first := rapid.IntRange(0, 6).Draw(t, "first node to try")
			for i := first; i < 5; i++ {
				name := fmt.Sprint("node-", i)
				if capacity, ok := m.capacity(name); ok && capacity.fits(used[name], loadOf(p)) {
					p.Spec.NodeName, used[name] = name, used[name].plus(loadOf(p))
					break
				}
			}
		}
		placed = append(placed, p)
	}
	return placed
}

// check compares the result of Next with the model.
func (m *model) check(t *rapid.T, plan Plan, before, after []*v1.Pod) {
	// The plan's placeholders are returned, each name once, in order.
	var names, got []string
	for _, group := range plan.Groups {
		for i := range group.Count {
			names = append(names, fmt.Sprintf("%s-%d", group.Name, i))
		}
	}
	unique := map[string]bool{}
	for _, p := range after {
		got = append(got, p.Name)
		unique[p.Name] = true
	}
	if diff := cmp.Diff(names, got); diff != "" || len(unique) != len(got) {
		t.Fatalf("placeholders differ from the plan:\n%s", diff)
	}
	previous, uids := map[string]string{}, map[string]types.UID{}
	for _, p := range before {
		previous[p.Name], uids[p.Name] = p.Spec.NodeName, p.UID
	}
	kept := map[string]load{}
	for _, p := range after {
		name, node := p.Name, p.Spec.NodeName
		if uid, exists := uids[name]; exists && p.UID != uid {
			t.Fatalf("%s has UID %s, previously %s", name, p.UID, uid)
		}
		if node != "" && node != previous[name] {
			t.Fatalf("%s is on %q, previously on %q", name, node, previous[name])
		}
		old := previous[name]
		if old == "" {
			continue
		}
		capacity, ok := m.capacity(old)
		fits := ok && capacity.fits(m.used(old).plus(kept[old]), loadOf(p))
		if fits != (node != "") {
			t.Fatalf("%s of %v was on %s with capacity %v (%t), pods %v and placeholders %v: it is on %q", name, loadOf(p), old, capacity,
				ok, m.used(old), kept[old], node)
		}
		if node != "" {
			kept[node] = kept[node].plus(loadOf(p))
		}
	}
	m.checkCapacity(t, kept)
}

// checkCapacity checks that placeholders do not exceed the capacity of any node.
func (m *model) checkCapacity(t *rapid.T, kept map[string]load) {
	for node, sum := range kept {
		capacity, ok := m.capacity(node)
		if !ok {
			t.Fatalf("placeholders of %v are on %s, which is not usable", sum, node)
		}
		for i, used := range m.used(node) {
			if sum[i] > 0 && used+sum[i] > capacity[i] {
				t.Fatalf(
					"%s has capacity %v, pods of %v and placeholders of %v: resource %d is exceeded", node, capacity, m.used(node), sum, i,
				)
			}
		}
	}
}

// TestLoopMatchesModel checks for random changes of nodes and pods that placeholders keep their node
// exactly if they still fit it.
func TestLoopMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := newPolicy(rapid.SampledFrom([]string{"0", "10%", "50%", "150%"}).Draw(t, "rate"),
			granularity(rapid.Int32Range(1, 8).Draw(t, "granularity")))
		if rapid.Bool().Draw(t, "base Allocatable") {
			policy.Spec.Base, policy.Spec.MinRate = v1alpha1.BaseAllocatable, "40%"
		}
		policy.Spec.CoverBiggestPod = new(rapid.Bool().Draw(t, "cover"))
		if limit := rapid.Int32Range(0, 5).Draw(t, "limit"); limit > 0 {
			policy.Spec.MaxPlaceholders = new(4 * limit)
		}
		loop, err := NewLoop(policy, "slack")
		must.Succeed(t, err)
		twin, err := NewLoop(policy, "slack")
		must.Succeed(t, err)
		m, now := &model{nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}}, noon
		for i := range 3 {
			name := fmt.Sprint("node-", i)
			m.nodes[name] = newNode(name, "4", "16Gi")
		}
		var placed []*v1.Pod
		for range rapid.IntRange(2, 8).Draw(t, "iterations") {
			m.change(t)
			now = now.Add(time.Duration(rapid.Int64Range(1, 700).Draw(t, "seconds")) * time.Second)
			nodes, pods := m.lists()
			after, plan := loop.Next(nodes, pods, placed, now)
			m.check(t, plan, placed, after)
			// The order of nodes, pods and placeholders does not matter.
			slices.Reverse(nodes)
			slices.Reverse(pods)
			again, planAgain := twin.Next(nodes, pods, rapid.Permutation(placed).Draw(t, "placed"), now)
			if diff := cmp.Diff(after, again) + cmp.Diff(plan, planAgain); diff != "" {
				t.Fatalf("result depends on the order: -first +second:\n%s", diff)
			}
			placed = m.autoscale(t, after)
		}
	})
}
