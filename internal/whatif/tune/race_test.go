package tune

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// options of most tests: looks after 4, 6, 8 and 10 blocks.
var options = raceOptions{First: 4, Step: 2, Blocks: 10, Level: 0.1}

// run runs a race over a table of values by candidate and block, and returns it with the number of values that it needed.
func run(table [][]float64, o raceOptions) (*race, int) {
	r := newRace(len(table), o)
	measured := 0
	for next := r.Next(); next > 0; next = r.Next() {
		for range next {
			var values []float64
			for _, candidate := range r.Running() {
				values = append(values, table[candidate][r.blocks])
			}
			measured += len(values)
			r.Add(values)
		}
	}
	return r, measured
}

// TestDrops verifies the state of the second of two candidates. There are looks after blocks 4, 6, 8 and 10 and one other candidate, so
// each test has the level 0.1 / 4 = 0.025, whose quantiles of t are 3.18 with 3 degrees of freedom and 2.26 with 9.
func TestDrops(t *testing.T) {
	same := []float64{5, 7, 3, 9, 5, 7, 3, 9, 5, 7}
	add := func(differences ...float64) []float64 {
		var values []float64
		for i := range same {
			values = append(values, same[i]+differences[i%len(differences)])
		}
		return values
	}
	for name, tc := range map[string]struct {
		other  []float64
		answer result.Answer
		blocks int
	}{
		"equal":           {add(0), result.Equal, 4},
		"always one more": {add(1), result.Worse, 4},
		// Mean 1.5, deviation sqrt(1/3) = 0.577: t = 1.5/0.577*2 = 5.2.
		"clearly more": {add(1, 2), result.Worse, 4},
		// 4 blocks: mean 1, deviation sqrt(4*4/3) = 2.31, t = 0.87; 10 blocks: mean 1, deviation sqrt(10*4/9) = 2.11, t = 1.5.
		"noisy": {add(3, -1), running, 10},
		// 4 blocks: mean 1, deviation sqrt(4*1/3) = 1.15, t = 1.73; 6 blocks: deviation sqrt(6/5) = 1.10, t = 2.24, quantile 2.57;
		// 8 blocks: deviation sqrt(8/7) = 1.07, t = 2.65, quantile 2.36.
		"more after eight": {add(2, 0), result.Worse, 8},
	} {
		r, _ := run([][]float64{same, tc.other}, options)
		if r.answers[0] != running || r.answers[1] != tc.answer || len(r.values[1]) != tc.blocks {
			t.Errorf(
				"%s: answers %q and %q after %d blocks, want %q after %d",
				name,
				r.answers[0],
				r.answers[1],
				len(r.values[1]),
				tc.answer,
				tc.blocks,
			)
		}
	}
}

// tables generates small whole numbers by candidate and block, which are summed without rounding.
func tables(t *rapid.T) [][]float64 {
	candidates := rapid.IntRange(1, 6).Draw(t, "candidates")
	table := make([][]float64, candidates)
	for i := range table {
		offset := rapid.IntRange(0, 20).Draw(t, "offset")
		for _, v := range rapid.SliceOfN(rapid.IntRange(0, 8), options.Blocks, options.Blocks).Draw(t, "values") {
			table[i] = append(table[i], float64(v+offset))
		}
	}
	return table
}

// TestInvariances verifies that a race does not change if all values of a block grow by the same amount, or if all values are multiplied
// by a power of 2, which is exact; and that at least one candidate runs in the end and leads.
func TestInvariances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tables(t)
		shifts := rapid.SliceOfN(rapid.IntRange(-1000, 1000), options.Blocks, options.Blocks).Draw(t, "shifts")
		scale := math.Pow(2, float64(rapid.IntRange(-10, 10).Draw(t, "scale")))
		r, measured := run(table, options)
		if len(r.Running()) == 0 || r.answers[r.Leader()] != running {
			t.Fatalf("no leader: %v", r.answers)
		}
		changed := make([][]float64, len(table))
		for i := range table {
			for block, v := range table[i] {
				changed[i] = append(changed[i], scale*(v+float64(shifts[block])))
			}
		}
		other, otherMeasured := run(changed, options)
		if !slices.Equal(r.answers, other.answers) || measured != otherMeasured || r.Leader() != other.Leader() {
			t.Fatalf("answers %v, leader %d; with shifts %v, leader %d", r.answers, r.Leader(), other.answers, other.Leader())
		}
	})
}

// TestNothingDropped verifies that without a test that can drop a candidate, the candidate with the smallest mean wins, as in an
// exhaustive comparison.
func TestNothingDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tables(t)
		one := raceOptions{First: options.Blocks, Step: 1, Blocks: options.Blocks, Level: 0.1}
		r, _ := run(table, one)
		if want := exhaustive(table); meanDifference(table[r.Leader()], table[want]) != 0 {
			t.Fatalf("leader %d, want %d", r.Leader(), want)
		}
	})
}

// exhaustive returns the candidate with the smallest sum over all blocks.
func exhaustive(table [][]float64) int {
	best, least := 0, math.Inf(1)
	for candidate, values := range table {
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		if sum < least {
			best, least = candidate, sum
		}
	}
	return best
}

// synthetic returns a table with given expectations. Blocks differ by much more than candidates do.
func synthetic(random *rand.Rand, expectations []float64, blocks int, noise func() float64) [][]float64 {
	table := make([][]float64, len(expectations))
	for range blocks {
		block := 1000 * random.Float64()
		for i := range table {
			table[i] = append(table[i], block+expectations[i]+noise())
		}
	}
	return table
}

// TestBestSurvives verifies the level of races of 12 candidates: the candidate with the smallest expectation is dropped in at most a
// tenth of the races, the winner is about as good as the winner of an exhaustive comparison of all blocks, and the races need less than
// two thirds of its measurements.
func TestBestSurvives(t *testing.T) {
	const races, candidates = 2000, 12
	random := rand.New(rand.NewPCG(1, 2))
	dropped, measured := 0, 0
	var loss, exhaustiveLoss float64
	for range races {
		expectations := make([]float64, candidates)
		best := random.IntN(candidates)
		for i := range expectations {
			if i != best {
				expectations[i] = 1 + 10*random.Float64()
			}
		}
		table := synthetic(random, expectations, options.Blocks, random.NormFloat64)
		r, n := run(table, options)
		measured += n
		if r.answers[best] != running {
			dropped++
		}
		loss += expectations[r.Leader()]
		exhaustiveLoss += expectations[exhaustive(table)]
	}
	if limit := int(options.Level * races); dropped > limit {
		t.Errorf("the best candidate was dropped in %d of %d races, want at most %d", dropped, races, limit)
	}
	if limit := races * candidates * options.Blocks * 2 / 3; measured > limit {
		t.Errorf("%d measurements, want at most %d", measured, limit)
	}
	if loss > exhaustiveLoss+0.02*races {
		t.Errorf("mean loss %.3f, that of an exhaustive comparison %.3f", loss/races, exhaustiveLoss/races)
	}
}
