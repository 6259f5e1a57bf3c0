package autoscaler

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

func TestScaleUp(t *testing.T) {
	small, big := Group{Allocatable: cores(4, 110), Headroom: 100, Cost: 1}, Group{Allocatable: cores(16, 110), Headroom: 100, Cost: 4}
	pods := func(n int, size int64) (all []Item) {
		for range n {
			all = append(all, Item{Requests: cores(size, 1), Class: 1})
		}
		return all
	}
	placeholders := func(n int, size int64) []Item {
		all := pods(n, size)
		for i := range all {
			all[i].Placeholder = true
		}
		return all
	}
	few := func(g Group, headroom int) Group { g.Headroom = headroom; return g }
	for name, tc := range map[string]struct {
		pods     []Item
		booting  []int
		groups   []Group
		want     []int
		outcomes []PodOutcome
	}{
		// 5 x 1 core need two nodes.
		"two nodes": {
			pods: pods(5, 1), groups: []Group{small}, want: []int{2},
			outcomes: []PodOutcome{NodeAdded, NodeAdded, NodeAdded, NodeAdded, NodeAdded},
		},
		// A node is booting, which fits 4.
		"one is booting": {
			pods: pods(5, 1), booting: []int{0}, groups: []Group{small}, want: []int{1},
			outcomes: []PodOutcome{FitsBootingNode, FitsBootingNode, FitsBootingNode, FitsBootingNode, NodeAdded},
		},
		// 5 nodes at 1.5 against 2 at 4: 7.5 against 8; at 1.7 8.5 against 8.
		"five small nodes": {
			pods: pods(20, 1), groups: []Group{{Allocatable: cores(4, 110), Headroom: 100, Cost: 1.5}, big},
			want: []int{5, 0},
		},
		"two big nodes": {
			pods: pods(20, 1), groups: []Group{{Allocatable: cores(4, 110), Headroom: 100, Cost: 1.7}, big},
			want: []int{0, 2},
		},
		// The small node fits 4 of 12 cores and 4 of 5 pods for 1: 1 / (1/3 + 4/5) =
		// 0.88. The big node fits all for 4: 4 / 2 = 2. The small node is added, and
		// then the big one for the remaining pod.
		"one of each": {pods: append(pods(4, 1), pods(1, 8)...), groups: []Group{small, big}, want: []int{1, 1}},
		// Equal prices, fewer nodes: 4 x 1 against 1 x 4.
		"fewer nodes": {pods: pods(16, 1), groups: []Group{small, big}, want: []int{0, 1}},
		// Two nodes fit 8 pods.
		"up to the maximum": {
			pods: pods(9, 1), groups: []Group{few(small, 2)}, want: []int{2},
			outcomes: []PodOutcome{NodeAdded, NodeAdded, NodeAdded, NodeAdded, NodeAdded, NodeAdded, NodeAdded, NodeAdded, GroupsFull},
		},
		"too large": {pods: pods(1, 17), groups: []Group{small, big}, want: []int{0, 0}, outcomes: []PodOutcome{FitsNoGroup}},
		// Large pods first: 3+1 and 3+1 rather than 1+1 and 3 and 3.
		"decreasing": {pods: append(pods(2, 1), pods(2, 3)...), groups: []Group{small}, want: []int{2}},
		// One more node: it is used for the pods, although the placeholder is larger.
		"placeholders last": {
			pods: append(placeholders(1, 4), pods(4, 1)...), groups: []Group{few(small, 1)}, want: []int{1},
			outcomes: []PodOutcome{GroupsFull, NodeAdded, NodeAdded, NodeAdded, NodeAdded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ScaleUp(t.Context(), tc.pods, tc.booting, tc.groups, newFakeProbe(t))
			if diff := gocmp.Diff(tc.want, got.Nodes); diff != "" {
				t.Errorf("nodes: -want +got:\n%s", diff)
			}
			if tc.outcomes != nil && !slices.Equal(got.Outcomes, tc.outcomes) {
				t.Errorf("outcomes %v, want %v", got.Outcomes, tc.outcomes)
			}
		})
	}
}

// naiveScaleUp is ScaleUp without optimizations: every pod is tried on every node.
type naiveScaleUp struct {
	pods       []Item
	groups     []Group
	rule       func(pod, group int) bool
	free       []resources.Amounts
	nodeGroups []int
}

