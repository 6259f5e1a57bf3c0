package outcome

// share divides the CPU of a node among pods by weight, as the kernel's fair
// scheduler does: in proportion to weight, none gets more than it wants, and what
// one leaves goes to the others (water-filling, max-min fairness). It writes what
// each pod gets into got, and returns the level: what a pod that does not get all
// it wants gets per weight, 0 if every pod gets all. rest is scratch, as long as
// want.
//
// Each round gives all they want to the pods that want no more than the level at
// which the rest of the CPU would be divided among those that are left. Giving
// them less than their share only lifts the level, so that what was decided
// stays right; a round that decides nothing is the last. Rounds are few: a
// handful for any mix of pods, and never more than pods.
func share(capacity float64, want, weight, got []float64, rest []int32) float64 {
	var wanted, weights float64
	rest = rest[:0]
	for i := range want {
		wanted += want[i]
		got[i] = want[i]
		weights += weight[i]
		rest = append(rest, int32(i))
	}
	if wanted <= capacity {
		return 0
	}
	left := max(capacity, 0)
	for {
		level := left / weights
		kept := rest[:0]
		for _, i := range rest {
			if want[i] <= level*weight[i] {
				left -= want[i]
			} else {
				kept = append(kept, i)
			}
		}
		if len(kept) == len(rest) {
			for _, i := range rest {
				got[i] = level * weight[i]
			}
			return level
		}
		// Sums anew: differences would lose digits to what is gone. What rounding
		// leaves below 0 is nothing.
		rest, left, weights = kept, max(left, 0), 0
		for _, i := range rest {
			weights += weight[i]
		}
		if len(rest) == 0 {
			return level // only rounding made the demand more than the capacity
		}
	}
}
