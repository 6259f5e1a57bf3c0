package placement

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Decisions are many times as fast as those of the oracle, which computes with rational numbers, and a
// label predicate costs about as much as the rest of the decision if there is no index. The limits are a fifth of what was
// measured on the slowest of three machines, on which a decision begins with cold caches, and twice that.
func TestDecideRatios(t *testing.T) {
	fleet := benchFleet()
	r := *fleet
	r.Fleet, r.Members, r.Counts, r.Chosen = r.Fleet[:60], r.Members[:60], r.Counts[:60], []int32{0}
	labeled, few := *fleet, r
	labeled.Predicates, few.Predicates = inProd(), inProd()
	least := leastTimes(9, func() { newOracle(&few) }, func() { Decide(&few) })
	if got := least[0] / least[1]; got < 100 {
		t.Errorf("Decide is %.0f times as fast as the oracle, want at least 100", got)
	}
	t.Logf("%.0f times as fast as the oracle", least[0]/least[1])
	least = leastTimes(50, func() { Decide(fleet) }, func() { Decide(&labeled) })
	if got := least[1] / least[0]; got > 4 {
		t.Errorf("a decision with a label predicate takes %.1f times as long as one without, want at most 4", got)
	}
	t.Logf("with a label predicate %.2f times as long", least[1]/least[0])
}

// leastTimes runs functions in turn, five times each, for a number of rounds, and returns the least time of each in seconds: that
// without interruptions, whatever else the machine does.
func leastTimes(rounds int, functions ...func()) []float64 {
	const repeat = 5
	least := slices.Repeat([]float64{math.Inf(1)}, len(functions))
	for range rounds {
		for i, f := range functions {
			began := time.Now()
			for range repeat {
				f()
			}
			least[i] = min(least[i], time.Since(began).Seconds()/repeat)
		}
	}
	return least
}
