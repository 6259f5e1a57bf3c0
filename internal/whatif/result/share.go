package result

// outcomeShare divides the CPU of a node among pods by weight, as the kernel's fair scheduler does
// (water-filling, weighted max-min fairness): in proportion to the weights, no pod gets more than
// its demand, and CPU that a pod does not use is divided among the other pods. It stores the CPU of
// each pod in granted, and returns the level: the CPU per weight of a pod that does not get its
// demand, 0 if every pod does. rest is a buffer as long as demand.
//
// Each round grants the demand of the pods whose demand is at most their share of
// the remaining CPU. This can only raise the level, so that earlier rounds remain
// correct; a round that grants nothing is the last. There are few rounds for any mix
// of pods, and never more than pods.
func outcomeShare(capacity float64, demand, weight, granted []float64, rest []int32) float64 {
	var total, weights float64
	rest = rest[:0]
	for i := range demand {
		total += demand[i]
		granted[i] = demand[i]
		weights += weight[i]
		rest = append(rest, int32(i))
	}
	if total <= capacity {
		return 0
	}
	left := max(capacity, 0)
	for {
		level := left / weights
		kept := rest[:0]
		for _, i := range rest {
			if demand[i] <= level*weight[i] {
				left -= demand[i]
			} else {
				kept = append(kept, i)
			}
		}
		if len(kept) == len(rest) {
			for _, i := range rest {
				granted[i] = level * weight[i]
			}
			return level
		}
		// Weights are summed again, as differences lose digits. A sum below 0 is due to rounding.
		rest, left, weights = kept, max(left, 0), 0
		for _, i := range rest {
			weights += weight[i]
		}
		if len(rest) == 0 {
			return level // The demand exceeded the capacity only by rounding.
		}
	}
}
