// Package job runs what a what-if consists of: one profile, one scenario, one
// seed at a time, each in a process of its own. Processes share nothing, so that
// as many runs go on at a time as there are CPUs, and none can tell that there are
// others.
package job

import (
	"context"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/autoscaler"
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
	Autoscaler *autoscaler.Config `json:"autoscaler,omitempty"`
	// Record enables the recording of time series, node use and decisions.
	Record bool `json:"record,omitempty"`
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
	run, err := replay.Run(ctx, read.Input(j.Seed, j.Limits), replay.Options{
		Config: config, Usage: model, Metrics: j.Metrics, Tail: j.Tail, Autoscaler: j.Autoscaler, Record: j.Record, Progress: progress,
	})
	run.Seed = j.Seed
	return run, err
}
