package tune

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// raceOptions configure a race.
type raceOptions struct {
	// First is the number of blocks before the first look, at least 2. Step is the number of blocks between two looks, at least 1.
	// Blocks is the number of blocks of the whole race, at least First.
	First, Step, Blocks int
	// Level bounds the probability with which the best candidate is dropped, in (0, 1).
	Level float64
}

// running is the answer on a candidate that has not been dropped. A dropped candidate is worse than the leader by the test, or equal to an
// earlier candidate in every block.
const running result.Answer = ""

// race is a race of candidates, which are numbered from 0. It must be used by one goroutine only.
type race struct {
	options raceOptions
	answers []result.Answer
	// values of each candidate by block. A dropped candidate has values only for the blocks before.
	values [][]float64
	blocks int
}

// newRace returns a race of a number of candidates, at least 1.
func newRace(candidates int, o raceOptions) *race {
	return &race{options: o, answers: make([]result.Answer, candidates), values: make([][]float64, candidates)}
}

// Running returns the candidates that have not been dropped, in ascending order. There is at least one.
func (r *race) Running() []int {
	var candidates []int
	for candidate, answer := range r.answers {
		if answer == running {
			candidates = append(candidates, candidate)
		}
	}
	return candidates
}

// Next returns the number of blocks to measure before the next look, 0 if the race is over: all blocks are measured, or only one
// candidate runs.
func (r *race) Next() int {
	if r.options.Blocks == r.blocks || len(r.Running()) == 1 {
		return 0
	}
	look := r.options.First
	for look <= r.blocks {
		look += r.options.Step
	}
	return min(look, r.options.Blocks) - r.blocks
}

// Add adds the finite values of one block, one for each running candidate in their order, and drops candidates if the race looks after
// this block. The race must not be over.
func (r *race) Add(values []float64) {
	look := r.Next() == 1
	for i, candidate := range r.Running() {
		r.values[candidate] = append(r.values[candidate], values[i])
	}
	r.blocks++
	if look {
		r.look()
	}
}

// Leader returns the running candidate with the smallest mean of all blocks, the first of equal candidates.
func (r *race) Leader() int { return r.Ranking()[0] }

// Ranking returns the running candidates by their means, the smallest first; equal candidates keep their order.
func (r *race) Ranking() []int {
	candidates := r.Running()
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(meanDifference(r.values[a], r.values[b]), 0) })
	return candidates
}

// look drops candidates.
func (r *race) look() {
	candidates := r.Running()
	for i, candidate := range candidates {
		if slices.ContainsFunc(candidates[:i], func(earlier int) bool {
			return r.answers[earlier] == running && slices.Equal(r.values[earlier], r.values[candidate])
		}) {
			r.answers[candidate] = result.Equal
		}
	}
	leader, level := r.Leader(), r.testLevel()
	for _, candidate := range r.Running() {
		if candidate != leader && isWorse(r.values[leader], r.values[candidate], level) {
			r.answers[candidate] = result.Worse
		}
	}
}

// testLevel returns the level of one test.
func (r *race) testLevel() float64 {
	o := r.options
	looks := 1 + (o.Blocks-o.First+o.Step-1)/o.Step
	return o.Level / float64(looks) / float64(max(len(r.answers)-1, 1))
}

// isWorse reports whether values are larger than the leader's values by a one-sided paired t test.
func isWorse(leader, values []float64, level float64) bool {
	mean, deviation := stat.MeanStdDev(floats.SubTo(make([]float64, len(values)), values, leader), nil)
	if mean <= 0 {
		return false
	}
	n := float64(len(values))
	// With the same difference in every block, the statistic is infinite and the probability 0.
	return distuv.StudentsT{Sigma: 1, Nu: n - 1}.Survival(mean/deviation*math.Sqrt(n)) < level
}

// meanDifference returns the mean of a[i] - b[i].
func meanDifference(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += a[i] - b[i]
	}
	return sum / float64(len(a))
}
