// Package result defines the document that a what-if produces for programs, gates
// and reports, and the figures by which runs are compared. The document does not
// depend on when or how fast it was produced: the same input and seeds give the
// same bytes.
//
// # Outcome
//
// Evaluator computes the effect of overcommitment on the pods of a node: how
// much CPU each pod gets, and which pods are killed when the node is out of memory.
// Totals accumulates the effects over a run.
//
// CPU. A pod demands CPU and gets at most its limit. If the pods of a node together
// demand more than its allocatable CPU, it is divided by weight, work-conserving.
// The weight is the request, from which the kubelet sets cpu.shares and the runtime
// cpu.weight; a pod without a request has the weight of two shares, 2/1024 of a
// core. CPU that a pod demands and does not get is throttled: by its limit or by
// the node.
//
// Memory. A pod uses at most its limit. If the pods of a node together use more
// than its allocatable memory, pods are killed until the rest fits, in descending
// order of the kernel's badness: memory used plus oom_score_adj thousandths of the
// machine's memory, with the adjustment of the kubelet. This models all handling of
// memory pressure.
//
// The model leaves out: eviction by the kubelet, which acts on a threshold before the kernel does
// and ranks by use over request and priority; the cgroups of QoS classes, which contain the cgroups
// of pods (pods of one class compete with each other first, and all best-effort pods together have
// two shares); CPU used by the system; CFS periods (a pod can be throttled within a period although
// it used less than its limit on average); pods of several containers, which count as one.
//
// Amounts are floating point: CPU in millicores, memory in bytes, time in seconds.
// Bytes are exact up to 2^53.
package result

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Version and kind of the document. Fields may be added; no field is removed or
// given another meaning.
const (
	APIVersion = "whatif.plimsoll.dev/v1"
	Kind       = "WhatIf"
)

// Result is the document.
type Result struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Source is the simulated cluster.
	Source Source `json:"source"`
	// Command is the command that computes the result, without flags of its output. It is empty if it is not known.
	Command string `json:"command,omitempty"`
	// Recommendation states what the comparison shows, nil if nothing is compared.
	Recommendation *Recommendation `json:"recommendation,omitempty"`
	// Notes state what to know before the figures are read, one sentence each.
	Notes []string `json:"notes,omitempty"`
	// Backtest states how well the model reproduces a recording, nil for other inputs.
	Backtest *Backtest `json:"backtest,omitempty"`
	// Assumed lists everything that was assumed or generated, one sentence each.
	Assumed []string `json:"assumed"`
	// Settings of the runs.
	Settings Settings `json:"settings"`
	// Profiles are the names of the compared profiles; the first is the baseline.
	Profiles []string `json:"profiles"`
	// Seeds of the runs: run i of every profile has seed i.
	Seeds []uint64 `json:"seeds"`
	// Windows is the number of windows of a shadow, each of which has a seed, 0 for other results.
	Windows int `json:"windows,omitempty"`
	// Shard selects the part of a comparison's seeds that the result has, nil for all.
	Shard *Shard `json:"shard,omitempty"`
	// Scenario has the results of the profiles.
	Scenario Scenario `json:"scenario"`
	// Interrupted is set if at least one run did not complete or did not start.
	Interrupted bool `json:"interrupted"`
}

// RunNoun returns what pairs of runs have in common.
func (r *Result) RunNoun() string {
	if r.Windows > 0 {
		return "window"
	}
	return "seed"
}

// PairNoun returns what the pairs of values of which intervals are found have in common.
func (r *Result) PairNoun() string {
	if r.parts() > 0 {
		return "part"
	}
	return r.RunNoun()
}

// Pairs returns the number of pairs of values of which intervals are found.
func (r *Result) Pairs() int { return max(r.parts(), len(r.Seeds)) }

// parts returns the number of parts of a run, 0 if runs are not divided.
func (r *Result) parts() int {
	for i := range r.Scenario.Profiles {
		for j := range r.Scenario.Profiles[i].Runs {
			return len(r.Scenario.Profiles[i].Runs[j].Parts)
		}
	}
	return 0
}

