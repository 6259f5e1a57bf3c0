package compare

import (
	"context"
	"errors"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// backtestJobs returns the run of a job over a recording with the recorded placements, and with the placements of its profile.
func backtestJobs(job Job) []Job {
	measured := job
	measured.Source.Measured = true
	return []Job{measured, job}
}

// Backtest runs a backtest: a job over a recording, with the profile that was in force. warn is called with warnings about the recording.
// The result has both runs. If ctx is canceled, Backtest returns an error.
func Backtest(ctx context.Context, job Job, warn func(message string), run Run) (*result.Result, error) {
	in, err := job.Source.Input(job.Seed)
	if err == nil && in.Part == nil {
		err = errors.New("--recording: found a snapshot: must be a recording over a time")
	}
	if err != nil {
		return nil, err
	}
	usage, err := job.Source.UsageSpec()
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
	r := &result.Result{
		APIVersion: result.APIVersion, Kind: result.Kind, Source: sourceOf(&in), Assumed: append(in.Assumptions, schedulerOf(&in)),
		Settings: result.Settings{StepSeconds: replay.Step, Level: result.Level, Metrics: job.Metrics, Saturation: job.Saturation},
		Profiles: []string{job.Profile.Name}, Seeds: []uint64{job.Seed},
	}
	r.Backtest = result.NewBacktest(job.Profile.Name, r.Source, runs[0], runs[1])
	scenario := result.Scenario{
		Usage:    usageText(&in, r.Source.UsageKnown, usage),
		Profiles: []result.Profile{{Name: job.Profile.Name, Runs: []result.Run{*runs[1]}}},
		Measured: &result.Profile{Name: "measured", Runs: []result.Run{*runs[0]}},
	}
	scenario.Compare()
	r.Scenario = scenario
	return r, nil
}
