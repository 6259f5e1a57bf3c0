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
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// load is CPU in millicores, memory in bytes and a number of pods.
type load [3]int64

// loadOf adds up a pod the dumb way: all pods here have one container.
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

// holds reports whether there is room for one more pod beside those that are
// there. Like the scheduler, it does not ask for what the pod does not request.
func (l load) holds(there, more load) bool {
	for i := range l {
		if more[i] > 0 && there[i]+more[i] > l[i] {
			return false
		}
	}
	return true
}

// model is a cluster as somebody would reckon with it who has all the time of
// the world.
type model struct {
	nodes map[string]*v1.Node
	pods  map[string]*v1.Pod
}

// room returns what a node has, and whether placeholders may be on it at all.
func (m *model) room(name string) (load, bool) {
	n, ok := m.nodes[name]
	if !ok || n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || n.Labels["pool"] != "web" {
		return load{}, false
	}
	return load{n.Status.Allocatable.Cpu().MilliValue(), n.Status.Allocatable.Memory().Value(), n.Status.Allocatable.Pods().Value()}, true
}

// real returns what the real pods on a node request.
func (m *model) real(name string) (sum load) {
	for _, p := range m.pods {
		if p.Spec.NodeName == name && p.Status.Phase == v1.PodRunning && p.Labels[PlaceholderLabel] == "" {
			sum = sum.plus(loadOf(p))
		}
	}
	return sum
}

// change makes nodes and pods come, change and go. Real pods come whether or
// not there is room: a scheduler puts them where placeholders are.
func (m *model) change(t *rapid.T) {
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		name := fmt.Sprint("node-", rapid.IntRange(0, 4).Draw(t, "node"))
		id := fmt.Sprint("pod-", rapid.IntRange(0, 14).Draw(t, "pod"))
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0:
			delete(m.nodes, name)
		case 1, 2, 3:
			m.nodes[name] = newNode(name, rapid.SampledFrom([]string{"2", "4", "4", "8"}).Draw(t, "CPU"), rapid.SampledFrom([]string{"4Gi", "16Gi", "16Gi"}).Draw(t, "memory"),
				rapid.SampledFrom([]func(*v1.Node){func(*v1.Node) {}, func(*v1.Node) {}, func(*v1.Node) {}, cordoned, taint("gpu", "", v1.TaintEffectNoSchedule), label("pool", "db")}).Draw(t, "state"))
			m.nodes[name].Status.Allocatable[v1.ResourcePods] = *resource.NewQuantity(rapid.SampledFrom([]int64{0, 2, 5, 110}).Draw(t, "slots"), resource.DecimalSI)
		case 4, 5:
			delete(m.pods, id)
		default:
			m.pods[id] = newPod(id, name, rapid.SampledFrom([]string{"0", "250m", "500m", "1", "3"}).Draw(t, "CPU"), rapid.SampledFrom([]string{"0", "1Gi", "1Gi", "4Gi"}).Draw(t, "memory"),
				rapid.SampledFrom([]func(*v1.Pod){func(*v1.Pod) {}, func(*v1.Pod) {}, func(*v1.Pod) {}, phase(v1.PodSucceeded), placeholderOf("other"), ownedBy("DaemonSet", true)}).Draw(t, "kind"))
		}
	}
}

// lists returns what an autoscaler would list, by name.
func (m *model) lists() (nodes []*v1.Node, pods []*v1.Pod) {
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		nodes = append(nodes, m.nodes[name])
	}
	for _, id := range slices.Sorted(maps.Keys(m.pods)) {
		pods = append(pods, m.pods[id])
	}
	return nodes, pods
}

// autoscale puts placeholders without a node on any with room, or leaves them.
func (m *model) autoscale(t *rapid.T, placeholders []*v1.Pod) (placed []*v1.Pod) {
	used := map[string]load{}
	for name := range m.nodes {
		used[name] = m.real(name)
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
				if room, ok := m.room(name); ok && room.holds(used[name], loadOf(p)) {
					p.Spec.NodeName, used[name] = name, used[name].plus(loadOf(p))
					break
				}
			}
		}
		placed = append(placed, p)
	}
	return placed
}

