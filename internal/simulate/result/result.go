// Package result is what a what-if answers: a document with a version, for
// programs, for gates and for reports. Nothing in it depends on when or how fast it
// was made: the same input and seeds give the same bytes.
package result

import (
	"cmp"
	"maps"
	"slices"
)

// The version of the document. Fields are added to it and neither removed nor
// given another meaning.
const (
	APIVersion = "whatif.plimsoll.dev/v1"
	Kind       = "WhatIf"
)

// Result is the document.
type Result struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Source is what was run.
	Source Source `json:"source"`
	// Assumed is what had to be supposed or generated, a sentence each.
	Assumed []string `json:"assumed"`
	// Settings of the runs.
	Settings Settings `json:"settings"`
	// Profiles by name; the first is the one that the others are compared with.
	Profiles []string `json:"profiles"`
	// Seeds of the runs: run i of every profile has seed i.
	Seeds []uint64 `json:"seeds"`
	// Scenarios are the combinations of limits and use.
	Scenarios []Scenario `json:"scenarios"`
	// Interrupted: some runs do not go to their end, or were not begun.
	Interrupted bool `json:"interrupted"`
}

// Source is what was run.
type Source struct {
	Name string `json:"name"`
	// Nodes and Pods of the first seed.
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
}

// Settings of the runs.
type Settings struct {
	// StepSeconds is how often use is looked at, TailSeconds for how long runs go on
	// after the last pod has come.
	StepSeconds int64   `json:"stepSeconds"`
	TailSeconds int64   `json:"tailSeconds"`
	Metrics     Metrics `json:"metrics"`
	// Level of the intervals.
	Level float64 `json:"level"`
	// Autoscaler, if there was one.
	Autoscaler *Autoscaler `json:"autoscaler,omitempty"`
}

// Metrics say how the scheduler got to know of load: how often it was measured, how
// old a reading was when it arrived, and what its means and deviations were over.
type Metrics struct {
	IntervalSeconds int64 `json:"intervalSeconds"`
	DelaySeconds    int64 `json:"delaySeconds"`
	WindowSeconds   int64 `json:"windowSeconds"`
}

// Scenario is one combination of limits and use.
type Scenario struct {
	// Limits is what pods without limits got, empty if that was not asked; Usage
	// what pods use, in full.
	Limits   string    `json:"limits"`
	Usage    string    `json:"usage"`
	Profiles []Profile `json:"profiles"`
}

// Profile is what came of one profile in one scenario.
type Profile struct {
	Name string `json:"name"`
	// Slack is how much of it an autoscaler holds: a rate such as 10%, or the name of
	// a file with a policy; empty if nobody asked.
	Slack string `json:"slack,omitempty"`
	// Figures by name, as listed by Figures.
	Figures map[string]Figure `json:"figures"`
	// Runs in the order of the seeds.
	Runs []Run `json:"runs"`
}

// Figure is one figure over all seeds.
type Figure struct {
	// Mean over the runs that went to their end or, if none did, over those that
	// were interrupted.
	Mean float64 `json:"mean"`
	// Difference to the first profile.
	Difference *Difference `json:"difference,omitempty"`
}

// Difference of a figure to that of the first profile, run by run with the same
// seeds.
type Difference struct {
	Mean float64 `json:"mean"`
	// Low and High are where the mean is at the level of the settings; there is
	// none with fewer than two seeds.
	Interval *Interval `json:"interval,omitempty"`
	// Less, Equal and More count the seeds with which the figure is less than,
	// equal to, and more than that of the first profile.
	Less  int `json:"less"`
	Equal int `json:"equal"`
	More  int `json:"more"`
}

// Interval is where a mean is.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Clear: 0 is not in it.
	Clear bool `json:"clear"`
}

// Run is what came of one run. Package internal/algo/outcome says what its figures
// mean.
type Run struct {
	Seed uint64 `json:"seed"`
	// Seconds of the cluster's life that were looked at. Interrupted: it was to be
	// longer.
	Seconds     int64 `json:"seconds"`
	Interrupted bool  `json:"interrupted"`
	// Scheduled pods found a node, unschedulable ones did not; Outside had not come
	// when the run was interrupted.
	Scheduled     int `json:"scheduled"`
	Unschedulable int `json:"unschedulable"`
	Outside       int `json:"outside"`
	// Reasons for which pods found no node, with how many there are of each.
	Reasons map[string]int `json:"reasons"`

	OverloadMinutes       float64 `json:"overloadMinutes"`
	CPUOverloadMinutes    float64 `json:"cpuOverloadMinutes"`
	MemoryOverloadMinutes float64 `json:"memoryOverloadMinutes"`
	ThrottledCoreSeconds  float64 `json:"throttledCoreSeconds"`
	LimitedCoreSeconds    float64 `json:"limitedCoreSeconds"`
	MemoryOverruns        int     `json:"memoryOverruns"`
	Victims               int     `json:"victims"`
	NodesUsed             float64 `json:"nodesUsed"`
	NodesUsedPeak         int     `json:"nodesUsedPeak"`
	Churn                 int     `json:"churn"`

	CPULimitRatio    Distribution `json:"cpuLimitRatio"`
	MemoryLimitRatio Distribution `json:"memoryLimitRatio"`
	// The highest limit ratio of any node at any time.
	CPULimitRatioPeak    float64      `json:"cpuLimitRatioPeak"`
	MemoryLimitRatioPeak float64      `json:"memoryLimitRatioPeak"`
	PendingSeconds       Distribution `json:"pendingSeconds"`

	// Scaling is what an autoscaler did, if there was one.
	Scaling *Scaling `json:"scaling,omitempty"`

	// Course is how the run went over time. The run with the first seed has it.
	Course *Course `json:"course,omitempty"`
	// NodeUse is what its nodes used, Decisions where some of its pods went and why.
	// The run with the first seed has them.
	NodeUse   *NodeUse   `json:"nodeUse,omitempty"`
	Decisions []Decision `json:"decisions,omitempty"`
}

// Distribution is what many values look like.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Max  float64 `json:"max"`
}

// MostReasons returns the reasons for which pods found no node, that of most pods
// first.
func (r *Run) MostReasons() []string {
	return slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Reasons[b], r.Reasons[a]), cmp.Compare(a, b))
	})
}
