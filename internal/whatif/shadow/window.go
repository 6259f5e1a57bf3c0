// Package shadow keeps and judges what other scheduler profiles would have done to a cluster: each window of a recording is replayed with
// the profile in force and with candidates, and the differences are paired over windows.
package shadow

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
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
}

// Profiled is a run with a profile.
type Profiled struct {
	Profile string     `json:"profile"`
	Run     result.Run `json:"run"`
	// Placed is the number of pods that the scheduler placed, Elsewhere of those that are not on a node of the kind on which they ran.
	Placed    int `json:"placed,omitempty"`
	Elsewhere int `json:"elsewhere,omitempty"`
}

// Metrics measures the load in replays as kubelets and metrics-server do.
var Metrics = result.Metrics{IntervalSeconds: replay.Step, DelaySeconds: replay.Step, WindowSeconds: 15 * replay.Step}

// Shadow replays windows one after the other. The zero value has replayed none.
type Shadow struct {
	// end is the end of the last window, and left what its runs left, by profile.
	end  time.Time
	left map[string]*result.State
}

// maxGap is the longest time between two windows of which the second continues the first.
const maxGap = 5 * time.Minute

// Replay replays a recording, which starts at a time, with the recorded placements and with all profiles. The first profile is the one in
// force. With each profile, pods that ran at the start are where it has left them at the end of the window before, and its scheduler knows
// what it has learned, if the last window ended just before; else they are on their recorded nodes. So pods that live longer than a window
// are placed by the profiles, too. Pods without recorded usage get generated usage. It returns an error if ctx is canceled; a recording
// that cannot be replayed gives a window with an error.
func (s *Shadow) Replay(
	ctx context.Context, file string, start time.Time, profiles []engine.NamedConfig, run compare.Run,
) (*Window, error) {
	before := map[string]*result.State{}
	if start.Sub(s.end).Abs() <= maxGap {
		before = s.left
	}
	jobs := make([]compare.Job, 1+len(profiles))
	for i := range jobs {
		profile := profiles[max(i-1, 0)]
		jobs[i] = compare.Job{
			Source:  generate.Source{Source: recording.Source{Recording: file, Measured: i == 0}},
			Profile: profile, Metrics: Metrics, Seed: 1, Record: true, Before: before[profile.Name], Continued: i > 0,
		}
	}
	runs, err := run(ctx, jobs)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return &Window{File: filepath.Base(file), Error: err.Error()}, nil //nolint:nilerr // the window has it
	}
	for i, r := range runs {
		if r == nil || r.Interrupted || r.Recorded == nil || r.Recorded.Part == nil {
			return nil, fmt.Errorf("%s, profile %s: no result", file, jobs[i].Profile.Name)
		}
	}
	w := &Window{Part: *runs[0].Recorded.Part, File: filepath.Base(file), Measured: reduced(runs[0])}
	s.end, s.left = w.To, map[string]*result.State{}
	for i, profile := range profiles {
		p := runs[1+i].Recorded.Placements
		s.left[profile.Name] = runs[1+i].Recorded.Left
		w.Candidates = append(w.Candidates, Profiled{profile.Name, reduced(runs[1+i]), p.Same + p.Other, p.Other})
	}
	w.Current, w.Candidates = w.Candidates[0], w.Candidates[1:]
	return w, nil
}

// candidate returns the run with a candidate, nil if there is none.
func (w *Window) candidate(name string) *Profiled {
	i := slices.IndexFunc(w.Candidates, func(p Profiled) bool { return p.Profile == name })
	if i < 0 {
		return nil
	}
	return &w.Candidates[i]
}

// run returns a run of the window with a seed and the time of its series.
func (w *Window) run(r *result.Run, seed uint64) result.Run {
	out := *r
	out.Seed, out.Scaling = seed, nil
	if out.TimeSeries != nil {
		out.TimeSeries = new(*out.TimeSeries)
		out.TimeSeries.From = w.From
	}
	return out
}

// reduced returns a run without what the shadow does not show.
func reduced(r *result.Run) result.Run {
	out := *r
	out.Reasons, out.Recorded = nil, nil
	if s := out.TimeSeries; s != nil {
		out.TimeSeries = &result.TimeSeries{EverySeconds: s.EverySeconds, OverloadedNodes: s.OverloadedNodes, HighestLoads: s.HighestLoads}
	}
	return out
}

// hasUsage reports whether the usage of at least half of the pods was recorded.
func (w *Window) hasUsage() bool { return 2*w.UsageKnown >= w.Pods && w.UsageKnown > 0 }
