package result

import (
	"slices"
	"strings"
)

// Direction is the direction in which a figure improves.
type Direction uint8

// The directions. A figure is neutral if neither more nor less is better by itself:
// fewer nodes cost less but leave less capacity, and CPU withheld by a pod's own
// limit does not depend on the scheduler.
const (
	Lower Direction = iota
	Neutral
)

// Requirement states which runs have a figure.
type Requirement uint8

// The requirements.
const (
	AnyRun Requirement = iota
	WithAutoscaler
	WithSlack
	onlyBacktest // not in comparisons
)

// Use is a set of the places where a figure is used besides comparisons.
type Use uint8

// The uses of figures.
const (
	// inBacktest: compared by backtests. inSummary: also in their summary.
	inBacktest Use = 1 << iota
	inSummary
	// isHarm: must not be clearly worse in any scenario with a recommended profile.
	isHarm
	// OnlyWide: printed with -o wide only.
	OnlyWide
)

// Definition defines a figure by which runs are compared.
type Definition struct {
	// Name in documents.
	Name string
	// Label for people, and the unit of the values, empty for a plain count.
	Label, Unit string
	Direction   Direction
	Requires    Requirement
	Uses        Use
	// Value returns the figure of a run that meets the requirement.
	Value func(*Run) float64
}

// Title returns the label with its unit.
func (d *Definition) Title() string { return title(d.Label, d.Unit) }

func title(label, unit string) string {
	if unit == "" {
		return label
	}
	return label + ", " + unit
}

// isSum reports whether the value of a run is the sum of the values of its parts.
func (d *Definition) isSum() bool {
	return d.Unit == nodeMinutes || d.Unit == "core seconds" || d.Unit == ""
}

// IsPart reports whether the figure is a part of the overload, which precedes it in display order.
func (d *Definition) IsPart() bool { return strings.HasSuffix(d.Name, "OverloadMinutes") }

// HasUse reports whether the figure has a use.
func (d *Definition) HasUse(use Use) bool { return d.Uses&use != 0 }