// check holds what Next returned against the cluster.
func (m *model) check(t *rapid.T, plan Plan, before, after []*v1.Pod) {
	// Which there are follows from the plan: each name once, in its order.
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
		t.Fatalf("placeholders are not those of the plan, once each:\n%s", diff)
	}
	was := map[string]string{}
	for _, p := range before {
		was[p.Name] = p.Spec.NodeName
	}
	kept := map[string]load{}
	for _, p := range after {
		name, node := p.Name, p.Spec.NodeName
		if node != "" && node != was[name] {
			t.Fatalf("%s is on %q, was on %q", name, node, was[name])
		}
		old := was[name]
		if old == "" {
			continue
		}
		room, ok := m.room(old)
		fits := ok && room.holds(m.real(old).plus(kept[old]), loadOf(p))
		if fits != (node != "") {
			t.Fatalf("%s of %v was on %s, which has %v (%t), real %v and kept %v before it: it is on %q", name, loadOf(p), old, room, ok, m.real(old), kept[old], node)
		}
		if node != "" {
			kept[node] = kept[node].plus(loadOf(p))
		}
	}
	m.checkRoom(t, kept)
}

// checkRoom checks that no node has more than it can hold, but for what real
// pods have brought about: of that, nothing is kept.
func (m *model) checkRoom(t *rapid.T, kept map[string]load) {
	for node, sum := range kept {
		room, ok := m.room(node)
		if !ok {
			t.Fatalf("placeholders of %v are kept on %s, which is not there for them", sum, node)
		}
		for i, real := range m.real(node) {
			if sum[i] > 0 && real+sum[i] > room[i] {
				t.Fatalf("%s has %v, real pods of %v and placeholders of %v: too much of resource %d", node, room, m.real(node), sum, i)
			}
		}
	}
}

// Whatever happens to nodes and pods, and wherever the autoscaler puts
// placeholders, they stay exactly where there is room for them.
func TestLoopMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := newPolicy(rapid.SampledFrom([]string{"0", "10%", "50%", "1.5"}).Draw(t, "rate"), granularity(rapid.Int32Range(1, 8).Draw(t, "granularity")))
		if rapid.Bool().Draw(t, "of what is allocatable") {
			policy.Spec.Base, policy.Spec.MinRate = v1alpha1.BaseAllocatable, "40%"
		}
		policy.Spec.CoverBiggestPod = new(rapid.Bool().Draw(t, "cover"))
		if limit := rapid.Int32Range(0, 5).Draw(t, "limit"); limit > 0 {
			policy.Spec.MaxPlaceholders = new(4 * limit)
		}
		loop, err := NewLoop(policy, "slack")
		if err != nil {
			t.Fatal(err)
		}
		twin, err := NewLoop(policy, "slack")
		if err != nil {
			t.Fatal(err)
		}
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
			// In another order of everything, the same comes of it.
			slices.Reverse(nodes)
			slices.Reverse(pods)
			again, planAgain := twin.Next(nodes, pods, rapid.Permutation(placed).Draw(t, "placed"), now)
			if diff := cmp.Diff(after, again) + cmp.Diff(plan, planAgain); diff != "" {
				t.Fatalf("the same again: -first +second:\n%s", diff)
			}
			placed = m.autoscale(t, after)
		}
	})
}

// An iteration of a large cluster: 5,000 nodes with 30 pods each, a tenth of
// what they request to spare, in placeholders that all have a node.
func BenchmarkLoopNext(b *testing.B) {
	var nodes []*v1.Node
	var pods []*v1.Pod
	for n := range 5000 {
		cores := 16 * (1 + n%4)
		node := newNode(fmt.Sprint("node-", n), fmt.Sprint(cores), fmt.Sprint(4*cores, "Gi"))
		nodes = append(nodes, node)
		for p := range 30 {
			i := n*30 + p
			pod := newPod(fmt.Sprint("pod-", i), node.Name, fmt.Sprint(100+10*(i%50), "m"), fmt.Sprint(256+64*(i%20), "Mi"))
			if p < 3 {
				ownedBy("DaemonSet", true)(pod)
			}
			pods = append(pods, pod)
		}
	}
	loop, err := NewLoop(newPolicy("10%"), "slack")
	if err != nil {
		b.Fatal(err)
	}
	placed, plan := loop.Next(nodes, pods, nil, noon)
	// One after the other: each node has some cores to spare.
	for i, p := range placed {
		p.Spec.NodeName = nodes[i%len(nodes)].Name
	}
	if !plan.Feasible {
		b.Fatal(plan.Reasons)
	}
	b.ReportAllocs()
	for b.Loop() {
		var after []*v1.Pod
		after, _ = loop.Next(nodes, pods, placed, noon)
		if len(after) != len(placed) {
			b.Fatalf("%d placeholders, were %d", len(after), len(placed))
		}
		placed = after
	}
	b.ReportMetric(float64(len(placed)), "placeholders")
}
