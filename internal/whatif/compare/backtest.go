package compare

import (
	"context"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// BacktestOptions describe a backtest.
type BacktestOptions struct {
	// Recording is a value of recording.Source.Recording.
	Recording string
	// Profile is the profile that was in force.
	Profile engine.NamedConfig
	// Usage specifies the usage of pods without recorded usage, generated with Seed.
	Usage   recording.UsageSpec
	Seed    uint64
	Metrics replay.Metrics
	// Strict refuses recordings with content that is ignored.
	Strict bool
	// Warn is called with warnings about the recording, unless it is nil.
	Warn func(message string)
}

// Kind of the document.
const Kind = "Backtest"

// BacktestResult is the document of a backtest.
type BacktestResult struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Source     result.Source `json:"source"`
	*result.Backtest
	// Assumed lists everything that was assumed or generated, one sentence each.
	Assumed []string `json:"assumed"`
	// Measured and Simulated are the complete runs.
	Measured  result.Run `json:"measured"`
	Simulated result.Run `json:"simulated"`
}

// Jobs returns a run with the recorded placements and a run with the placements of the profile.
func Jobs(o BacktestOptions) []Job {
	measured := Job{
		Source: recording.Source{
			Recording: o.Recording,
			Strict:    o.Strict,
			Measured:  true,
		},
		Profile: o.Profile,
		Usage:   o.Usage,
		Seed:    o.Seed,
		Metrics: o.Metrics,
	}
	simulated := measured
	simulated.Source.Measured = false
	return []Job{measured, simulated}
}

// Backtest runs a backtest. If ctx is canceled, it returns an error.
func Backtest(ctx context.Context, o BacktestOptions, pool Pool) (*BacktestResult, error) {
	in, err := recording.Source{Recording: o.Recording, Strict: o.Strict}.Input(o.Seed, recording.Limits{})
	if err != nil {
		return nil, err
	}
	if o.Warn != nil {
		for _, warning := range in.Warnings {
			o.Warn(warning)
		}
	}
	runs, err := pool.Run(ctx, Jobs(o))
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run == nil || run.Interrupted {
			return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
	}
	return &BacktestResult{
		APIVersion: result.APIVersion, Kind: Kind,
		Source:   result.Source{Name: in.Name, Nodes: len(in.Nodes), Pods: len(in.Pods)},
		Backtest: result.NewBacktest(o.Profile.Name, runs[0], runs[1]),
		Assumed:  in.Assumptions, Measured: *runs[0], Simulated: *runs[1],
	}, nil
}