// place assigns a pod to the first node from an index on that it fits.
func (d *naiveScaleUp) place(pod, from int) bool {
	for node := from; node < len(d.free); node++ {
		if d.pods[pod].Requests.FitsIn(d.free[node]) && d.rule(pod, d.nodeGroups[node]) {
			d.free[node] = d.free[node].Minus(d.pods[pod].Requests)
			return true
		}
	}
	return false
}

func (d *naiveScaleUp) fits(pod, group int) bool {
	return d.pods[pod].Requests.FitsIn(d.groups[group].Allocatable) && d.rule(pod, group)
}

func (d *naiveScaleUp) addNode(group int) {
	d.free, d.nodeGroups = append(d.free, d.groups[group].Allocatable), append(d.nodeGroups, group)
}

// fill assigns pods to new nodes of a group, at most more nodes.
func (d *naiveScaleUp) fill(group, more int, pods []int) (placed, left []int, added int) {
	first := len(d.free)
	for _, pod := range pods {
		switch {
		case d.place(pod, first):
			placed = append(placed, pod)
		case d.fits(pod, group) && len(d.free)-first < more:
			d.addNode(group)
			d.place(pod, len(d.free)-1)
			placed = append(placed, pod)
		default:
			left = append(left, pod)
		}
	}
	return placed, left, len(d.free) - first
}

func (d *naiveScaleUp) sum(pods []int) (sum resources.Amounts) {
	for _, pod := range pods {
		sum = sum.Add(d.pods[pod].Requests)
	}
	return sum
}

func (d *naiveScaleUp) scaleUp(booting []int) ScaleUpPlan {
	g := ScaleUpPlan{Nodes: make([]int, len(d.groups)), Outcomes: make([]PodOutcome, len(d.pods))}
	for _, group := range booting {
		d.addNode(group)
	}
	var largest resources.Amounts
	for _, group := range d.groups {
		largest = largest.Max(group.Allocatable)
	}
	var left []int
	order := make([]int, len(d.pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		last := map[bool]int{true: 1}
		return cmp.Or(last[d.pods[a].Placeholder]-last[d.pods[b].Placeholder],
			cmp.Compare(d.pods[b].Requests.MaxFraction(largest), d.pods[a].Requests.MaxFraction(largest)))
	})
	for _, pod := range order {
		if d.place(pod, 0) {
			g.Outcomes[pod] = FitsBootingNode
		} else {
			left = append(left, pod)
		}
	}
	for {
		best, price, nodes := -1, 0.0, 0
		for group := range d.groups {
			attempt := &naiveScaleUp{d.pods, d.groups, d.rule, slices.Clone(d.free), slices.Clone(d.nodeGroups)}
			placed, _, added := attempt.fill(group, d.groups[group].Headroom-g.Nodes[group], left)
			if added == 0 {
				continue
			}
			all, solved, part := d.sum(left), d.sum(placed), 0.0
			for r, amount := range all.All() {
				part += float64(solved.Get(r)) / float64(amount)
			}
			if p := float64(added) * d.groups[group].Cost / part; best < 0 || p < price || p == price && added < nodes {
				best, price, nodes = group, p, added
			}
		}
		if best < 0 {
			break
		}
		var placed []int
		placed, left, nodes = d.fill(best, d.groups[best].Headroom-g.Nodes[best], left)
		g.Nodes[best] += nodes
		for _, pod := range placed {
			g.Outcomes[pod] = NodeAdded
		}
	}
	for _, pod := range left {
		g.Outcomes[pod] = FitsNoGroup
		for group := range d.groups {
			if d.fits(pod, group) {
				g.Outcomes[pod] = GroupsFull
			}
		}
	}
	return g
}

func gpus(n int64) resources.ExtendedAmounts {
	return resources.ExtendedAmounts{}.With("nvidia.com/gpu", n)
}

