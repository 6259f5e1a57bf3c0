package autoscale

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGrow(t *testing.T) {
	small, big := Group{Has: cores(4, 110), More: 100, Cost: 1}, Group{Has: cores(16, 110), More: 100, Cost: 4}
	pods := func(n int, size int64) (all []Pod) {
		for range n {
			all = append(all, Pod{Needs: cores(size, 1), Class: 1})
		}
		return all
	}
	placeholders := func(n int, size int64) []Pod {
		all := pods(n, size)
		for i := range all {
			all[i].Placeholder = true
		}
		return all
	}
	few := func(g Group, more int) Group { g.More = more; return g }
	for name, tc := range map[string]struct {
		pods    []Pod
		booting []int
		groups  []Group
		want    []int
		fates   []Fate
	}{
		"nothing waits": {groups: []Group{small}, want: []int{0}, fates: []Fate{}},
		// 4 x 1 core fill one node of 4.
		"one node": {pods: pods(4, 1), groups: []Group{small}, want: []int{1}, fates: []Fate{Ordered, Ordered, Ordered, Ordered}},
		// 5 do not.
		"two nodes": {pods: pods(5, 1), groups: []Group{small}, want: []int{2}, fates: []Fate{Ordered, Ordered, Ordered, Ordered, Ordered}},
		// A node boots, and has room for 4.
		"one boots": {pods: pods(5, 1), booting: []int{0}, groups: []Group{small}, want: []int{1}, fates: []Fate{Booting, Booting, Booting, Booting, Ordered}},
		// Both take all: 1 x 1 against 1 x 4.
		"the small one is cheaper": {pods: pods(3, 1), groups: []Group{big, small}, want: []int{0, 1}, fates: []Fate{Ordered, Ordered, Ordered}},
		// 5 nodes at 1.5 against 2 at 4: 7.5 against 8; at 1.7 8.5 against 8.
		"five small ones": {pods: pods(20, 1), groups: []Group{{Has: cores(4, 110), More: 100, Cost: 1.5}, big}, want: []int{5, 0}},
		"two big ones":    {pods: pods(20, 1), groups: []Group{{Has: cores(4, 110), More: 100, Cost: 1.7}, big}, want: []int{0, 2}},
		// The small one takes 4 of 12 cores and 4 of 5 pods for 1: 1 / (1/3 + 4/5) =
		// 0.88. The big one takes all for 4: 4 / 2 = 2. The small one it is, and then
		// the big one for what is left.
		"each what it is good for": {pods: append(pods(4, 1), pods(1, 8)...), groups: []Group{small, big}, want: []int{1, 1}},
		// Of equal prices the fewer nodes: 4 x 1 against 1 x 4.
		"fewer nodes": {pods: pods(16, 1), groups: []Group{small, big}, want: []int{0, 1}},
		// Two nodes have room for 8.
		"up to the most": {pods: pods(9, 1), groups: []Group{few(small, 2)}, want: []int{2}, fates: []Fate{Ordered, Ordered, Ordered, Ordered, Ordered, Ordered, Ordered, Ordered, Full}},
		"none at all":    {pods: pods(1, 1), groups: []Group{few(small, 0)}, want: []int{0}, fates: []Fate{Full}},
		"too large":      {pods: pods(1, 17), groups: []Group{small, big}, want: []int{0, 0}, fates: []Fate{Unfit}},
		// Large ones first: 3+1 and 3+1 rather than 1+1 and 3 and 3.
		"decreasing": {pods: append(pods(2, 1), pods(2, 3)...), groups: []Group{small}, want: []int{2}},
		// One more node: it is for the pods, though the placeholder is larger.
		"placeholders come last": {pods: append(placeholders(1, 4), pods(4, 1)...), groups: []Group{few(small, 1)}, want: []int{1}, fates: []Fate{Full, Ordered, Ordered, Ordered, Ordered}},
		"free nodes":             {pods: pods(4, 1), groups: []Group{small, {Has: cores(4, 110), More: 9}}, want: []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Grow(tc.pods, tc.booting, tc.groups, newFakeSite(t))
			if diff := gocmp.Diff(tc.want, got.Nodes); diff != "" {
				t.Errorf("nodes: -want +got:\n%s", diff)
			}
			if tc.fates != nil && !slices.Equal(got.Fates, tc.fates) {
				t.Errorf("fates %v, want %v", got.Fates, tc.fates)
			}
		})
	}
}

