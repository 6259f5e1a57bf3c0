package result

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/bootstrap"
)

// Level is the confidence level of the intervals.
const Level = 0.95

// intervalSeed seeds the resampling of intervals. It is independent of the seeds of
// the runs.
const intervalSeed = 1

// tolerance is the relative difference up to which two values are equal: sums of
// the same terms in another order differ by rounding.
const tolerance = 1e-9

// Compare computes the figures of all profiles from their runs, and their
// differences from the first profile.
func (s *Scenario) Compare() error {
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
				var err error
				if figure.Difference, err = difference(s.Profiles[0].Runs, profile.Runs, definition.Value); err != nil {
					return err
				}
			}
			profile.Figures[definition.Name] = figure
		}
	}
	return nil
}

// countedRuns returns the completed runs or, if none completed, all runs.
func (p *Profile) countedRuns() []Run {
	var completed []Run
	for i := range p.Runs {
		if !p.Runs[i].Interrupted {
			completed = append(completed, p.Runs[i])
		}
	}
	if len(completed) == 0 {
		return p.Runs
	}
	return completed
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
func difference(baseline, runs []Run, value func(*Run) float64) (*Difference, error) {
	var before, after []float64
	for i := range runs {
		for j := range baseline {
			if runs[i].Seed != baseline[j].Seed || runs[i].Interrupted || baseline[j].Interrupted {
				continue
			}
			x, y := value(&baseline[j]), value(&runs[i])
			if math.Abs(y-x) <= tolerance*math.Abs(x) {
				y = x
			}
			before, after = append(before, x), append(after, y)
		}
	}
	if len(before) == 0 {
		return nil, nil
	}
	d := &Difference{}
	for i := range before {
		switch {
		case after[i] < before[i]:
			d.Less++
		case after[i] > before[i]:
			d.More++
		default:
			d.Equal++
		}
	}
	var err error
	d.Mean, d.Interval, err = meanDifference(before, after)
	return d, err
}

// meanDifference returns the mean of after[i]-before[i], and its confidence
// interval if there are at least two pairs.
func meanDifference(before, after []float64) (float64, *Interval, error) {
	if len(before) < 2 {
		return mean(after) - mean(before), nil, nil
	}
	interval, err := bootstrap.Paired(before, after, Level, intervalSeed)
	if err != nil {
		return 0, nil, err
	}
	return interval.Mean, &Interval{Low: interval.Low, High: interval.High, ExcludesZero: interval.ExcludesZero()}, nil
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
