// Package shadow keeps and judges what other scheduler profiles would have done to a cluster: each window of a recording is replayed with
// the profile in force and with candidates, and the differences are paired over windows.
package shadow

import (
	"context"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Window is the result of one window.
type Window struct {
	result.Part
	// File is the base name of the recording.
	File string `json:"file"`
	// Error states why the window could not be replayed, empty if it was.
	Error string `json:"error,omitempty"`
	// Measured is the run with the recorded placements; Current is the run with the profile in force.
	Measured result.Run `json:"measured"`
	Current  Profiled   `json:"current"`
	// Candidates are the runs with the other profiles.
	Candidates []Profiled `json:"candidates"`
	// Further has outcomes that other sources measured.
	Further Further `json:"further"`
}

// Profiled is a run with a profile.
type Profiled struct {
	Profile string     `json:"profile"`
	Run     result.Run `json:"run"`
}

// Further has outcomes over all pods that were measured, not computed. A nil value was not measured.
type Further struct {
	// ThrottledSeconds is the time for which containers were throttled at their limits.
	ThrottledSeconds *float64 `json:"throttledSeconds,omitempty"`
	// CPUPressureSeconds and MemoryPressureSeconds are the time, summed over nodes, in which some task waited for CPU or for memory
	// (pressure stall information).
	CPUPressureSeconds    *float64 `json:"cpuPressureSeconds,omitempty"`
	MemoryPressureSeconds *float64 `json:"memoryPressureSeconds,omitempty"`
	// Missing states why values are nil.
	Missing []string `json:"missing,omitempty"`
}

// Profiles are the profiles to replay with.
type Profiles struct {
	// Current is the profile in force.
	Current    engine.NamedConfig
	Candidates []engine.NamedConfig
}

// Settings of the replays: the load is measured as kubelets and metrics-server do, and pods without recorded usage use their requests on
// average.
var (
	metrics = result.Metrics{IntervalSeconds: replay.Step, DelaySeconds: replay.Step, WindowSeconds: 15 * replay.Step}
	usage   = "beta"
)

// Replay replays a recording with the recorded placements and with all profiles. It returns an error if ctx is canceled; a recording that
// cannot be replayed gives a window with an error.
func Replay(ctx context.Context, file string, p Profiles, run compare.Run) (*Window, error) {
	generated, err := recording.ParseUsage(usage)
	if err != nil {
		return nil, err
	}
	job := compare.Job{
		Source: recording.Source{Recording: file}, Profile: p.Current, Usage: generated, Metrics: metrics, Seed: 1, Record: true,
	}
	measured := job
	measured.Source.Measured = true
	jobs := []compare.Job{measured, job}
	for _, candidate := range p.Candidates {
		job.Profile = candidate
		jobs = append(jobs, job)
	}
	runs, err := run(ctx, jobs)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return &Window{Error: err.Error()}, nil //nolint:nilerr // the window has it
	}
	for i, r := range runs {
		if r == nil || r.Interrupted || r.Recorded == nil || r.Recorded.Part == nil {
			return nil, fmt.Errorf("%s, profile %s: no result", file, jobs[i].Profile.Name)
		}
	}
	w := &Window{Part: *runs[0].Recorded.Part, Measured: reduced(runs[0]), Current: Profiled{p.Current.Name, reduced(runs[1])}}
	for i, candidate := range p.Candidates {
		w.Candidates = append(w.Candidates, Profiled{candidate.Name, reduced(runs[2+i])})
	}
	return w, nil
}

// reduced returns a run without what the shadow does not show.
func reduced(r *result.Run) result.Run {
	out := *r
	out.Decisions, out.Reasons, out.Recorded = nil, nil, nil
	if s := out.TimeSeries; s != nil {
		out.TimeSeries = &result.TimeSeries{EverySeconds: s.EverySeconds, OverloadedNodes: s.OverloadedNodes, HighestLoads: s.HighestLoads}
	}
	return out
}

// hasUsage reports whether the usage of at least half of the pods was recorded.
func (w *Window) hasUsage() bool { return 2*w.UsageKnown >= w.Pods && w.UsageKnown > 0 }
