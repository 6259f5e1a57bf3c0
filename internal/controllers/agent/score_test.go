package agent

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

func TestFormulas(t *testing.T) {
	for name, tc := range map[string]struct{ got, want int32 }{
		"nothing free": {fraction(0, 8), -100},
		"all free":     {fraction(8, 8), 100},
		// 200 x (1/3 - 0.5) = -33.3
		"toward zero": {fraction(1, 3), -33},
		// 200 x (16/25 - 0.5) = 28, without a rounding error
		"exact":         {fraction(16, 25), 28},
		"no total":      {fraction(0, 0), -100},
		"no cores":      {doublings(0), -100},
		"one core":      {doublings(1), -90},
		"1023 cores":    {doublings(1023), 0},
		"a billion":     {doublings(1 << 30), 100},
		"no limits":     {limitRoom(nodeSums{Allocatable: 8}), 100},
		"limits of all": {limitRoom(nodeSums{Allocatable: 8, Limits: 8}), 0},
		// 100 x (8 - 12) / 12 = -33.3
		"limits of 1.5 times":  {limitRoom(nodeSums{Allocatable: 8, Limits: 12}), -33},
		"limits of twice":      {limitRoom(nodeSums{Allocatable: 8, Limits: 16}), -50},
		"limits of four times": {limitRoom(nodeSums{Allocatable: 8, Limits: 32}), -75},
		"no nodes":             {limitRoom(nodeSums{}), -100},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d, want %d", name, tc.got, tc.want)
		}
	}
}

func TestSlack(t *testing.T) {
	type pools = []slackAmounts
	pool := func(available, target int64) slackAmounts {
		return slackAmounts{Available: resources.Amounts{CPU: available}, Target: resources.Amounts{CPU: target}}
	}
	for name, tc := range map[string]struct {
		pools pools
		want  int32
		known bool
	}{
		"no policies":       {nil, 0, false},
		"no target":         {pools{pool(5, 0)}, 0, false},
		"at the target":     {pools{pool(4, 4)}, 0, true},
		"nothing available": {pools{pool(0, 4)}, -100, true},
		"half available":    {pools{pool(2, 4)}, -50, true},
		"twice the target":  {pools{pool(8, 4)}, 50, true},
		// (6 x 50 + 2 x -100) / 8 = 12.5: the surplus of one pool does not compensate for
		// the deficit of another pool.
		"surplus and deficit": {pools{pool(12, 6), pool(0, 2), pool(7, 0)}, 12, true},
	} {
		if got, known := slackBalance(tc.pools, resources.CPUResource); got != tc.want || known != tc.known {
			t.Errorf("%s: %d %v, want %d %v", name, got, known, tc.want, tc.known)
		}
	}
}

// TestExample checks all scores of a cluster with two nodes that accept pods. A pod can be known before its node, or without one.
func TestExample(t *testing.T) {
	o := newFakeObserver()
	pods := func(name, node string, requests, limits v1.ResourceList) {
		p := pod(name, node)
		p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: requests, Limits: limits}
		o.set(p)
	}
	pods("web", "a", list("6", "8Gi"), list("12", "16Gi"))
	pods("lost", "gone", list("6", "8Gi"), list("12", "16Gi"))
	for _, name := range []string{"a", "b"} {
		o.set(node(name, func(n *v1.Node) { n.Status = v1.NodeStatus{Allocatable: list("8", "32Gi")} }))
	}
	o.set(node("tainted", func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
		n.Status = v1.NodeStatus{Allocatable: list("64", "512Gi")}
	}))
	pods("db", "b", list("3", "24Gi"), list("4", "24Gi"))
	pods("agent", "b", nil, nil)
	got := scoresOf(clusterState{
		Sums: o.state(nil, nil).Sums, LoadRisk: 0.2, LoadKnown: true,
		Slack: []slackAmounts{{
			Available: resources.Amounts{CPU: 2 * cores, Memory: 16 * gib}, Target: resources.Amounts{CPU: 4 * cores, Memory: 8 * gib},
		}},
	})
	want := []namedScore{
		// CPU: A = 16, F = 2 + 5 = 7, L = 12 + max(4, 8) = 20
		// memory: A = 64, F = 24 + 8 = 32, L = 16 + max(24, 32) = 48
		{Name: freeCPU, Value: -12},        // 200 x (7/16 - 0.5) = -12.5
		{Name: freeMemory, Value: 0},       // 200 x (32/64 - 0.5)
		{Name: freeCores, Value: -70},      // 10 x log2(8) - 100
		{Name: freeGiB, Value: -49},        // 10 x log2(33) - 100 = -49.6
		{Name: limitRoomCPU, Value: -20},   // 100 x (16 - 20) / 20
		{Name: limitRoomMemory, Value: 25}, // 100 x (64 - 48) / 64
		{Name: lowLoadRisk, Value: 60},     // 200 x (0.5 - 0.2)
		{Name: slackCPU, Value: -50},       // 100 x (2 - 4) / 4
		{Name: slackMemory, Value: 50},     // 100 x (16 - 8) / 16
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, name := range scoreNames {
		if got[i].Name != name {
			t.Errorf("score %d is %s, want %s", i, got[i].Name, name)
		}
	}
}

