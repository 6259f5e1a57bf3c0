package slack

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// named returns a node with a name.
func named(name string) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// demandOf returns a demand for placeholders of a size on nodes of the pool.
func demandOf(size resources.Amounts, count int64) demand {
	size.Pods = 1
	return demand{Placeholders: Placeholders{size, count}, Allowed: func(node *nodeCapacity) bool { return node.InPool }}
}

// ledgerWithFree returns a ledger of usable nodes n0, n1, ... of the pool with free amounts.
func ledgerWithFree(slots int64, free ...resources.Amounts) *poolLedger {
	l := newPoolLedger()
	for i, f := range free {
		l.SetNode(named(fmt.Sprint("n", i)), true, ledgerNode{Usable: true, Allocatable: f, Slots: slots})
	}
	return l
}

func TestPlace(t *testing.T) {
	only := func(name string, d demand) demand {
		d.Allowed = func(node *nodeCapacity) bool { return node.node.Name == name }
		return d
	}
	for name, tc := range map[string]struct {
		ledger  *poolLedger
		demands []demand
		want    int64
	}{
		// floor(4/1.5) + floor(2/1.5) = 2 + 1.
		"node by node": {ledgerWithFree(9, cores(4, 16), cores(2, 16)), []demand{demandOf(cores(1.5, 1), 5)}, 3},
		// 3 CPUs in total, but no node has 2.
		"not by total": {ledgerWithFree(9, cores(1, 16), cores(1, 16), cores(1, 16)), []demand{demandOf(cores(2, 1), 1)}, 0},
		"slots":        {ledgerWithFree(2, cores(16, 64)), []demand{demandOf(cores(1, 1), 5)}, 2},
		// The head of 3 costs two placeholders of size 2 on n0 (4 -> 1) and one on n1 (3 -> 0): it is
		// placed on n1, and both placeholders of size 2 fit n0.
		"head where the loss is least": {
			ledgerWithFree(9, cores(4, 64), cores(3, 64)), []demand{demandOf(cores(3, 1), 1), demandOf(cores(2, 1), 2)}, 3,
		},
		"allowed node": {
			ledgerWithFree(9, cores(4, 64), cores(4, 64)), []demand{only("n1", demandOf(cores(3, 1), 2)), demandOf(cores(4, 1), 1)}, 2,
		},
	} {
		if got := placeAll(tc.ledger.capacities(true), tc.demands); got != tc.want {
			t.Errorf("%s: %d placed, want %d", name, got, tc.want)
		}
	}
}

// TestPlaceOneByOne checks demands that exclude nodes with each placeholder.
func TestPlaceOneByOne(t *testing.T) {
	used := map[string]bool{}
	exclusive := func(size resources.Amounts, count int64) demand {
		d := demandOf(size, count)
		d.Allowed = func(node *nodeCapacity) bool { return !used[node.node.Name] }
		d.Assigned = func(node *nodeCapacity) { used[node.node.Name] = true }
		return d
	}
	for name, tc := range map[string]struct {
		demands []demand
		want    int64
	}{
		// n0 fits 4 and n1 fits 2: one each.
		"one per node": {[]demand{exclusive(cores(1, 1), 10)}, 2},
		// The first demand takes n1, where it costs the last demand nothing (2 -> 1 CPUs), and n0 is left.
		"one demand excludes another": {[]demand{exclusive(cores(1, 1), 1), exclusive(cores(1, 1), 3)}, 2},
		// n1 loses its only placeholder of 2 CPUs, n0 one of two: the exclusive one takes either, one remains on n0.
		"where the loss is least": {[]demand{exclusive(cores(1, 1), 2), demandOf(cores(2, 1), 3)}, 3},
	} {
		clear(used)
		if got := placeAll(ledgerWithFree(9, cores(4, 64), cores(2, 64)).capacities(true), tc.demands); got != tc.want {
			t.Errorf("%s: %d placed, want %d", name, got, tc.want)
		}
	}
}

// placeExhaustively returns the maximum number of placeholders that fit, by exhaustive search.
func placeExhaustively(nodes []nodeCapacity, demands []demand) int64 {
	if len(demands) == 0 {
		return 0
	}
	first, others := demands[0], demands[1:]
	if first.Count == 0 {
		return placeExhaustively(nodes, others)
	}
	first.Count--
	remaining := append([]demand{first}, others...)
	best := placeExhaustively(nodes, remaining) // this placeholder is not placed
	for i := range nodes {
		if nodes[i].count(&first) > 0 {
			before := nodes[i]
			nodes[i].assign(&first)
			best = max(best, 1+placeExhaustively(nodes, remaining))
			nodes[i] = before
		}
	}
	return best
}

// TestPlaceAgainstExhaustiveSearch checks that a single demand is counted exactly, that with one placeholder
// before it the result tells whether all fit, and that the result is never too high.
func TestPlaceAgainstExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string) resources.Amounts {
			return resources.Amounts{
				CPU:    rapid.Int64Range(0, 6).Draw(t, name+" cpu"),
				Memory: rapid.Int64Range(0, 6).Draw(t, name+" memory"),
			}
		}
		var free []resources.Amounts
		var nodes []nodeCapacity
		slots := rapid.Int64Range(0, 4).Draw(t, "slots")
		for range rapid.IntRange(0, 3).Draw(t, "nodes") {
			f := small("free")
			free = append(free, f)
			f.Pods = slots
			nodes = append(nodes, nodeCapacity{InPool: true, Usable: true, Free: f})
		}
		ledger := ledgerWithFree(slots, free...)
		rest := demandOf(small("rest"), rapid.Int64Range(0, 4).Draw(t, "count"))
		if got, want := placeAll(ledger.capacities(true), []demand{rest}), placeExhaustively(nodes, []demand{rest}); got != want {
			t.Fatalf("%v on %v: %d placed, want %d", rest, free, got, want)
		}
		// With one placeholder before it.
		demands := []demand{demandOf(small("head"), 1), rest}
		if got, want := placeAll(ledger.capacities(true), demands), placeExhaustively(nodes, demands); got > want ||
			(got == 1+rest.Count) != (want == 1+rest.Count) {
			t.Fatalf("%v on %v: %d placed, at most %d fit", demands, free, got, want)
		}
		mixed := []demand{demandOf(small("other"), 2), demands[0], rest}
		if got, want := placeAll(ledger.capacities(true), mixed), placeExhaustively(nodes, mixed); got > want {
			t.Fatalf("%v on %v: %d placed, at most %d fit", mixed, free, got, want)
		}
	})
}
