package main

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// maxPairs bounds the pairs of signFlip, which computes 2^pairs sums.
const maxPairs = 20

// signFlip returns the probabilities of a sum of paired differences that is at most, and at least, the observed sum,
// if each difference has either sign with equal probability: the exact randomization test of Fisher. A low probability
// of less is evidence that the true differences are negative.
func signFlip(differences []float64) (less, more float64, err error) {
	n := len(differences)
	if n == 0 || n > maxPairs {
		return 0, 0, fmt.Errorf("found %d pairs: must be from 1 to %d", n, maxPairs)
	}
	observed, scale := 0.0, 0.0
	for _, d := range differences {
		observed += d
		scale += max(d, -d)
	}
	// Sums of the same terms in another order differ by rounding.
	tolerance := 1e-12 * scale
	sum := 0.0
	for _, d := range differences {
		sum -= d
	}
	var low, high int
	// Consecutive numbers of a Gray code differ in one bit, so that one sign changes in each step.
	signs := uint(0)
	for i := uint(0); ; i++ {
		if sum <= observed+tolerance {
			low++
		}
		if sum >= observed-tolerance {
			high++
		}
		if i+1 == 1<<n {
			break
		}
		bit := bits.TrailingZeros(i + 1)
		signs ^= 1 << bit
		if signs&(1<<bit) != 0 {
			sum += 2 * differences[bit]
		} else {
			sum -= 2 * differences[bit]
		}
	}
	return float64(low) / float64(uint(1)<<n), float64(high) / float64(uint(1)<<n), nil
}

// holm returns adjusted probabilities: if hypotheses below a level are rejected, the probability of rejecting a true
// hypothesis is at most the level, for any number of hypotheses and any dependence (Holm, A Simple Sequentially Rejective
// Multiple Test Procedure, 1979). The smallest of n probabilities is multiplied by n, the next by n-1, and so on; no
// result is smaller than the result before it.
func holm(probabilities []float64) []float64 {
	order := make([]int, len(probabilities))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(probabilities[a], probabilities[b]) })
	adjusted, last := make([]float64, len(probabilities)), 0.0
	for rank, i := range order {
		last = max(last, min(float64(len(order)-rank)*probabilities[i], 1))
		adjusted[i] = last
	}
	return adjusted
}