// Over states over what figures are means.
func (r *Result) Over() string {
	if r.parts() > 0 && len(r.Seeds) == 1 {
		return "whole recording"
	}
	return "mean over " + r.RunNoun() + "s"
}

// moreRuns states how to get more pairs of runs.
func (r *Result) moreRuns() string {
	switch {
	case r.Windows > 0:
		return "Wait for more windows"
	case strings.HasPrefix(r.Source.Name, "recording: "):
		return "Record at least 20 minutes, or run with more seeds"
	}
	return "Run with more seeds"
}

// WithoutRuns returns a copy without single runs.
func (r *Result) WithoutRuns() *Result {
	out := *r
	s := &out.Scenario
	s.Profiles = slices.Clone(s.Profiles)
	for i := range s.Profiles {
		s.Profiles[i].Runs = []Run{}
	}
	if s.Measured != nil {
		s.Measured = new(*s.Measured)
		s.Measured.Runs = []Run{}
	}
	return &out
}

// Source describes the simulated cluster.
type Source struct {
	Name string `json:"name"`
	// Nodes and Pods are counted with the first seed.
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// UsageKnown counts the pods whose usage is recorded or measured, with the first seed.
	UsageKnown int `json:"usageKnown,omitempty"`
	// Exact is set if nothing is sampled: another run would be the same, so that there is one, whose differences are no chance.
	Exact bool `json:"exact,omitempty"`
	// Unlimited counts the pods without a limit of CPU or memory, with the first seed.
	Unlimited int `json:"unlimited,omitempty"`
	// Missing are sentences about claims, usage and demand of pods that the input lacks.
	Missing []string `json:"missing,omitempty"`
}

// Directed returns a figure with its direction for this cluster. Pods without limits count with their requests in
// limit ratios. If there are such pods, limit ratios are neutral, because a profile that spreads them by their usage
// increases the ratios of other nodes.
func (s Source) Directed(d Definition) Definition {
	if s.Unlimited > 0 && strings.Contains(d.Name, "LimitRatio") {
		d.Direction = Neutral
	}
	return d
}

// Settings of the runs.
type Settings struct {
	// StepSeconds is the interval at which usage is evaluated; TailSeconds is how long
	// a run continues after the last pod has arrived.
	StepSeconds int64   `json:"stepSeconds"`
	TailSeconds int64   `json:"tailSeconds"`
	Metrics     Metrics `json:"metrics"`
	// Saturation is the fraction of its allocatable CPU above which a node is saturated.
	Saturation float64 `json:"saturation,omitempty"`
	// Level is the confidence level of the intervals.
	Level float64 `json:"level"`
	// Autoscaler is nil without one.
	Autoscaler *Autoscaler `json:"autoscaler,omitempty"`
}

// Metrics describes the load measurements that the scheduler receives: their
// interval, the delay until they arrive, and the window of means and deviations.
type Metrics struct {
	IntervalSeconds int64 `json:"intervalSeconds"`
	DelaySeconds    int64 `json:"delaySeconds"`
	WindowSeconds   int64 `json:"windowSeconds"`
}

// Scenario is the limits and the usage of pods, and what profiles do with them.
type Scenario struct {
	// Limits specify the limits of pods without limits, empty if the source has limits. Usage is
	// the complete specification of the usage of pods.
	Limits   string    `json:"limits"`
	Usage    string    `json:"usage"`
	Profiles []Profile `json:"profiles"`
	// Measured has the runs with the recorded placements, nil if not each seed has one.
	Measured *Profile `json:"measured,omitempty"`
}

// Description returns the limits and usage.
func (s *Scenario) Description() string {
	usage := "usage " + strings.ReplaceAll(s.Usage, ";", "; ")
	if s.Limits == "" {
		return usage
	}
	return "limits " + s.Limits + ", " + usage
}

// Profile has the results of one profile in one scenario.
type Profile struct {
	Name string `json:"name"`
	// Slack is the slack that the autoscaler maintains: a rate such as 10%, or the
	// name of a file with a policy; empty if none was requested.
	Slack string `json:"slack,omitempty"`
	// Figures by the names in Figures.
	Figures map[string]Figure `json:"figures"`
	// Verdict compares the profile with the first one. It is nil for the first one.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Effect states the effect in the verdict in place of the means of runs.
	Effect string `json:"effect,omitempty"`
	// Overloaded has sums over the runs, nil if only runs have it.
	Overloaded *Overloaded `json:"overloaded,omitempty"`
	// Runs in the order of the seeds.
	Runs []Run `json:"runs"`
}

