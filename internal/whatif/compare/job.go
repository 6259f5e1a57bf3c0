package compare

import (
	"context"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Job is one run, with one profile, scenario and seed. Jobs run in
// separate processes. Processes share no state, so that as many runs as CPUs can be
// executed in parallel without affecting each other.
type Job struct {
	Source  recording.Source    `json:"source"`
	Profile engine.NamedConfig  `json:"profile"`
	Limits  recording.Limits    `json:"limits"`
	Usage   recording.UsageSpec `json:"usage"`
	Metrics replay.Metrics      `json:"metrics"`
	Tail    int64               `json:"tail"`
	Seed    uint64              `json:"seed"`
	// Autoscaler is nil for none.
	Autoscaler *autoscaler.Config `json:"autoscaler,omitempty"`
	// Record enables the recording of time series, node use and decisions.
	Record bool `json:"record,omitempty"`
}

// Run runs the job in this process. If ctx is canceled, the result covers the time until then.
func (j Job) Run(ctx context.Context, progress func(done, total int64)) (result.Run, error) {
	config, err := j.Profile.Config()
	if err != nil {
		return result.Run{}, err
	}
	model, err := recording.NewUsage(j.Usage, j.Seed)
	if err != nil {
		return result.Run{}, err
	}
	in, err := j.Source.Input(j.Seed, j.Limits)
	if err != nil {
		return result.Run{}, err
	}
	options := replay.Options{
		Config: config, Usage: model, Metrics: j.Metrics, Tail: j.Tail, Autoscaler: j.Autoscaler, Record: j.Record, Progress: progress,
	}
	run, err := replay.Run(ctx, in, options)
	run.Seed = j.Seed
	return run, err
}

// Run runs jobs, as Pool.Run does, and returns their runs in the same order. If ctx is canceled, runs that were not completed are nil
// or interrupted.
type Run func(ctx context.Context, jobs []Job) ([]*result.Run, error)
