package compare

import (
	"context"
	"errors"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

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

// backtestJobs returns the run of a job over a recording with the recorded placements, and with the placements of its profile.
func backtestJobs(job Job) []Job {
	measured := job
	measured.Source.Measured = true
	return []Job{measured, job}
}

// Backtest runs a backtest: a job over a recording, with the profile that was in force. warn is called with warnings about the recording.
// If ctx is canceled, Backtest returns an error.
func Backtest(ctx context.Context, job Job, warn func(message string), run Run) (*BacktestResult, error) {
	in, err := job.Source.Input(job.Seed, job.Limits)
	if err == nil && in.Part == nil {
		err = errors.New("--recording: found a snapshot: must be a recording over a time")
	}
	if err != nil {
		return nil, err
	}
	for _, warning := range in.Warnings {
		warn(warning)
	}
	runs, err := run(ctx, backtestJobs(job))
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run == nil || run.Interrupted {
			return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
	}
	source := sourceOf(&in)
	return &BacktestResult{
		APIVersion: result.APIVersion, Kind: Kind,
		Source:   source,
		Backtest: result.NewBacktest(job.Profile.Name, source, runs[0], runs[1]),
		Assumed:  append(in.Assumptions, schedulerOf(&in)), Measured: *runs[0], Simulated: *runs[1],
	}, nil
}
