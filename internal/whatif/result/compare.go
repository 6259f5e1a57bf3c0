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

// nodeMinutes is the unit of times that are summed over nodes, in which the error of the model is known.
const nodeMinutes = "node minutes"

// Compare computes the figures of all profiles from their runs, and their
// differences from the first profile.
func (s *Scenario) Compare() {
	definitions := s.Definitions()
	for i := range s.Profiles {
		profile := &s.Profiles[i]
		profile.Figures = map[string]Figure{}
		runs := profile.countedRuns()
		before, after := pairs(s.Profiles[0].Runs, profile.Runs)
		for _, definition := range definitions {
			if len(runs) == 0 {
				continue
			}
			figure := Figure{Mean: mean(valuesOf(runs, definition.Value))}
			if i > 0 && len(before) > 0 {
				figure.Difference = PairedDifference(valuesOf(before, definition.Value), valuesOf(after, definition.Value))
				figure.Difference.divide(before, after, definition)
				if s.Measured != nil && definition.Unit == nodeMinutes {
					measured, simulated := pairs(s.Measured.Runs, before)
					d := PairedDifference(valuesOf(measured, definition.Value), valuesOf(simulated, definition.Value))
					figure.Difference.ModelError = math.Abs(d.Mean)
				}
			}
			profile.Figures[definition.Name] = figure
		}
	}
}

// Interval returns the confidence interval of the mean of a figure, nil with fewer than two runs.
func (p *Profile) Interval(figure Definition) *Interval {
	_, in := meanInterval(valuesOf(p.countedRuns(), figure.Value))
	return in
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

// pairs returns the completed runs of two profiles that have the same seed.
func pairs(baseline, runs []Run) (before, after []Run) {
	bySeed := map[uint64]*Run{}
	for i := range baseline {
		bySeed[baseline[i].Seed] = &baseline[i]
	}
	for i := range runs {
		if base := bySeed[runs[i].Seed]; base != nil && !base.Interrupted && !runs[i].Interrupted {
			before, after = append(before, *base), append(after, runs[i])
		}
	}
	return before, after
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

// divide finds the interval and the counts of a difference from the parts of the runs, if they have parts: an interval whose width is that
// of the mean of the parts or, if it is wider, of the mean of the seeds. Neighboring parts are correlated, as pods remain on their nodes:
// the variance of the mean is that of Newey and West (A Simple, Positive Semi-definite, Heteroskedasticity and Autocorrelation Consistent
// Covariance Matrix, 1987), and not less than without correlation.
func (d *Difference) divide(before, after []Run, definition Definition) {
	n := len(before[0].Parts)
	if n < 2 || definition.Requires == WithSlack {
		return
	}
	base, changed := make([]float64, n), make([]float64, n)
	for i := range before {
		for part := range n {
			base[part] += definition.Value(&before[i].Parts[part]) / float64(len(before))
			changed[part] += definition.Value(&after[i].Parts[part]) / float64(len(before))
		}
	}
	parts := PairedDifference(base, changed)
	d.Less, d.Equal, d.More = parts.Less, parts.Equal, parts.More
	differences := changed
	for i := range differences {
		differences[i] -= base[i]
	}
	half := quantile95(n) * math.Sqrt(max(longRunVariance(differences), stat.Variance(differences, nil))/float64(n))
	if definition.isSum() {
		half *= float64(n)
	}
	if d.Interval != nil {
		half = max(half, d.Interval.High-d.Mean)
	}
	d.Interval = &Interval{Low: d.Mean - half, High: d.Mean + half, ExcludesZero: math.Abs(d.Mean) > half}
}

// longRunVariance returns n times the variance of the mean of n values in the order of their time, with Bartlett's weights for as many
// neighbors as Newey and West (Automatic Lag Selection in Covariance Matrix Estimation, 1994) start with.
func longRunVariance(values []float64) float64 {
	n := float64(len(values))
	mean, neighbors := mean(values), int(4*math.Pow(n/100, 2.0/9))
	sum := stat.Variance(values, nil)
	for lag := 1; lag <= neighbors && lag < len(values); lag++ {
		covariance := 0.0
		for i := range values[lag:] {
			covariance += (values[i] - mean) * (values[i+lag] - mean) / (n - 1)
		}
		sum += 2 * (1 - float64(lag)/float64(neighbors+1)) * covariance
	}
	return sum
}

// quantile95 returns the quantile of Student's distribution by which the interval at Level of the mean of n values is wider than the
// deviation of the mean.
func quantile95(n int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile((1 + Level) / 2)
}

// meanInterval returns the mean of values and its confidence interval at Level, nil with fewer than two values.
func meanInterval(values []float64) (float64, *Interval) {
	mean, n := mean(values), float64(len(values))
	if n < 2 {
		return mean, nil
	}
	half := quantile95(len(values)) * stat.StdDev(values, nil) / math.Sqrt(n)
	return mean, &Interval{Low: mean - half, High: mean + half, ExcludesZero: math.Abs(mean) > half}
}

func mean(values []float64) float64 { return stat.Mean(values, nil) }