// What only the site knows: pods of the second kind are admitted to the second group
// only.
func TestGrowAsksTheSite(t *testing.T) {
	site := newFakeSite(t)
	pods := []Pod{{Needs: cores(1, 1), Class: 1}, {Needs: cores(1, 1), Class: 2}, {Needs: cores(1, 1)}}
	site.rule = func(pod, group int) bool { return pods[pod].Class == 1 || pods[pod].Class == 2 && group == 1 }
	groups := []Group{{Has: cores(4, 9), More: 9, Cost: 1}, {Has: cores(4, 9), More: 9, Cost: 5}}
	got := Grow(pods, nil, groups, site)
	if !slices.Equal(got.Nodes, []int{1, 1}) || !slices.Equal(got.Fates, []Fate{Ordered, Ordered, Unfit}) {
		t.Errorf("%+v", got)
	}
}

// dumb is Grow without any cleverness: every pod asks every node.
type dumb struct {
	pods   []Pod
	groups []Group
	rule   func(pod, group int) bool
	free   []Amounts
	of     []int
}

func (d *dumb) place(pod, from int) bool {
	for node := from; node < len(d.free); node++ {
		if d.pods[pod].Needs.FitsIn(d.free[node]) && d.rule(pod, d.of[node]) {
			d.free[node] = d.free[node].Minus(d.pods[pod].Needs)
			return true
		}
	}
	return false
}

func (d *dumb) fits(pod, group int) bool {
	return d.pods[pod].Needs.FitsIn(d.groups[group].Has) && d.rule(pod, group)
}

func (d *dumb) open(group int) {
	d.free, d.of = append(d.free, d.groups[group].Has), append(d.of, group)
}

func (d *dumb) fill(group, more int, pods []int) (taken, left []int, opened int) {
	first := len(d.free)
	for _, pod := range pods {
		switch {
		case d.place(pod, first):
			taken = append(taken, pod)
		case d.fits(pod, group) && len(d.free)-first < more:
			d.open(group)
			d.place(pod, len(d.free)-1)
			taken = append(taken, pod)
		default:
			left = append(left, pod)
		}
	}
	return taken, left, len(d.free) - first
}

func (d *dumb) sum(pods []int) (sum Amounts) {
	for _, pod := range pods {
		sum = sum.Plus(d.pods[pod].Needs)
	}
	return sum
}

func (d *dumb) grow(booting []int) Growth {
	g := Growth{Nodes: make([]int, len(d.groups)), Fates: make([]Fate, len(d.pods))}
	for _, group := range booting {
		d.open(group)
	}
	var largest Amounts
	for _, group := range d.groups {
		for r := range largest {
			largest[r] = max(largest[r], group.Has[r])
		}
	}
	var left []int
	order := make([]int, len(d.pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		last := map[bool]int{true: 1}
		return cmp.Or(last[d.pods[a].Placeholder]-last[d.pods[b].Placeholder], cmp.Compare(d.pods[b].Needs.part(largest), d.pods[a].Needs.part(largest)))
	})
	for _, pod := range order {
		if d.place(pod, 0) {
			g.Fates[pod] = Booting
		} else {
			left = append(left, pod)
		}
	}
	for {
		best, price, nodes := -1, 0.0, 0
		for group := range d.groups {
			try := &dumb{d.pods, d.groups, d.rule, slices.Clone(d.free), slices.Clone(d.of)}
			taken, _, opened := try.fill(group, d.groups[group].More-g.Nodes[group], left)
			if opened == 0 {
				continue
			}
			all, solved, part := d.sum(left), d.sum(taken), 0.0
			for r := range all {
				if all[r] > 0 {
					part += float64(solved[r]) / float64(all[r])
				}
			}
			if is := float64(opened) * d.groups[group].Cost / part; best < 0 || is < price || is == price && opened < nodes {
				best, price, nodes = group, is, opened
			}
		}
		if best < 0 {
			break
		}
		var taken []int
		taken, left, nodes = d.fill(best, d.groups[best].More-g.Nodes[best], left)
		g.Nodes[best] += nodes
		for _, pod := range taken {
			g.Fates[pod] = Ordered
		}
	}
	for _, pod := range left {
		g.Fates[pod] = Unfit
		for group := range d.groups {
			if d.fits(pod, group) {
				g.Fates[pod] = Full
			}
		}
	}
	return g
}