// definitions defines all figures in display order.
var definitions = []Definition{
	{
		"overloadMinutes", "overload", nodeMinutes, Lower, AnyRun, inBacktest | inSummary | isHarm,
		func(r *Run) float64 { return r.OverloadMinutes },
	},
	{"cpuOverloadMinutes", "CPU overload", nodeMinutes, Lower, AnyRun, inBacktest, func(r *Run) float64 { return r.CPUOverloadMinutes }},
	{
		"memoryOverloadMinutes", "memory overload", nodeMinutes, Lower, AnyRun, inBacktest,
		func(r *Run) float64 { return r.MemoryOverloadMinutes },
	},
	{
		"cpuSaturationMinutes", "CPU saturation", nodeMinutes, Lower, AnyRun, inBacktest,
		func(r *Run) float64 { return r.CPUSaturationMinutes },
	},
	{"cpuLoadMean", "CPU load of nodes", "mean", Neutral, onlyBacktest, inBacktest, func(r *Run) float64 { return r.CPULoad.Mean }},
	{"cpuLoadP50", "CPU load of nodes", "p50", Neutral, onlyBacktest, inBacktest, func(r *Run) float64 { return r.CPULoad.P50 }},
	{"cpuLoadP95", "CPU load of nodes", "p95", Neutral, AnyRun, inBacktest | inSummary, func(r *Run) float64 { return r.CPULoad.P95 }},
	{"cpuLoadMax", "CPU load of nodes", "max", Neutral, AnyRun, inBacktest, func(r *Run) float64 { return r.CPULoad.Max }},
	{
		"memoryLoadMean",
		"memory load of nodes",
		"mean",
		Neutral,
		onlyBacktest,
		inBacktest,
		func(r *Run) float64 { return r.MemoryLoad.Mean },
	},
	{"memoryLoadP50", "memory load of nodes", "p50", Neutral, onlyBacktest, inBacktest, func(r *Run) float64 { return r.MemoryLoad.P50 }},
	{
		"memoryLoadP95", "memory load of nodes", "p95", Neutral, AnyRun, inBacktest | inSummary,
		func(r *Run) float64 { return r.MemoryLoad.P95 },
	},
	{"memoryLoadMax", "memory load of nodes", "max", Neutral, AnyRun, inBacktest, func(r *Run) float64 { return r.MemoryLoad.Max }},
	{
		"throttledCoreSeconds", "throttled by nodes", "core seconds", Lower, AnyRun, 0,
		func(r *Run) float64 { return r.ThrottledCoreSeconds },
	},
	{
		"limitedCoreSeconds", "throttled by limits", "core seconds", Neutral, AnyRun, OnlyWide,
		func(r *Run) float64 { return r.LimitedCoreSeconds },
	},
	{"memoryOverruns", "memory overruns", "", Lower, AnyRun, isHarm, func(r *Run) float64 { return float64(r.MemoryOverruns) }},
	{"victims", "pods killed by memory overruns", "", Lower, AnyRun, isHarm, func(r *Run) float64 { return float64(r.Victims) }},
	{
		"unschedulable", "unschedulable pods", "", Lower, AnyRun, inBacktest | isHarm,
		func(r *Run) float64 { return float64(r.Unschedulable) },
	},
	{"nodesUsed", "nodes used", "mean", Neutral, AnyRun, inBacktest | inSummary, func(r *Run) float64 { return r.NodesUsed }},
	{"nodesUsedPeak", "nodes used", "peak", Neutral, AnyRun, inBacktest, func(r *Run) float64 { return float64(r.NodesUsedPeak) }},
	{"cpuLimitRatioP50", "CPU limit ratio", "p50", Neutral, AnyRun, OnlyWide, func(r *Run) float64 { return r.CPULimitRatio.P50 }},
	{"cpuLimitRatioP95", "CPU limit ratio", "p95", Lower, AnyRun, OnlyWide, func(r *Run) float64 { return r.CPULimitRatio.P95 }},
	{"cpuLimitRatioMax", "CPU limit ratio", "max", Lower, AnyRun, OnlyWide, func(r *Run) float64 { return r.CPULimitRatio.Max }},
	{"memoryLimitRatioP50", "memory limit ratio", "p50", Neutral, AnyRun, OnlyWide, func(r *Run) float64 { return r.MemoryLimitRatio.P50 }},
	{"memoryLimitRatioP95", "memory limit ratio", "p95", Lower, AnyRun, OnlyWide, func(r *Run) float64 { return r.MemoryLimitRatio.P95 }},
	{"memoryLimitRatioMax", "memory limit ratio", "max", Lower, AnyRun, OnlyWide, func(r *Run) float64 { return r.MemoryLimitRatio.Max }},
	{
		"pendingSecondsMean", "pending", "mean seconds", Lower, AnyRun, inBacktest | inSummary,
		func(r *Run) float64 { return r.PendingSeconds.Mean },
	},
	{
		"pendingSecondsP95", "pending", "p95 seconds", Lower, AnyRun, inBacktest | isHarm,
		func(r *Run) float64 { return r.PendingSeconds.P95 },
	},
	{"pendingSecondsP99", "pending", "p99 seconds", Lower, AnyRun, 0, func(r *Run) float64 { return r.Waits.Percentile(99).Seconds() }},
	{
		"pendingLonger", "pods pending for more than 5 s", "", Lower, WithAutoscaler, 0, // the default goal of plimsoll recommend
		func(r *Run) float64 { return float64(r.Waits.longer(5)) },
	},
	{"pendingSecondsMax", "pending", "max seconds", Lower, onlyBacktest, inBacktest, func(r *Run) float64 { return r.PendingSeconds.Max }},
	{"churn", "rescheduled pods", "", Lower, AnyRun, 0, func(r *Run) float64 { return float64(r.Churn) }},
	{"cost", "cost of nodes", "", Lower, WithAutoscaler, 0, func(r *Run) float64 { return r.Scaling.Cost }},
	{"nodeHours", "node hours", "", Lower, WithAutoscaler, 0, func(r *Run) float64 { return r.Scaling.NodeHours }},
	{"scaleUps", "scale-ups", "", Neutral, WithAutoscaler, 0, func(r *Run) float64 { return float64(r.Scaling.ScaleUps) }},
	{"nodesAdded", "nodes added", "", Neutral, WithAutoscaler, 0, func(r *Run) float64 { return float64(r.Scaling.NodesAdded) }},
	{"nodesRemoved", "nodes removed", "", Neutral, WithAutoscaler, 0, func(r *Run) float64 { return float64(r.Scaling.NodesRemoved) }},
	{"nodesPeak", "nodes", "peak", Neutral, WithAutoscaler, 0, func(r *Run) float64 { return float64(r.Scaling.NodesPeak) }},
	{"slackKept", "slack available", "mean fraction", Neutral, WithSlack, 0, func(r *Run) float64 { return r.slackKept().Mean }},
	{"slackKeptLeast", "slack available", "min fraction", Neutral, WithSlack, 0, func(r *Run) float64 { return r.slackKept().Min }},
}

// Figures are the definitions of the figures of comparisons, in display order.
var Figures = figuresUpTo(WithSlack)

// CommonFigures returns the definitions of the figures that every run has.
func CommonFigures() []Definition { return figuresUpTo(AnyRun) }

// figuresUpTo returns the definitions with no more than a requirement.
func figuresUpTo(met Requirement) []Definition {
	return slices.DeleteFunc(slices.Clone(definitions), func(d Definition) bool { return d.Requires > met })
}

// FigureByName returns the definition of a figure of comparisons, and whether it exists.
func FigureByName(name string) (Definition, bool) {
	i := slices.IndexFunc(Figures, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return Figures[i], true
}

// Definitions returns the figures that the runs of a scenario have, in display order.
func (s *Scenario) Definitions() []Definition {
	met := AnyRun
	for i := range s.Profiles {
		for j := range s.Profiles[i].Runs {
			switch scaling := s.Profiles[i].Runs[j].Scaling; {
			case scaling == nil:
			case scaling.Slack == nil:
				met = max(met, WithAutoscaler)
			default:
				met = WithSlack
			}
		}
	}
	return figuresUpTo(met)
}
