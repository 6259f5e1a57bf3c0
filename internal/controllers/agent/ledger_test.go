package agent

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
)

// recount computes the sums of a cluster with big integers.
func recount(nodes map[string]nodeAmounts, pods map[string]podAmounts) (out [scored][3]*big.Int) {
	for r := range out {
		for i := range out[r] {
			out[r][i] = new(big.Int)
		}
		for name, node := range nodes {
			if !node.Schedulable {
				continue
			}
			requests, limits, unbounded := new(big.Int), new(big.Int), false
			for _, pod := range pods {
				if pod.Node == name {
					requests.Add(requests, big.NewInt(pod.Requests[r]))
					limits.Add(limits, big.NewInt(max(pod.Limits[r], pod.Requests[r])))
					unbounded = unbounded || pod.Unbounded[r]
				}
			}
			allocatable, limit := big.NewInt(node.Allocatable[r]), big.NewInt(math.MaxInt64)
			if limits.Cmp(limit) > 0 {
				limits = limit
			}
			if unbounded && limits.Cmp(allocatable) < 0 {
				limits = allocatable
			}
			out[r][0].Add(out[r][0], allocatable)
			if free := new(big.Int).Sub(allocatable, requests); free.Sign() > 0 {
				out[r][1].Add(out[r][1], free)
			}
			out[r][2].Add(out[r][2], limits)
		}
	}
	return out
}

func TestLedgerMatchesRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64))
		amounts := func(label string) (a resources.Amounts) {
			for r := range a {
				a[r] = amount.Draw(t, label)
			}
			return a
		}
		name := rapid.SampledFrom([]string{"", "a", "b", "c"})
		l, nodes, pods := NewLedger(), map[string]nodeAmounts{}, map[string]podAmounts{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "pod"))
			on := name.Draw(t, "node")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				if on != "" {
					nodes[on] = nodeAmounts{rapid.Bool().Draw(t, "counted"), amounts("allocatable"), amounts("machine")}
					l.SetNode(on, nodes[on])
				}
			case 1:
				delete(nodes, on)
				l.DeleteNode(on)
			case 2, 3:
				pods[id] = podAmounts{on, amounts("requests"), amounts("limits"), [scored]bool{rapid.Bool().Draw(t, "unbounded")}}
				l.SetPod(id, pods[id])
			case 4:
				delete(pods, id)
				l.DeletePod(id)
			}
		}
		want := recount(nodes, pods)
		for r, sums := range l.sums {
			for i, got := range []total{sums.allocatable, sums.free, sums.limits} {
				sum := new(big.Int).Add(new(big.Int).Lsh(new(big.Int).SetUint64(got.hi), 64), new(big.Int).SetUint64(got.lo))
				if sum.Cmp(want[r][i]) != 0 {
					t.Fatalf("resource %d: sum %d is %s, want %s", r, i, sum, want[r][i])
				}
			}
		}
		for id := range pods {
			l.DeletePod(id)
		}
		for name := range nodes {
			l.DeleteNode(name)
		}
		if !l.ledger.Empty() {
			t.Fatal("accounts or pods are left after all were deleted")
		}
	})
}

func TestLoadRisk(t *testing.T) {
	l := NewLedger()
	l.SetNode("a", nodeAmounts{Schedulable: true, Allocatable: resources.Amounts{8000, 8000}, Machine: resources.Amounts{8000, 8000}})
	l.SetNode("b", nodeAmounts{Schedulable: true, Allocatable: resources.Amounts{24000, 8000}, Machine: resources.Amounts{24000, 8000}})
	l.SetNode("tainted", nodeAmounts{Allocatable: resources.Amounts{8000, 8000}, Machine: resources.Amounts{8000, 8000}})
	for _, node := range []string{"a", "b", "tainted"} {
		l.SetPod("pod-"+node, podAmounts{Node: node, Requests: resources.Amounts{2000, 4000}, Limits: resources.Amounts{8000, 8000}})
	}
	steady := func(cpu, memory float64) Load {
		return Load{Load: [scored]risk.Load{{Mean: cpu}, {Mean: memory}}, Known: [scored]bool{true, true}}
	}
	none := Load{}
	for name, tc := range map[string]struct {
		loads map[string]Load
		risk  float64
		known bool
	}{
		"no load":        {nil, 0, false},
		"low everywhere": {map[string]Load{"a": steady(0.1, 0.1), "b": steady(0.05, 0.1)}, 0, true},
		// CPU: (8 x 1 + 24 x 0) / 32 = 0.25, memory low
		"a quarter of resources.CPU exceeds requests": {map[string]Load{"a": steady(0.9, 0.1), "b": steady(0.05, 0.1)}, 0.25, true},
		// memory: (8 x 0 + 8 x 1) / 16
		"half of memory exceeds requests": {map[string]Load{"a": steady(0.9, 0.1), "b": steady(0.05, 0.9)}, 0.5, true},
		// CPU is known for 8 of 32, which is too little; memory for 8 of 16.
		"known for one node":               {map[string]Load{"a": steady(0.9, 0.1), "b": none}, 0, true},
		"only a tainted node":              {map[string]Load{"tainted": steady(0.9, 0.9)}, 0, false},
		"invalid loads":                    {map[string]Load{"a": steady(math.NaN(), -1), "b": steady(-1, math.Inf(1))}, 0, false},
		"only resources.CPU of b is known": {map[string]Load{"b": {Load: steady(0.9, 0).Load, Known: [scored]bool{resources.CPU: true}}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := l.LoadRisk(func(node string) Load { return tc.loads[node] })
			if math.Abs(got-tc.risk) > 1e-12 || known != tc.known {
				t.Errorf("%v %v, want %v %v", got, known, tc.risk, tc.known)
			}
		})
	}
}

// BenchmarkAddAndDeletePod measures a change in clusters of 10 and 5,000 nodes.
func BenchmarkAddAndDeletePod(b *testing.B) {
	for _, nodes := range []int{10, 5000} {
		b.Run(fmt.Sprint(nodes, " nodes"), func(b *testing.B) {
			l := large(nodes)
			b.ReportAllocs()
			for b.Loop() {
				l.SetPod(
					"new",
					podAmounts{Node: "node-7", Requests: resources.Amounts{100, 1 << 28}, Limits: resources.Amounts{200, 1 << 29}},
				)
				l.DeletePod("new")
			}
		})
	}
}

// BenchmarkLoadRisk measures the load risk of 5,000 nodes.
func BenchmarkLoadRisk(b *testing.B) {
	l := large(5000)
	load := Load{Load: [scored]risk.Load{{Mean: 0.4, StdDev: 0.1}, {Mean: 0.5, StdDev: 0.1}}, Known: [scored]bool{true, true}}
	for b.Loop() {
		l.LoadRisk(func(string) Load { return load })
	}
}

// large returns a ledger of nodes with 30 pods each.
func large(nodes int) *Ledger {
	l := NewLedger()
	for i := range nodes {
		l.SetNode(fmt.Sprint("node-", i), nodeAmounts{
			Schedulable: true, Allocatable: resources.Amounts{32000, 128 << 30},
			Machine: resources.Amounts{32000, 132 << 30},
		})
	}
	for i := range 30 * nodes {
		l.SetPod(fmt.Sprint("pod-", i), podAmounts{
			Node: fmt.Sprint("node-", i%nodes), Requests: resources.Amounts{500, 1 << 30},
			Limits: resources.Amounts{1000, 2 << 30},
		})
	}
	return l
}
