package placement

import (
	"slices"
	"testing"
	"time"
)

// Decisions are many times as fast as those of the oracle, which computes with rational numbers, and a
// label predicate costs about as much as the rest of the decision. The limits are a fifth of what was measured on
// the slowest of three machines, on which a decision begins with cold caches, and twice that. Ratios are medians of alternating rounds, which the load of the machine hardly affects.
func TestDecideRatios(t *testing.T) {
	const rounds, repeat = 9, 20
	fleet := benchFleet()
	r := *fleet
	r.Fleet, r.Members, r.Counts, r.Chosen = r.Fleet[:60], r.Members[:60], r.Counts[:60], []int32{0}
	labeled, few := *fleet, r
	labeled.Predicates, few.Predicates = inProd(), inProd()
	elapsed := func(n int, run func()) float64 {
		began := time.Now()
		for range n {
			run()
		}
		return time.Since(began).Seconds() / float64(n)
	}
	ratios := map[string][]float64{}
	for range rounds {
		oracleTime := elapsed(1, func() { newOracle(&few) })
		ratios["oracle"] = append(ratios["oracle"], oracleTime/elapsed(repeat, func() { Decide(&few) }))
		plain := elapsed(repeat, func() { Decide(fleet) })
		ratios["label"] = append(ratios["label"], elapsed(repeat, func() { Decide(&labeled) })/plain)
	}
	median := func(name string) float64 {
		slices.Sort(ratios[name])
		return ratios[name][rounds/2]
	}
	if got := median("oracle"); got < 100 {
		t.Errorf("Decide is %.0f times as fast as the oracle, want at least 100", got)
	}
	if got := median("label"); got > 4 {
		t.Errorf("a decision with a label predicate takes %.1f times as long as one without, want at most 4", got)
	}
	t.Logf("%.0f times as fast as the oracle; with a label predicate %.2f times as long", median("oracle"), median("label"))
}
