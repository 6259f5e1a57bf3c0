package autoscaler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// cluster returns nodes of 4 cores named n0, n1 and so on, each with pods of the
// given numbers of cores; a negative number is a placeholder.
func cluster(t *testing.T, nodes ...[]int64) (ScaleDownInput, *fakeProbe) {
	in, probe := ScaleDownInput{Threshold: 0.5, UnneededSeconds: 600, Removable: []int{100}}, newFakeProbe(t)
	for i, sizes := range nodes {
		node := PackedNode{Name: fmt.Sprint("n", i), Free: cores(4, 10)}
		for _, size := range sizes {
			pod := Item{Requests: cores(max(size, -size), 1), Class: 1, Placeholder: size < 0}
			probe.assigned[len(in.Pods)] = i
			node.Pods = append(node.Pods, len(in.Pods))
			node.Free = node.Free.Minus(pod.Requests)
			in.Pods = append(in.Pods, pod)
		}
		node.Utilization = Utilization(cores(4, 0).Minus(node.Free), cores(4, 0))
		in.Nodes = append(in.Nodes, node)
		probe.groups = append(probe.groups, 0)
	}
	return in, probe
}

func TestUnneeded(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes  [][]int64
		change func(*ScaleDownInput)
		want   []int
	}{
		// 1 of 4 cores used is 0.25; the pod fits on the node with 2 of 4.
		"one": {nodes: [][]int64{{2}, {1}}, want: []int{1}},
		// 2 of 4 are not below 0.5.
		"at the threshold": {nodes: [][]int64{{2}, {2}}},
		// The second is needed for the pod of the first.
		"not both":                {nodes: [][]int64{{1}, {1}}, want: []int{0}},
		"empty nodes first":       {nodes: [][]int64{{1}, {}, {2}}, want: []int{1, 0}},
		"fewer evictions first":   {nodes: [][]int64{{1, 0}, {1}, {3}}, want: []int{1}},
		"placeholders fit":        {nodes: [][]int64{{2}, {-1}}, want: []int{1}},
		"placeholders do not fit": {nodes: [][]int64{{2, 2}, {-1}}},
		"removable":               {nodes: [][]int64{{}, {}}, change: func(in *ScaleDownInput) { in.Removable[0] = 1 }, want: []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			in, probe := cluster(t, tc.nodes...)
			if tc.change != nil {
				tc.change(&in)
			}
			if got := in.unneeded(t.Context(), probe); !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// TestScaleDownWaits verifies that a node is removed after it was unneeded for 600 s
// without interruption.
func TestScaleDownWaits(t *testing.T) {
	var s ScaleDown
	for _, step := range []struct {
		second  int64
		second1 []int64 // pods of the second node
		hold    bool
		want    []int
	}{
		{second: 0, second1: []int64{1}},
		{second: 590, second1: []int64{1}},
		{second: 595, second1: []int64{2}}, // needed
		{second: 600, second1: []int64{1}},
		{second: 1199, second1: []int64{1}},
		{second: 1200, second1: []int64{1}, hold: true},
		{second: 1210, second1: []int64{1}, want: []int{1}},
		{second: 1220, second1: []int64{1}}, // a new node of the same name
	} {
		in, probe := cluster(t, []int64{2}, step.second1)
		in.Hold = step.hold
		if got := s.Next(t.Context(), step.second, in, probe); !slices.Equal(got, step.want) {
			t.Errorf("at %d: %v, want %v", step.second, got, step.want)
		}
	}
}

// TestScaleDownLimits verifies that a pass removes at most ten nodes, at most one of
// them with pods.
func TestScaleDownLimits(t *testing.T) {
	nodes := [][]int64{{3, 1}, {2, 1}, {1}, {1}}
	for range 12 {
		nodes = append(nodes, nil)
	}
	in, probe := cluster(t, nodes...)
	in.UnneededSeconds = 0
	var s ScaleDown
	if got, want := s.Next(t.Context(), 0, in, probe), []int{4, 5, 6, 7, 8, 9, 10, 11, 12, 13}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	in, probe = cluster(t, []int64{2}, []int64{1}, []int64{1}, []int64{2})
	in.UnneededSeconds = 0
	if got, want := s.Next(t.Context(), 0, in, probe), []int{1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestUtilization(t *testing.T) {
	for _, tc := range []struct {
		requested, has resources.Amounts
		want           float64
	}{
		{resources.Amounts{CPU: 1000, Memory: 1, Pods: 5}, resources.Amounts{CPU: 4000, Memory: 8, Pods: 10}, 0.25},
		{resources.Amounts{CPU: 1000, Memory: 6, Pods: 5}, resources.Amounts{CPU: 4000, Memory: 8, Pods: 10}, 0.75},
		{resources.Amounts{CPU: 4000, Memory: 8, Pods: 5, Extended: gpus(1)}, resources.Amounts{CPU: 4000, Memory: 8, Pods: 10, Extended: gpus(4)}, 0.25}, // only GPUs count
		{resources.Amounts{CPU: 1000, Memory: 1, Pods: 0}, resources.Amounts{}, 0},
	} {
		if got := Utilization(tc.requested, tc.has); got != tc.want {
			t.Errorf("%v of %v: %v, want %v", tc.requested, tc.has, got, tc.want)
		}
	}
}

// naiveUnneeded is unneeded without optimizations.
func naiveUnneeded(in ScaleDownInput, rule func(pod, group int) bool) (unneeded []int) {
	free := make([]resources.Amounts, len(in.Nodes))
	var order []int
	for i := range in.Nodes {
		free[i] = in.Nodes[i].Free
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(in.evictions(a), in.evictions(b)), cmp.Compare(in.Nodes[a].Utilization, in.Nodes[b].Utilization))
	})
	removable, needed := slices.Clone(in.Removable), map[int]bool{}
	for _, node := range order {
		n := in.Nodes[node]
		if n.Group < 0 || n.Fixed || n.Utilization >= in.Threshold || removable[n.Group] == 0 || needed[node] {
			continue
		}
		left := slices.Clone(free)
		left[node] = resources.Amounts{}
		var targets []int
		for _, pod := range n.Pods {
			for to := range left {
				if in.Pods[pod].Requests.FitsIn(left[to]) && rule(pod, in.Nodes[to].Group) {
					left[to] = left[to].Minus(in.Pods[pod].Requests)
					targets = append(targets, to)
					break
				}
			}
		}
		if len(targets) == len(n.Pods) {
			free = left
			removable[n.Group]--
			unneeded = append(unneeded, node)
			for _, to := range targets {
				needed[to] = true
			}
		}
	}
	return unneeded
}

// TestUnneededEqualsNaive compares unneeded with the naive implementation, and
// verifies that the probe is unchanged.
func TestUnneededEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, rule := draw(t, 2)
		in := ScaleDownInput{Pods: pods, Threshold: 0.6, Removable: []int{rapid.IntRange(0, 4).Draw(t, "removable"), 9}}
		probe := &fakeProbe{t: t, assigned: map[int]int{}, rule: rule}
		has := resources.Amounts{CPU: 8, Memory: 8, Pods: 8, Extended: gpus(2)}
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			in.Nodes = append(in.Nodes, PackedNode{
				Name: fmt.Sprint(i), Group: rapid.IntRange(-1, 1).Draw(t, "group"), Free: has,
				Fixed: rapid.IntRange(0, 9).Draw(t, "fixed") == 0,
			})
			probe.groups = append(probe.groups, in.Nodes[i].Group)
		}
		for pod := range pods {
			node := rapid.IntRange(0, len(in.Nodes)-1).Draw(t, "on")
			probe.assigned[pod] = node
			in.Nodes[node].Pods = append(in.Nodes[node].Pods, pod)
			in.Nodes[node].Free = in.Nodes[node].Free.Minus(pods[pod].Requests) // may be negative
		}
		for i := range in.Nodes {
			in.Nodes[i].Utilization = Utilization(has.Minus(in.Nodes[i].Free), resources.Amounts{CPU: 8, Memory: 8, Pods: 8})
		}
		before := maps.Clone(probe.assigned)
		got := in.unneeded(t.Context(), probe)
		if diff := gocmp.Diff(before, probe.assigned); diff != "" {
			t.Fatalf("the probe has changed:\n%s", diff)
		}
		if want := naiveUnneeded(in, rule); !slices.Equal(got, want) {
			t.Fatalf("%v, the naive implementation returns %v", got, want)
		}
	})
}