func TestScoresOfEmptyState(t *testing.T) {
	for _, score := range scoresOf(clusterState{}) {
		if score.Value != -100 {
			t.Errorf("%s is %d", score.Name, score.Value)
		}
	}
}

// drawState draws a state.
func drawState(t *rapid.T) clusterState {
	amount := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e6), rapid.Float64Range(0, math.MaxInt64))
	integer := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, math.MaxInt64))
	s := clusterState{LoadKnown: true, LoadRisk: rapid.Float64Range(0, 1).Draw(t, "risk")}
	for r := range s.Sums {
		allocatable := amount.Draw(t, "allocatable")
		s.Sums[r] = nodeSums{allocatable, allocatable * rapid.Float64Range(0, 1).Draw(t, "free"), amount.Draw(t, "limits")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "pools") {
		var pool slackAmounts
		for _, amounts := range []*resources.Amounts{&pool.Target, &pool.Available} {
			amounts.CPU, amounts.Memory = integer.Draw(t, "CPU"), integer.Draw(t, "memory")
		}
		s.Slack = append(s.Slack, pool)
	}
	return s
}

// valuesOf checks that the scores are in range, and returns them by name.
func valuesOf(t *rapid.T, s clusterState) map[string]int32 {
	out := map[string]int32{}
	for _, score := range scoresOf(s) {
		if score.Value < -100 || score.Value > 100 {
			t.Fatalf("%s is %d for %+v", score.Name, score.Value, s)
		}
		out[score.Name] = score.Value
	}
	return out
}

// TestScoresAreMonotone verifies that more free capacity, lower limits, a lower load risk and
// more available slack never reduce a score.
func TestScoresAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		better := s
		better.Slack = append([]slackAmounts(nil), s.Slack...)
		part := func(amount float64) float64 { return amount * rapid.Float64Range(0, 1).Draw(t, "part") }
		for r := range s.Sums {
			better.Sums[r].Free += part(s.Sums[r].Allocatable - s.Sums[r].Free)
			better.Sums[r].Limits -= part(s.Sums[r].Limits)
		}
		better.LoadRisk -= part(s.LoadRisk)
		for i := range better.Slack {
			better.Slack[i].Available = better.Slack[i].Available.Apply(func(available int64) int64 {
				return available + rapid.Int64Range(0, math.MaxInt64-available).Draw(t, "more")
			})
		}
		before, after := valuesOf(t, s), valuesOf(t, better)
		for name, value := range before {
			if after[name] < value {
				t.Fatalf("%s decreased from %d to %d: %+v, %+v", name, value, after[name], s, better)
			}
		}
	})
}

// TestLimitRoomWithRoundingErrors has an allocatable amount near zero: in floating point,
// 100 x (1e-13 - 2622) / 2622 is slightly above -100, the same with limits of 1147 is -100.
func TestLimitRoomWithRoundingErrors(t *testing.T) {
	more := limitRoom(nodeSums{Allocatable: 1.1368683772161603e-13, Limits: 2622.0000000000073})
	less := limitRoom(nodeSums{Allocatable: 1.1368683772161603e-13, Limits: 1147.1250000000032})
	if less < more {
		t.Errorf("lower limits reduce the score from %d to %d", more, less)
	}
}

// TestScoresDoNotDependOnSize verifies that a cluster of twice the size has the same scores,
// except for freeCores and freeGiB.
func TestScoresDoNotDependOnSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		s.Slack = nil
		larger := s
		for r := range s.Sums {
			larger.Sums[r] = nodeSums{2 * s.Sums[r].Allocatable, 2 * s.Sums[r].Free, 2 * s.Sums[r].Limits}
		}
		one, two := valuesOf(t, s), valuesOf(t, larger)
		for name, value := range one {
			if name == freeCores || name == freeGiB {
				if two[name] < value || two[name] > value+11 {
					t.Fatalf("%s is %d, with twice the size %d", name, value, two[name])
				}
			} else if two[name] != value {
				t.Fatalf("%s is %d, with twice the size %d", name, value, two[name])
			}
		}
	})
}