// draw draws pods of a few kinds, groups, and who may be where.
func draw(t *rapid.T, groups int) (pods []Pod, rule func(pod, group int) bool) {
	amounts := rapid.Custom(func(t *rapid.T) Amounts {
		return Amounts{rapid.Int64Range(0, 5).Draw(t, "CPU"), rapid.Int64Range(0, 5).Draw(t, "memory"), rapid.Int64Range(0, 1).Draw(t, "GPU"), 1}
	})
	kinds := rapid.SliceOfN(amounts, 1, 4).Draw(t, "kinds")
	allowed := rapid.SliceOfN(rapid.SliceOfN(rapid.Bool(), groups, groups), 4, 4).Draw(t, "allowed")
	rules := []int{}
	for range rapid.IntRange(0, 30).Draw(t, "pods") {
		class := rapid.IntRange(0, 3).Draw(t, "class")
		pods = append(pods, Pod{Needs: rapid.SampledFrom(kinds).Draw(t, "kind"), Class: class, Placeholder: rapid.Bool().Draw(t, "placeholder")})
		rules = append(rules, class)
	}
	return pods, func(pod, group int) bool { return group < 0 || allowed[rules[pod]][group] }
}

// An autoscaler adds what the dumb one adds; no group gets more than it may, no node
// has more than it holds, and whoever is left has been left for a reason.
func TestGrowIsTheDumbOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []Group
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			groups = append(groups, Group{
				Has:  Amounts{rapid.Int64Range(0, 12).Draw(t, "CPU"), rapid.Int64Range(0, 12).Draw(t, "memory"), rapid.Int64Range(0, 2).Draw(t, "GPU"), rapid.Int64Range(1, 6).Draw(t, "slots")},
				More: rapid.IntRange(0, 5).Draw(t, "more"), Cost: float64(rapid.IntRange(0, 3).Draw(t, "cost")),
			})
		}
		pods, rule := draw(t, len(groups))
		booting := rapid.SliceOfN(rapid.IntRange(0, len(groups)-1), 0, 3).Draw(t, "booting")
		site := &fakeSite{t: t, on: map[int]int{}, rule: rule}
		got := Grow(pods, booting, groups, site)
		want := (&dumb{pods: pods, groups: groups, rule: rule}).grow(booting)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("-dumb +got:\n%s", diff)
		}
		free := map[int]Amounts{}
		for node, group := range site.groups {
			free[node] = groups[group].Has
		}
		for pod, node := range site.on {
			if !pods[pod].Needs.FitsIn(free[node]) || !rule(pod, site.groups[node]) {
				t.Fatalf("pod %d does not fit node %d", pod, node)
			}
			free[node] = free[node].Minus(pods[pod].Needs)
		}
		for group := range groups {
			if got.Nodes[group] > groups[group].More {
				t.Fatalf("group %d gets %d more, allowed: %d", group, got.Nodes[group], groups[group].More)
			}
		}
		for pod, fate := range got.Fates {
			if _, on := site.on[pod]; on != (fate == Booting || fate == Ordered) {
				t.Fatalf("pod %d has the fate %d and a node: %t", pod, fate, on)
			}
			for group := range groups {
				if fate == Full && got.Nodes[group] < groups[group].More && pods[pod].Needs.FitsIn(groups[group].Has) && rule(pod, group) {
					t.Fatalf("pod %d is left, and group %d would take it", pod, group)
				}
			}
		}
	})
}

// An iteration of an autoscaler with two groups, for which 5,000 pods of 500 kinds
// wait.
func BenchmarkGrow(b *testing.B) {
	var pods []Pod
	for i := range int64(5000) {
		pods = append(pods, Pod{Needs: Amounts{100 + 10*(i%50), 1 << 28 * (1 + i%10), 0, 1}, Class: 1})
	}
	groups := []Group{{Has: Amounts{16000, 64 << 30, 0, 110}, More: 1000, Cost: 1}, {Has: Amounts{64000, 256 << 30, 0, 110}, More: 1000, Cost: 4.1}}
	for b.Loop() {
		site := &fakeSite{t: b, on: map[int]int{}, rule: func(int, int) bool { return true }}
		Grow(pods, nil, groups, site)
	}
}
