package result

import "slices"

// Direction is the direction in which a figure improves.
type Direction uint8

// The directions. A figure is neutral if neither more nor less is better by itself:
// fewer nodes cost less but leave less capacity, and CPU withheld by a pod's own
// limit does not depend on the scheduler.
const (
	LowerIsBetter Direction = iota
	Neutral
)

// Requirement states which runs have a figure.
type Requirement uint8

// The requirements.
const (
	AnyRun Requirement = iota
	WithAutoscaler
	WithSlack
)

// Definition defines a figure by which runs are compared.
type Definition struct {
	// Name in documents.
	Name string
	// Label for people, and the unit of the values, empty for a plain count.
	Label, Unit string
	// Detail is set if the figure is a part of the preceding one.
	Detail    bool
	Direction Direction
	Requires  Requirement
	// Value returns the figure of a run that meets the requirement.
	Value func(*Run) float64
}

// Title returns the label with its unit.
func (d *Definition) Title() string {
	if d.Unit == "" {
		return d.Label
	}
	return d.Label + ", " + d.Unit
}

// Figures defines all figures in display order.
var Figures = []Definition{
	{
		Name: "overloadMinutes", Label: "overload", Unit: "node minutes",
		Value: func(r *Run) float64 { return r.OverloadMinutes },
	},
	{
		Name: "cpuOverloadMinutes", Label: "CPU overload", Unit: "node minutes", Detail: true,
		Value: func(r *Run) float64 { return r.CPUOverloadMinutes },
	},
	{
		Name: "memoryOverloadMinutes", Label: "memory overload", Unit: "node minutes", Detail: true,
		Value: func(r *Run) float64 { return r.MemoryOverloadMinutes },
	},
	{
		Name: "cpuLoadP95", Label: "CPU load of nodes", Unit: "p95", Direction: Neutral,
		Value: func(r *Run) float64 { return r.CPULoad.P95 },
	},
	{
		Name: "cpuLoadMax", Label: "CPU load of nodes", Unit: "max", Direction: Neutral,
		Value: func(r *Run) float64 { return r.CPULoad.Max },
	},
	{
		Name: "memoryLoadP95", Label: "memory load of nodes", Unit: "p95", Direction: Neutral,
		Value: func(r *Run) float64 { return r.MemoryLoad.P95 },
	},
	{
		Name: "memoryLoadMax", Label: "memory load of nodes", Unit: "max", Direction: Neutral,
		Value: func(r *Run) float64 { return r.MemoryLoad.Max },
	},
	{
		Name: "throttledCoreSeconds", Label: "throttled by nodes", Unit: "core seconds",
		Value: func(r *Run) float64 { return r.ThrottledCoreSeconds },
	},
	{
		Name: "limitedCoreSeconds", Label: "throttled by limits", Unit: "core seconds", Direction: Neutral,
		Value: func(r *Run) float64 { return r.LimitedCoreSeconds },
	},
	{
		Name: "memoryOverruns", Label: "memory overruns",
		Value: func(r *Run) float64 { return float64(r.MemoryOverruns) },
	},
	{
		Name: "victims", Label: "pods killed by memory overruns",
		Value: func(r *Run) float64 { return float64(r.Victims) },
	},
	{
		Name: "unschedulable", Label: "unschedulable pods",
		Value: func(r *Run) float64 { return float64(r.Unschedulable) },
	},
	{
		Name: "nodesUsed", Label: "nodes used", Unit: "mean", Direction: Neutral,
		Value: func(r *Run) float64 { return r.NodesUsed },
	},
	{
		Name: "nodesUsedPeak", Label: "nodes used", Unit: "peak", Direction: Neutral,
		Value: func(r *Run) float64 { return float64(r.NodesUsedPeak) },
	},
	{
		Name: "cpuLimitRatioP50", Label: "CPU limit ratio", Unit: "p50", Direction: Neutral,
		Value: func(r *Run) float64 { return r.CPULimitRatio.P50 },
	},
	{
		Name: "cpuLimitRatioP95", Label: "CPU limit ratio", Unit: "p95",
		Value: func(r *Run) float64 { return r.CPULimitRatio.P95 },
	},
	{
		Name: "cpuLimitRatioMax", Label: "CPU limit ratio", Unit: "max",
		Value: func(r *Run) float64 { return r.CPULimitRatio.Max },
	},
	{
		Name: "memoryLimitRatioP50", Label: "memory limit ratio", Unit: "p50", Direction: Neutral,
		Value: func(r *Run) float64 { return r.MemoryLimitRatio.P50 },
	},
	{
		Name: "memoryLimitRatioP95", Label: "memory limit ratio", Unit: "p95",
		Value: func(r *Run) float64 { return r.MemoryLimitRatio.P95 },
	},
	{
		Name: "memoryLimitRatioMax", Label: "memory limit ratio", Unit: "max",
		Value: func(r *Run) float64 { return r.MemoryLimitRatio.Max },
	},
	{
		Name: "pendingSecondsMean", Label: "pending", Unit: "mean seconds",
		Value: func(r *Run) float64 { return r.PendingSeconds.Mean },
	},
	{
		Name: "pendingSecondsP95", Label: "pending", Unit: "p95 seconds",
		Value: func(r *Run) float64 { return r.PendingSeconds.P95 },
	},
	{
		Name: "churn", Label: "rescheduled pods",
		Value: func(r *Run) float64 { return float64(r.Churn) },
	},
	{
		Name: "cost", Label: "cost of nodes", Requires: WithAutoscaler,
		Value: func(r *Run) float64 { return r.Scaling.Cost },
	},
	{
		Name: "nodeHours", Label: "node hours", Requires: WithAutoscaler,
		Value: func(r *Run) float64 { return r.Scaling.NodeHours },
	},
	{
		Name: "scaleUps", Label: "scale-ups", Direction: Neutral, Requires: WithAutoscaler,
		Value: func(r *Run) float64 { return float64(r.Scaling.ScaleUps) },
	},
	{
		Name: "nodesAdded", Label: "nodes added", Direction: Neutral, Requires: WithAutoscaler,
		Value: func(r *Run) float64 { return float64(r.Scaling.NodesAdded) },
	},
	{
		Name: "nodesRemoved", Label: "nodes removed", Direction: Neutral, Requires: WithAutoscaler,
		Value: func(r *Run) float64 { return float64(r.Scaling.NodesRemoved) },
	},
	{
		Name: "nodesPeak", Label: "nodes", Unit: "peak", Direction: Neutral, Requires: WithAutoscaler,
		Value: func(r *Run) float64 { return float64(r.Scaling.NodesPeak) },
	},
	{
		Name: "slackKept", Label: "slack available", Unit: "mean fraction", Direction: Neutral, Requires: WithSlack,
		Value: func(r *Run) float64 { return r.slackKept().Mean },
	},
	{
		Name: "slackKeptLeast", Label: "slack available", Unit: "min fraction", Direction: Neutral, Requires: WithSlack,
		Value: func(r *Run) float64 { return r.slackKept().Min },
	},
}

// CommonFigures returns the definitions of the figures that every run has.
func CommonFigures() []Definition { return figuresUpTo(AnyRun) }

// figuresUpTo returns the definitions with no more than a requirement.
func figuresUpTo(met Requirement) []Definition {
	return slices.DeleteFunc(slices.Clone(Figures), func(d Definition) bool { return d.Requires > met })
}

// FigureByName returns the definition of a figure, and whether it exists.
func FigureByName(name string) (Definition, bool) {
	i := slices.IndexFunc(Figures, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return Figures[i], true
}

// Definitions returns the figures that the runs of a scenario have, in display
// order.
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
