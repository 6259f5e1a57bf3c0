package autoscale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// cluster is a Shrink of nodes of 4 cores, each with pods of so many cores; a
// negative number is a placeholder. Names are n0, n1 and so on.
func cluster(t *testing.T, nodes ...[]int64) (Shrink, *fakeSite) {
	in, site := Shrink{Threshold: 0.5, Idle: 600, Spare: []int{100}}, newFakeSite(t)
	for i, sizes := range nodes {
		node := Node{Name: fmt.Sprint("n", i), Free: cores(4, 10)}
		for _, size := range sizes {
			pod := Pod{Needs: cores(max(size, -size), 1), Class: 1, Placeholder: size < 0}
			site.on[len(in.Pods)] = i
			node.Pods = append(node.Pods, len(in.Pods))
			node.Free = node.Free.Minus(pod.Needs)
			in.Pods = append(in.Pods, pod)
		}
		node.Utilization = Utilization(cores(4, 0).Minus(node.Free), cores(4, 0))
		in.Nodes = append(in.Nodes, node)
		site.groups = append(site.groups, 0)
	}
	return in, site
}

func TestUnneeded(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes  [][]int64
		change func(*Shrink)
		want   []int
	}{
		// 1 of 4 cores used is 0.25; it fits beside 2 of 4.
		"one": {nodes: [][]int64{{2}, {1}}, want: []int{1}},
		// 2 of 4 are not under 0.5.
		"at the threshold": {nodes: [][]int64{{2}, {2}}},
		"no room":          {nodes: [][]int64{{2, 2}, {1}}},
		"empty":            {nodes: [][]int64{{}, {}}, want: []int{0, 1}},
		// The second needs the first: what is on it goes there.
		"not both":             {nodes: [][]int64{{1}, {1}}, want: []int{0}},
		"empty ones first":     {nodes: [][]int64{{1}, {}, {2}}, want: []int{1, 0}},
		"fewer moves first":    {nodes: [][]int64{{1, 0}, {1}, {3}}, want: []int{1}},
		"placeholders move":    {nodes: [][]int64{{2}, {-1}}, want: []int{1}},
		"placeholders do stay": {nodes: [][]int64{{2, 2}, {-1}}},
		"placeholders count":   {nodes: [][]int64{{2}, {-1, -1}}},
		"spare":                {nodes: [][]int64{{}, {}}, change: func(in *Shrink) { in.Spare[0] = 1 }, want: []int{0}},
		"nobody's":             {nodes: [][]int64{{}, {}}, change: func(in *Shrink) { in.Nodes[0].Group = -1 }, want: []int{1}},
		"fixed":                {nodes: [][]int64{{2}, {1}}, change: func(in *Shrink) { in.Nodes[1].Fixed = true }},
	} {
		t.Run(name, func(t *testing.T) {
			in, site := cluster(t, tc.nodes...)
			if tc.change != nil {
				tc.change(&in)
			}
			if got := in.unneeded(site); !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// Who is on a node is asked of the site, too.
func TestUnneededAsksTheSite(t *testing.T) {
	in, site := cluster(t, []int64{2}, []int64{1})
	site.rule = func(pod, _ int) bool { return pod != 1 }
	if got := in.unneeded(site); len(got) > 0 || site.on[1] != 1 {
		t.Errorf("%v, on %v", got, site.on)
	}
}

// A node goes when nobody has needed it for 600 s without a break.
func TestShrinkerWaits(t *testing.T) {
	var s Shrinker
	for _, step := range []struct {
		second  int64
		second1 []int64 // what is on the second node
		hold    bool
		want    []int
	}{
		{second: 0, second1: []int64{1}},
		{second: 590, second1: []int64{1}},
		{second: 595, second1: []int64{2}}, // it is needed
		{second: 600, second1: []int64{1}},
		{second: 1199, second1: []int64{1}},
		{second: 1200, second1: []int64{1}, hold: true},
		{second: 1210, second1: []int64{1}, want: []int{1}},
		{second: 1220, second1: []int64{1}}, // another one of that name
	} {
		in, site := cluster(t, []int64{2}, step.second1)
		in.Hold = step.hold
		if got := s.Next(step.second, in, site); !slices.Equal(got, step.want) {
			t.Errorf("at %d: %v, want %v", step.second, got, step.want)
		}
	}
}

// Ten nodes at a time, one of which has pods.
func TestShrinkerTakesTheTime(t *testing.T) {
	nodes := [][]int64{{3, 1}, {2, 1}, {1}, {1}}
	for range 12 {
		nodes = append(nodes, nil)
	}
	in, site := cluster(t, nodes...)
	in.Idle = 0
	var s Shrinker
	if got, want := s.Next(0, in, site), []int{4, 5, 6, 7, 8, 9, 10, 11, 12, 13}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	in, site = cluster(t, []int64{2}, []int64{1}, []int64{1}, []int64{2})
	in.Idle = 0
	if got, want := s.Next(0, in, site), []int{1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestUtilization(t *testing.T) {
	for _, tc := range []struct {
		requested, has Amounts
		want           float64
	}{
		{Amounts{1000, 1, 0, 5}, Amounts{4000, 8, 0, 10}, 0.25},
		{Amounts{1000, 6, 0, 5}, Amounts{4000, 8, 0, 10}, 0.75},
		{Amounts{4000, 8, 500, 5}, Amounts{4000, 8, 2000, 10}, 0.25}, // GPUs alone
		{Amounts{1000, 1, 0, 0}, Amounts{}, 0},
	} {
		if got := Utilization(tc.requested, tc.has); got != tc.want {
			t.Errorf("%v of %v: %v, want %v", tc.requested, tc.has, got, tc.want)
		}
	}
}

// dumbly is unneeded without any cleverness.
func dumbly(in Shrink, rule func(pod, group int) bool) (unneeded []int) {
	free := make([]Amounts, len(in.Nodes))
	var order []int
	for i := range in.Nodes {
		free[i] = in.Nodes[i].Free
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(in.moves(a), in.moves(b)), cmp.Compare(in.Nodes[a].Utilization, in.Nodes[b].Utilization))
	})
	spare, took := slices.Clone(in.Spare), map[int]bool{}
	for _, node := range order {
		n := in.Nodes[node]
		if n.Group < 0 || n.Fixed || n.Utilization >= in.Threshold || spare[n.Group] == 0 || took[node] {
			continue
		}
		left := slices.Clone(free)
		left[node] = Amounts{}
		var on []int
		for _, pod := range n.Pods {
			for to := range left {
				if in.Pods[pod].Needs.FitsIn(left[to]) && rule(pod, in.Nodes[to].Group) {
					left[to] = left[to].Minus(in.Pods[pod].Needs)
					on = append(on, to)
					break
				}
			}
		}
		if len(on) == len(n.Pods) {
			free = left
			spare[n.Group]--
			unneeded = append(unneeded, node)
			for _, to := range on {
				took[to] = true
			}
		}
	}
	return unneeded
}

// The nodes that nobody needs are those that the dumb one finds, everything on them
// fits on the others, and the site is left as it was.
func TestUnneededIsTheDumbOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, rule := draw(t, 2)
		in := Shrink{Pods: pods, Threshold: 0.6, Spare: []int{rapid.IntRange(0, 4).Draw(t, "spare"), 9}}
		site := &fakeSite{t: t, on: map[int]int{}, rule: rule}
		has := Amounts{8, 8, 2, 8}
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			in.Nodes = append(in.Nodes, Node{Name: fmt.Sprint(i), Group: rapid.IntRange(-1, 1).Draw(t, "group"), Free: has, Fixed: rapid.IntRange(0, 9).Draw(t, "fixed") == 0})
			site.groups = append(site.groups, in.Nodes[i].Group)
		}
		for pod := range pods {
			node := rapid.IntRange(0, len(in.Nodes)-1).Draw(t, "on")
			site.on[pod] = node
			in.Nodes[node].Pods = append(in.Nodes[node].Pods, pod)
			in.Nodes[node].Free = in.Nodes[node].Free.Minus(pods[pod].Needs) // less than nothing, it may be
		}
		for i := range in.Nodes {
			in.Nodes[i].Utilization = Utilization(has.Minus(in.Nodes[i].Free), Amounts{8, 8, 0, 8})
		}
		before := maps.Clone(site.on)
		got := in.unneeded(site)
		if diff := gocmp.Diff(before, site.on); diff != "" {
			t.Fatalf("the site has changed:\n%s", diff)
		}
		if want := dumbly(in, rule); !slices.Equal(got, want) {
			t.Fatalf("%v, the dumb one says %v", got, want)
		}
	})
}
