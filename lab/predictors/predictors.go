package main

import (
	"cmp"
	"math"
	"slices"
)

// node is what a predictor sees of a node: the usage of its machines up to now, one value per five minutes.
type node struct {
	// machines has the series of each machine, total their sum.
	machines [][]float64
	total    []float64
	// provisioned is the sum of what the machines are provisioned with, 0 if unknown.
	provisioned float64
	memory      bool
}

// predictor predicts the peak of the next day of a node from the values before step at.
type predictor struct {
	name    string
	predict func(n *node, at int) float64
}

const (
	perHour = 12
	perDay  = 24 * perHour
)

// others are the predictors of papers and of other projects with the arguments that they publish, the maximum of the node, and maxima of
// weeks (see weeks).
//
//   - Borg's default, RC-like (99th percentile of each task over 10 hours), N-sigma (5 deviations over 10 hours) and the largest of the
//     last two: Bashir et al., "Take it to the limit", EuroSys 2021.
//   - The Vertical Pod Autoscaler: CPU: 90th percentile, half-life 24 hours; memory: 90th percentile of the peaks of the last 8 days,
//     half-life 24 hours; 15 % more, summed over the machines.
//   - Koordinator's node prediction: 95th percentile of the node's CPU with a half-life of 12 hours, 98th percentile of its memory
//     with 24 hours; 10 % more.
var others = []predictor{
	{"last value", func(n *node, at int) float64 { return n.total[at-1] }},
	{"Borg default, 0.9 of what is provisioned", func(n *node, _ int) float64 { return 0.9 * n.provisioned }},
	{"RC-like, p99 of machines, 10 hours", func(n *node, at int) float64 { return n.rcLike(at, 10*perHour) }},
	{"RC-like, a day", func(n *node, at int) float64 { return n.rcLike(at, perDay) }},
	{"N-sigma, 5 deviations, 10 hours", func(n *node, at int) float64 { return n.sigmas(at, 10*perHour, 5) }},
	{"N-sigma, a day", func(n *node, at int) float64 { return n.sigmas(at, perDay, 5) }},
	{"maximum of RC-like and N-sigma, 10 hours", func(n *node, at int) float64 {
		return max(n.rcLike(at, 10*perHour), n.sigmas(at, 10*perHour, 5))
	}},
	{"Vertical Pod Autoscaler, sum of machines", (*node).vpa},
	{"Koordinator, percentile of the node", (*node).koordinator},
	{"maximum of the node, a day", func(n *node, at int) float64 { return slices.Max(last(n.total, at, perDay)) }},
	{"maximum of the node, 7 days", func(n *node, at int) float64 { return slices.Max(last(n.total, at, 7*perDay)) }},
	{"maximum of the node, 28 days", func(n *node, at int) float64 { return slices.Max(last(n.total, at, 28*perDay)) }},
	{"means, and maxima of machines in 7 days", func(n *node, at int) float64 { return n.weeks(at, 7*perDay) }},
	{"means, and maxima of machines in 28 days", func(n *node, at int) float64 { return n.weeks(at, 28*perDay) }},
}

// correlation is that of the maxima of machines, chosen on the tuning half of 0, 0.1 and 0.3.
const correlation = 0.3

// weeks returns the sum of the means of the last day, and of how far the maxima of the machines in some steps are above them. The
// maxima d rarely come together:
//
//	sum of means + sqrt((1 - correlation) x sum of d^2 + correlation x (sum of d)^2)
func (n *node) weeks(at, count int) float64 {
	means, sum, squares := 0.0, 0.0, 0.0
	for _, m := range n.machines {
		mean, _ := moments(last(m, at, perDay))
		d := slices.Max(last(m, at, count)) - mean
		means, sum, squares = means+mean, sum+d, squares+d*d
	}
	return means + math.Sqrt((1-correlation)*squares+correlation*sum*sum)
}

// last returns up to count values before step at.
func last(values []float64, at, count int) []float64 { return values[max(at-count, 0):at] }

func (n *node) rcLike(at, count int) float64 {
	sum := 0.0
	for _, m := range n.machines {
		sum += quantile(slices.Clone(last(m, at, count)), 0.99)
	}
	return sum
}

func (n *node) sigmas(at, count int, k float64) float64 {
	mean, deviation := moments(last(n.total, at, count))
	return mean + k*deviation
}

func (n *node) vpa(at int) float64 {
	sum := 0.0
	for _, m := range n.machines {
		if !n.memory {
			sum += decayedQuantile(last(m, at, 8*perDay), 0.9, perDay)
			continue
		}
		var peaks []float64 // of the last 8 days, the newest last
		for end := at; end > 0 && len(peaks) < 8; end -= perDay {
			peaks = append(peaks, slices.Max(last(m, end, perDay)))
		}
		slices.Reverse(peaks)
		sum += decayedQuantile(peaks, 0.9, 1)
	}
	return 1.15 * sum
}

func (n *node) koordinator(at int) float64 {
	if n.memory {
		return 1.1 * decayedQuantile(last(n.total, at, 8*perDay), 0.98, perDay)
	}
	return 1.1 * decayedQuantile(last(n.total, at, 4*perDay), 0.95, perDay/2)
}

// quantile sorts the values and returns the smallest that the fraction q of them does not exceed.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[max(int(math.Ceil(q*float64(len(values))))-1, 0)]
}

// decayedQuantile returns the quantile of values in the order of time, of which the weight halves in so many steps.
func decayedQuantile(values []float64, q float64, halfLife int) float64 {
	type weighted struct{ value, weight float64 }
	all, sum := make([]weighted, len(values)), 0.0
	for i, v := range values {
		w := math.Exp2(float64(i-len(values)) / float64(halfLife))
		all[i], sum = weighted{v, w}, sum+w
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	reached := 0.0
	for _, w := range all {
		if reached += w.weight; reached >= q*sum {
			return w.value
		}
	}
	return all[len(all)-1].value
}

func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(values)))
}