// Figure is the value of one figure over all seeds.
type Figure struct {
	// Mean over the completed runs or, if none completed, over the interrupted runs.
	Mean float64 `json:"mean"`
	// Difference from the baseline profile, nil for the baseline itself.
	Difference *Difference `json:"difference,omitempty"`
}

// Difference compares a figure with the figure of the baseline profile, run by run with the same
// seeds.
type Difference struct {
	Mean float64 `json:"mean"`
	// Interval is the confidence interval of the mean, nil with fewer than two seeds.
	Interval *Interval `json:"interval,omitempty"`
	// ModelError is the absolute difference of simulation and measurement with the baseline profile, 0 if it is not known.
	ModelError float64 `json:"modelError,omitempty"`
	// Less, Equal and More count the seeds with which the figure is less than, equal to, and more
	// than the figure of the baseline.
	Less  int `json:"less"`
	Equal int `json:"equal"`
	More  int `json:"more"`
}

// Interval is the confidence interval of a mean.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// ExcludesZero is set if 0 is outside the interval: the difference is significant.
	ExcludesZero bool `json:"clear"`
}

// Run is the result of one run.
type Run struct {
	Seed uint64 `json:"seed"`
	// Seconds is the simulated time. Interrupted is set if the run did not complete.
	Seconds     int64 `json:"seconds"`
	Interrupted bool  `json:"interrupted"`
	// Scheduled counts the pods that were placed by the scheduler and not evicted
	// again without finding another node. NotArrived counts the pods that had not
	// arrived when the run was interrupted.
	Scheduled int `json:"scheduled"`
	// Unmeasured counts the scheduled pods that a profile that reads load placed before the first reading.
	Unmeasured int `json:"unmeasured"`
	NotArrived int `json:"outside"`
	// Reasons counts unschedulable pods by reason.
	Reasons map[string]int `json:"reasons"`

	Outcome

	// Scaling is nil without an autoscaler.
	Scaling *Scaling `json:"scaling,omitempty"`
	// Parts has the figures of parts of equal length, from which the intervals of differences are found if the input is a recording.
	Parts []Run `json:"parts,omitempty"`
	// Recorded compares the run with its recording, nil for other inputs.
	Recorded *Recorded `json:"recorded,omitempty"`
	// Overloaded and TimeSeries are recorded in the run with the first seed.
	Overloaded *Overloaded `json:"overloaded,omitempty"`
	TimeSeries *TimeSeries `json:"course,omitempty"`
}

// MostFrequent returns the texts with the highest counts first.
func MostFrequent(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// TimeSeries records a run over time.
type TimeSeries struct {
	// From is the time of the first point, zero if time is virtual.
	From time.Time `json:"from,omitzero"`
	// EverySeconds is the interval between points. Point i is the mean over the steps
	// from i*EverySeconds up to the next point.
	EverySeconds int64 `json:"everySeconds"`
	// OverloadedNodes counts the nodes that were short of CPU or memory.
	OverloadedNodes []float64 `json:"overloadedNodes"`
	// HighestLoads is what the pods of a node demand within their limits as a fraction of its allocatable amount, of CPU or memory,
	// whichever is higher, on the node with the highest load.
	HighestLoads []float64 `json:"highestLoads"`
	// OvercommittedNodes counts the nodes with pods whose limits exceed the node's CPU
	// or memory.
	OvercommittedNodes []float64 `json:"overcommittedNodes"`
	// PendingPods counts the pods that waited for a node.
	PendingPods []float64 `json:"pendingPods"`
	// NodesUsed counts the nodes with pods.
	NodesUsed []float64 `json:"nodesUsed"`
	// Nodes counts all nodes, if there is an autoscaler. SlackKept is the fraction of
	// the target slack that is available, if there is a slack policy.
	Nodes     []float64 `json:"nodesThere,omitempty"`
	SlackKept []float64 `json:"slackKept,omitempty"`
}
