package result

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Level is the confidence level of the intervals.
const Level = 0.95

// tolerance is the relative difference up to which two values are equal: sums of
// the same terms in another order differ by rounding.
const tolerance = 1e-9

// Compare computes the figures of all profiles from their runs, and their
// differences from the first profile.
func (s *Scenario) Compare() {
	definitions := s.Definitions()
	for i := range s.Profiles {
		profile := &s.Profiles[i]
		profile.Figures = map[string]Figure{}
		runs := profile.countedRuns()
		for _, definition := range definitions {
			if len(runs) == 0 {
				continue
			}
			figure := Figure{Mean: mean(valuesOf(runs, definition.Value))}
			if i > 0 {
				figure.Difference = difference(s.Profiles[0].Runs, profile.Runs, definition.Value)
			}
			profile.Figures[definition.Name] = figure
		}
	}
}

// countedRuns returns the completed runs or, if none completed, all runs.
func (p *Profile) countedRuns() []Run {
	completed := slices.DeleteFunc(slices.Clone(p.Runs), func(r Run) bool { return r.Interrupted })
	if len(completed) == 0 {
		return p.Runs
	}
	return completed
}

// Interrupted returns the number of interrupted runs.
func (p *Profile) Interrupted() (n int) {
	for i := range p.Runs {
		if p.Runs[i].Interrupted {
			n++
		}
	}
	return n
}

// valuesOf returns a figure of each run.
func valuesOf(runs []Run, value func(*Run) float64) []float64 {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = value(&runs[i])
	}
	return values
}

// difference compares the completed runs of two profiles that have the same seed.
// It returns nil if there are no such pairs.
func difference(baseline, runs []Run, value func(*Run) float64) *Difference {
	var before, after []float64
	for i := range runs {
		for j := range baseline {
			if runs[i].Seed != baseline[j].Seed || runs[i].Interrupted || baseline[j].Interrupted {
				continue
			}
			before, after = append(before, value(&baseline[j])), append(after, value(&runs[i]))
		}
	}
	if len(before) == 0 {
		return nil
	}
	return PairedDifference(before, after)
}

// SetExact sets the intervals of the only pair of runs, in which nothing is sampled: they have no width.
func (s *Scenario) SetExact() {
	for i := range s.Profiles {
		for _, f := range s.Profiles[i].Figures {
			if d := f.Difference; d != nil && d.Interval == nil {
				d.Interval = &Interval{Low: d.Mean, High: d.Mean, ExcludesZero: d.Less+d.More > 0}
			}
		}
	}
}

// PairedDifference compares after[i] with before[i], two values of the same seed. There must be at least one pair. The interval is the
// interval of the paired t test (Student, The Probable Error of a Mean, 1908): mean +- t(n-1) s / sqrt(n), with the standard deviation
// s of the n differences. With few seeds and heavily skewed differences it contains the true mean less often than Level says.
func PairedDifference(before, after []float64) *Difference {
	d, differences := &Difference{}, make([]float64, len(before))
	for i, x := range before {
		change := after[i] - x
		switch {
		case math.Abs(change) <= tolerance*math.Abs(x):
			change = 0
			d.Equal++
		case change < 0:
			d.Less++
		default:
			d.More++
		}
		differences[i] = change
	}
	d.Mean, d.Interval = meanInterval(differences)
	return d
}

// meanInterval returns the mean of values and its confidence interval at Level, nil with fewer than two values.
func meanInterval(values []float64) (float64, *Interval) {
	mean, n := mean(values), float64(len(values))
	if n < 2 {
		return mean, nil
	}
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1+Level)/2) * stat.StdDev(values, nil) / math.Sqrt(n)
	return mean, &Interval{Low: mean - half, High: mean + half, ExcludesZero: math.Abs(mean) > half}
}

func mean(values []float64) float64 { return stat.Mean(values, nil) }