// draw draws pods of a few kinds, and a rule of which group each fits on.
func draw(t *rapid.T, groups int) (pods []Item, rule func(pod, group int) bool) {
	amounts := rapid.Custom(func(t *rapid.T) resources.Amounts {
		return resources.Amounts{
			CPU: rapid.Int64Range(0, 5).Draw(t, "CPU"), Memory: rapid.Int64Range(0, 5).Draw(t, "memory"),
			Extended: gpus(rapid.Int64Range(0, 1).Draw(t, "GPU")), Pods: 1,
		}
	})
	kinds := rapid.SliceOfN(amounts, 1, 4).Draw(t, "kinds")
	allowed := rapid.SliceOfN(rapid.SliceOfN(rapid.Bool(), groups, groups), 4, 4).Draw(t, "allowed")
	rules := []int{}
	for range rapid.IntRange(0, 30).Draw(t, "pods") {
		class := rapid.IntRange(0, 3).Draw(t, "class")
		pods = append(pods, Item{
			Requests: rapid.SampledFrom(kinds).Draw(t, "kind"), Class: class,
			Placeholder: rapid.Bool().Draw(t, "placeholder"),
		})
		rules = append(rules, class)
	}
	return pods, func(pod, group int) bool { return group < 0 || allowed[rules[pod]][group] }
}

// TestScaleUpEqualsNaive compares ScaleUp with the naive implementation, and verifies
// that no group exceeds its maximum size, no node its capacity, and that no pod is
// left that would fit.
func TestScaleUpEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []Group
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			groups = append(groups, Group{
				Allocatable: resources.Amounts{
					CPU: rapid.Int64Range(0, 12).Draw(t, "CPU"), Memory: rapid.Int64Range(0, 12).Draw(t, "memory"),
					Extended: gpus(rapid.Int64Range(0, 2).Draw(t, "GPU")), Pods: rapid.Int64Range(1, 6).Draw(t, "slots"),
				},
				Headroom: rapid.IntRange(0, 5).Draw(t, "more"), Cost: float64(rapid.IntRange(0, 3).Draw(t, "cost")),
			})
		}
		pods, rule := draw(t, len(groups))
		booting := rapid.SliceOfN(rapid.IntRange(0, len(groups)-1), 0, 3).Draw(t, "booting")
		probe := &fakeProbe{t: t, assigned: map[int]int{}, rule: rule}
		got := ScaleUp(t.Context(), pods, booting, groups, probe)
		want := (&naiveScaleUp{pods: pods, groups: groups, rule: rule}).scaleUp(booting)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("-naive +got:\n%s", diff)
		}
		free := map[int]resources.Amounts{}
		for node, group := range probe.groups {
			free[node] = groups[group].Allocatable
		}
		for pod, node := range probe.assigned {
			if !pods[pod].Requests.FitsIn(free[node]) || !rule(pod, probe.groups[node]) {
				t.Fatalf("pod %d does not fit node %d", pod, node)
			}
			free[node] = free[node].Minus(pods[pod].Requests)
		}
		for group := range groups {
			if got.Nodes[group] > groups[group].Headroom {
				t.Fatalf("group %d gets %d nodes, at most %d are allowed", group, got.Nodes[group], groups[group].Headroom)
			}
		}
		for pod, outcome := range got.Outcomes {
			if _, on := probe.assigned[pod]; on != (outcome == FitsBootingNode || outcome == NodeAdded) {
				t.Fatalf("pod %d has the outcome %d, assigned: %t", pod, outcome, on)
			}
			for group := range groups {
				if outcome == GroupsFull && got.Nodes[group] < groups[group].Headroom &&
					pods[pod].Requests.FitsIn(groups[group].Allocatable) && rule(pod, group) {
					t.Fatalf("pod %d is left, but fits on group %d", pod, group)
				}
			}
		}
	})
}

// BenchmarkScaleUp measures a pass with two groups and 5,000 pending pods of 500
// kinds.
func BenchmarkScaleUp(b *testing.B) {
	var pods []Item
	for i := range int64(5000) {
		pods = append(pods, Item{Requests: resources.Amounts{CPU: 100 + 10*(i%50), Memory: 1 << 28 * (1 + i%10), Pods: 1}, Class: 1})
	}
	groups := []Group{
		{Allocatable: resources.Amounts{CPU: 16000, Memory: 64 << 30, Pods: 110}, Headroom: 1000, Cost: 1},
		{Allocatable: resources.Amounts{CPU: 64000, Memory: 256 << 30, Pods: 110}, Headroom: 1000, Cost: 4.1},
	}
	for b.Loop() {
		probe := &fakeProbe{t: b, assigned: map[int]int{}, rule: func(int, int) bool { return true }}
		ScaleUp(b.Context(), pods, nil, groups, probe)
	}
}
