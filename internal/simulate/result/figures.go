package result

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/bootstrap"
)

// Level of the intervals.
const Level = 0.95

// seedOfIntervals draws the resamples; it is not one of the seeds of runs.
const seedOfIntervals = 1

// noise is how far two figures lie apart, as a part of them, that differ only in
// the order in which they were added up.
const noise = 1e-9

// Named is a figure that runs are compared by.
type Named struct {
	// Name in documents, Label for people, with the unit.
	Name, Label string
	Of          func(*Run) float64
}

// Figures are those that all runs have, in the order in which they are shown.
var Figures = []Named{
	{"overloadMinutes", "overload, node minutes", func(r *Run) float64 { return r.OverloadMinutes }},
	{"cpuOverloadMinutes", "  of CPU", func(r *Run) float64 { return r.CPUOverloadMinutes }},
	{"memoryOverloadMinutes", "  of memory", func(r *Run) float64 { return r.MemoryOverloadMinutes }},
	{"throttledCoreSeconds", "throttled by nodes, core seconds", func(r *Run) float64 { return r.ThrottledCoreSeconds }},
	{"limitedCoreSeconds", "held by own limits, core seconds", func(r *Run) float64 { return r.LimitedCoreSeconds }},
	{"memoryOverruns", "memory overruns", func(r *Run) float64 { return float64(r.MemoryOverruns) }},
	{"victims", "pods killed by them", func(r *Run) float64 { return float64(r.Victims) }},
	{"unschedulable", "unschedulable pods", func(r *Run) float64 { return float64(r.Unschedulable) }},
	{"nodesUsed", "nodes used, mean", func(r *Run) float64 { return r.NodesUsed }},
	{"nodesUsedPeak", "nodes used, most", func(r *Run) float64 { return float64(r.NodesUsedPeak) }},
	{"cpuLimitRatioP50", "CPU limit ratio, p50", func(r *Run) float64 { return r.CPULimitRatio.P50 }},
	{"cpuLimitRatioP95", "CPU limit ratio, p95", func(r *Run) float64 { return r.CPULimitRatio.P95 }},
	{"cpuLimitRatioMax", "CPU limit ratio, max", func(r *Run) float64 { return r.CPULimitRatio.Max }},
	{"memoryLimitRatioP50", "memory limit ratio, p50", func(r *Run) float64 { return r.MemoryLimitRatio.P50 }},
	{"memoryLimitRatioP95", "memory limit ratio, p95", func(r *Run) float64 { return r.MemoryLimitRatio.P95 }},
	{"memoryLimitRatioMax", "memory limit ratio, max", func(r *Run) float64 { return r.MemoryLimitRatio.Max }},
	{"pendingSecondsMean", "pending, mean seconds", func(r *Run) float64 { return r.PendingSeconds.Mean }},
	{"pendingSecondsP95", "pending, p95 seconds", func(r *Run) float64 { return r.PendingSeconds.P95 }},
	{"churn", "pods that had to move", func(r *Run) float64 { return float64(r.Churn) }},
}

// Compare works out the figures of all profiles from their runs, and how they
// differ from those of the first.
func (s *Scenario) Compare() error {
	shown := s.Shown()
	for i := range s.Profiles {
		profile := &s.Profiles[i]
		profile.Figures = map[string]Figure{}
		for _, named := range shown {
			figure, ok, err := compare(named, s.Profiles[0].Runs, profile.Runs, i > 0)
			if err != nil {
				return err
			}
			if ok {
				profile.Figures[named.Name] = figure
			}
		}
	}
	return nil
}

// compare returns a figure, and whether there is any run to have it from.
func compare(named Named, base, runs []Run, differs bool) (Figure, bool, error) {
	counted := func(interrupted bool) []float64 {
		var values []float64
		for i := range runs {
			if runs[i].Interrupted == interrupted {
				values = append(values, named.Of(&runs[i]))
			}
		}
		return values
	}
	values := counted(false)
	if len(values) == 0 {
		values = counted(true)
	}
	if len(values) == 0 {
		return Figure{}, false, nil
	}
	figure := Figure{Mean: mean(values)}
	if !differs {
		return figure, true, nil
	}
	// Pairs of which both went to their end.
	var a, b []float64
	for i := range runs {
		for j := range base {
			if runs[i].Seed == base[j].Seed && !runs[i].Interrupted && !base[j].Interrupted {
				of, other := named.Of(&base[j]), named.Of(&runs[i])
				if math.Abs(other-of) <= noise*math.Abs(of) {
					other = of
				}
				a, b = append(a, of), append(b, other)
			}
		}
	}
	difference, err := differenceOf(a, b)
	figure.Difference = difference
	return figure, true, err
}

// differenceOf returns the difference of pairs, nil if there are none.
func differenceOf(a, b []float64) (*Difference, error) {
	if len(a) == 0 {
		return nil, nil
	}
	d := &Difference{Mean: mean(b) - mean(a)}
	for i := range a {
		switch {
		case b[i] < a[i]:
			d.Less++
		case b[i] > a[i]:
			d.More++
		default:
			d.Equal++
		}
	}
	if len(a) < 2 {
		return d, nil
	}
	interval, err := bootstrap.Paired(a, b, Level, seedOfIntervals)
	if err != nil {
		return nil, err
	}
	d.Mean = interval.Mean
	d.Interval = &Interval{Low: interval.Low, High: interval.High, Clear: interval.Clear()}
	return d, nil
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
