// Package job runs what a what-if consists of: one profile, one scenario, one
// seed at a time, each in a process of its own. Processes share nothing, so that
// as many runs go on at a time as there are CPUs, and none can tell that there are
// others.
package job

import (
	"context"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/source"
)

// Job is one run.
type Job struct {
	Source  source.Spec      `json:"source"`
	Profile profiles.Profile `json:"profile"`
	Limits  usage.Limits     `json:"limits"`
	Usage   usage.Spec       `json:"usage"`
	Metrics replay.Metrics   `json:"metrics"`
	Tail    int64            `json:"tail"`
	Seed    uint64           `json:"seed"`
	// Autoscaler of the nodes, nil for none.
	Autoscaler *replay.Autoscaler `json:"autoscaler,omitempty"`
	// Course: how the run goes over time is recorded, with its nodes and decisions.
	Course bool `json:"course,omitempty"`
}

// Run runs the job in this process. If ctx ends before it does, the result is of
// the time until then.
func (j Job) Run(ctx context.Context, progress func(done, total int64)) (result.Run, error) {
	config, err := j.Profile.Config()
	if err != nil {
		return result.Run{}, err
	}
	model, err := usage.New(j.Usage, j.Seed)
	if err != nil {
		return result.Run{}, err
	}
	read, err := source.Open(j.Source)
	if err != nil {
		return result.Run{}, err
	}
	outcome, err := replay.Run(ctx, read.Input(j.Seed, j.Limits), replay.Options{
		Config: config, Usage: model, Metrics: j.Metrics, Tail: j.Tail, Autoscaler: j.Autoscaler, Course: j.Course, Progress: progress,
	})
	return runOf(j.Seed, outcome), err
}

// runOf returns what came of a run with a seed, as a document has it.
func runOf(seed uint64, o replay.Outcome) result.Run {
	return result.Run{
		Seed: seed, Seconds: o.Seconds, Interrupted: o.Interrupted,
		Scheduled: o.Scheduled, Unschedulable: o.Unschedulable, Outside: o.Outside, Reasons: o.Reasons,
		OverloadMinutes: o.OverloadMinutes, CPUOverloadMinutes: o.CPUOverloadMinutes, MemoryOverloadMinutes: o.MemoryOverloadMinutes,
		ThrottledCoreSeconds: o.ThrottledCoreSeconds, LimitedCoreSeconds: o.LimitedCoreSeconds,
		MemoryOverruns: o.MemoryOverruns, Victims: o.Victims,
		NodesUsed: o.NodesUsed, NodesUsedPeak: o.NodesUsedPeak, Churn: o.Churn,
		CPULimitRatio:     result.Distribution(o.CPULimitRatio),
		MemoryLimitRatio:  result.Distribution(o.MemoryLimitRatio),
		PendingSeconds:    result.Distribution(o.PendingSeconds),
		CPULimitRatioPeak: o.CPULimitRatioPeak, MemoryLimitRatioPeak: o.MemoryLimitRatioPeak,
		Course: (*result.Course)(o.Course), NodeUse: o.NodeUse, Decisions: o.Decisions,
		Scaling: scalingOf(o.Scaling),
	}
}

// scalingOf returns what an autoscaler did, as a document has it.
func scalingOf(s *replay.Scaling) *result.Scaling {
	if s == nil {
		return nil
	}
	return &result.Scaling{
		Cost: s.Cost, NodeHours: s.NodeHours, Unpriced: s.Unpriced, ScaleUps: s.ScaleUps,
		NodesAdded: s.NodesAdded, NodesRemoved: s.NodesRemoved, NodesPeak: s.NodesPeak, Slack: (*result.Slack)(s.Slack),
	}
}
