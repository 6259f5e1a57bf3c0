// Package node is the demo of node scheduling: it runs small scenarios in a cluster with a real
// scheduler, each with the default profile and with a profile of the plugins.
package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/explain"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot/collect"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// LoadSource is the source from which the scheduler reads load.
type LoadSource interface {
	// Set changes the reported load, nil for none, and returns when the scheduler uses the change.
	Set(ctx context.Context, load *Measurements) error
	// Reading returns the load that the scheduler uses, the zero value if there is none.
	Reading(ctx context.Context) load.Reading
}

// The load sources that StartLoad can start.
const (
	// LoadService is a load-watcher service in this process.
	LoadService = "service"
	// LoadPrometheus is a real Prometheus server that scrapes simulated machines.
	LoadPrometheus = "prometheus"
)

// OwnSource is a load source that StartLoad has started.
type OwnSource interface {
	LoadSource
	// Arguments returns the arguments of LowRiskOverCommitment that name the source.
	Arguments() string
}

// StartLoad starts a load source of this kind, which runs until ctx ends.
func StartLoad(ctx context.Context, kind string, progress func(string)) (OwnSource, error) {
	start := func(ctx context.Context) (OwnSource, error) { return startService(ctx) }
	if kind == LoadPrometheus {
		progress("starting Prometheus")
		start = func(ctx context.Context) (OwnSource, error) { return startPrometheus(ctx) }
	}
	source, err := start(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting the load source: %w", err)
	}
	return source, nil
}

// Demo runs node scenarios in an environment.
type Demo struct {
	env       *demo.Environment
	load      LoadSource
	decisions decisions
	// running describes the scenario that is running.
	running atomic.Pointer[string]
}

// New returns the demo for an environment whose scheduler reads load from the source.
func New(env *demo.Environment, load LoadSource) *Demo { return &Demo{env: env, load: load} }

// Running describes the scenario that is running, empty if none is.
func (d *Demo) Running() string {
	if text := d.running.Load(); text != nil {
		return *text
	}
	return ""
}

// Decisions returns the most recent decisions of the scheduler, newest first.
func (d *Demo) Decisions() []Decision { return d.decisions.all() }

// RunAll runs scenarios, each with the default profile and with its own, and reports the results of
// each run.
func (d *Demo) RunAll(ctx context.Context, scenarios []Scenario, report func(Scenario, []demo.Result)) ([]demo.Result, error) {
	var all []demo.Result
	for _, s := range scenarios {
		for _, profile := range []string{demo.DefaultProfile, s.Profile} {
			results, err := d.Run(ctx, s, profile)
			all = append(all, results...)
			if err != nil {
				return all, err
			}
			report(s, results)
		}
	}
	return all, nil
}

// Run clears the cluster and runs a scenario with one profile.
func (d *Demo) Run(ctx context.Context, s Scenario, profile string) ([]demo.Result, error) {
	text := fmt.Sprintf("scenario %s (%s), profile %s", s.Name, s.Shows, profile)
	d.running.Store(&text)
	defer d.running.Store(nil)
	results, err := d.run(ctx, s, profile)
	if err != nil {
		return results, fmt.Errorf("scenario %s, profile %s: %w", s.Name, profile, err)
	}
	return results, nil
}

func (d *Demo) run(ctx context.Context, s Scenario, profile string) ([]demo.Result, error) {
	if err := d.env.Clear(ctx); err != nil {
		return nil, err
	}
	for _, node := range s.Nodes {
		if err := d.env.CreateNode(ctx, node); err != nil {
			return nil, err
		}
	}
	for _, pod := range s.Running {
		if err := d.env.CreatePod(ctx, pod, profile); err != nil {
			return nil, err
		}
	}
	var results []demo.Result
	for _, step := range s.Steps {
		if err := d.env.Settle(ctx); err != nil {
			return results, err
		}
		switch {
		case step.Create != nil:
			result, err := d.schedule(ctx, s, profile, *step.Create)
			if err != nil {
				return results, err
			}
			results = append(results, result)
		case step.Delete != "":
			if err := d.env.DeletePod(ctx, step.Delete); err != nil {
				return results, err
			}
		case profile == s.Profile: // Load, or nil with StopLoad
			if err := d.load.Set(ctx, step.Load); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// schedule creates a pod and waits until it is scheduled. It adds the decision, with the scores that
// the what-if engine has computed in advance.
func (d *Demo) schedule(ctx context.Context, s Scenario, profile string, a Arrival) (demo.Result, error) {
	scores, err := d.predict(ctx, a.Object(profile))
	if err != nil {
		return demo.Result{}, err
	}
	if err := d.env.CreatePod(ctx, a.Pod, profile); err != nil {
		return demo.Result{}, err
	}
	node, err := d.env.AwaitScheduled(ctx, a.Name)
	if err != nil {
		return demo.Result{}, err
	}
	d.decisions.add(Decision{Time: time.Now(), Scenario: s.Name, Profile: profile, Node: node, Scores: scores})
	want := a.WantDefault
	if profile == s.Profile {
		want = a.Want
	}
	ok := node == want || want == demo.Any && node != demo.Pending
	return demo.Result{Scenario: s.Name, Profile: profile, Pod: a.Name, Node: node, Want: want, OK: ok}, nil
}

// predict returns the scores of a pod in the present cluster, computed by the what-if engine as by
// plimsoll explain.
func (d *Demo) predict(ctx context.Context, pod *v1.Pod) (engine.PodScores, error) {
	read, err := collect.Read(ctx, d.env.Access, collect.Options{Folders: []string{snapshot.FolderCluster}})
	if err != nil {
		return engine.PodScores{}, err
	}
	state := explain.State{}
	if state.Objects, err = read.Cluster(); err != nil {
		return engine.PodScores{}, err
	}
	if last := d.load.Reading(ctx); !last.Time.IsZero() {
		state.Load = &last
	}
	explanation, err := explain.Pod(ctx, state, explain.Scheduler{Config: d.env.Scheduler, Source: "the demo"}, pod)
	if err != nil {
		return engine.PodScores{}, err
	}
	return explanation.Scores, nil
}
