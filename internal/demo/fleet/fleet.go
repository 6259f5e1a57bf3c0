// Package fleet is the demo of placements: the placement controller selects clusters of a simulated
// fleet for the placements in examples/placement.
package fleet

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

// Demo runs the fleet scenario in an environment.
type Demo struct {
	env *demo.Environment
	hub *hub // nil before the scenario
}

// New returns the demo for an environment.
func New(env *demo.Environment) *Demo { return &Demo{env: env} }

// HasRun reports whether the scenario has begun.
func (d *Demo) HasRun() bool { return d.hub != nil }

// Run clears the cluster and runs the scenario, at most once for an environment. It calls progress
// after each step. The placement controller runs as long as the environment.
func (d *Demo) Run(ctx context.Context, progress func(string)) ([]demo.Result, error) {
	if err := d.env.Clear(ctx); err != nil {
		return nil, err
	}
	d.hub = &hub{Cluster: d.env.Cluster}
	err := d.env.StartController("placement", append(crd.OfPlacements(), crd.ClusterCapacities), func(m manager.Manager) error {
		recorder := m.GetEventRecorder("plimsoll-controller")
		controller := placement.New(m.GetClient(), m.GetAPIReader(), recorder, prometheus.NewRegistry(), placement.AdoptAll)
		return errors.Join(controller.Register(m), m.Add(manager.RunnableFunc(d.hub.renew)))
	})
	if err == nil {
		err = d.hub.reset(ctx)
	}
	if err != nil {
		return nil, err
	}
	r := &run{hub: d.hub, progress: progress}
	err = r.runStories(ctx)
	return r.results, err
}

// Play creates the placements of all stories for users to change, if the scenario has run.
func (d *Demo) Play(ctx context.Context) error {
	if !d.HasRun() {
		return nil
	}
	for _, s := range stories {
		if err := d.hub.apply(ctx, placementFile(s.Folder)); err != nil {
			return fmt.Errorf("setting up the fleet: %w", err)
		}
	}
	return nil
}

// Scenario is the name of the scenario, in which the fleet changes and the decisions of placements
// follow or stay.
const Scenario = "fleet"

// Shows describes the scenario and the simulated parts in one sentence.
const Shows = "placements select clusters by their resources and where workloads fit, and follow changes or stay, depending on weights " +
	"(the ManagedClusters are objects; their capacity is computed from generated nodes)"

const (
	// FollowsWithin is the time in which a decision should follow a change. Decisions that should
	// stay are observed for as long.
	FollowsWithin = time.Second
	// followTimeout ends the wait for a decision. It is longer than FollowsWithin, so that a short
	// overload of the machine does not fail the scenario.
	followTimeout = 10 * time.Second
)

// story is one of the folders in examples/placement, whose files explain the expected clusters.
type story struct {
	Folder     string
	Placements []string
	Changes    []change
}

// change is a change of the fleet and the decisions that follow.
type change struct {
	Description string
	// File is a file in examples/placement/changes, empty for the creation of the placements.
	File string
	// Want are the names of the clusters that each placement of the story so far should select.
	Want [][]string
	// Cluster is a cluster whose nodes are then Pools, "" for none.
	Cluster string
	Pools   []nodePool
	// Reason is a part of the reason why the last placement so far selects fewer clusters than requested, "" if it does not.
	Reason string
}

//go:embed stories.yaml
var storiesFile []byte

// stories are the stories of stories.yaml.
var stories = readStories()

func readStories() (list []story) {
	if err := yaml.UnmarshalStrict(storiesFile, &list); err != nil {
		panic(err) // the file is part of the program
	}
	return list
}

// run is one run of the scenario.
type run struct {
	*hub
	progress func(string)
	results  []demo.Result
}

// runStories runs all stories.
func (r *run) runStories(ctx context.Context) error {
	for _, s := range stories {
		if err := r.runStory(ctx, s); err != nil {
			return fmt.Errorf("story %s: %w", s.Folder, err)
		}
	}
	return nil
}

// runStory runs a story and restores the fleet. It waits until the controller has observed the
// restored fleet, because the first decision of the next story depends on it.
func (r *run) runStory(ctx context.Context, s story) error {
	before := make([][]string, len(s.Placements))
	for _, change := range s.Changes {
		began := time.Now()
		if err := r.change(ctx, s, change); err != nil {
			return err
		}
		steps, err := r.follow(ctx, s.Placements[:len(change.Want)], began, before, change.Want)
		if err != nil {
			return err
		}
		for i, step := range steps {
			result := demo.Result{
				Scenario: Scenario, Profile: s.Folder, Object: fmt.Sprintf("%s (%s)", s.Placements[i], change.Description),
				Got: strings.Join(step.chosen, ", "), Want: strings.Join(change.Want[i], ", "),
				OK: slices.Equal(step.chosen, change.Want[i]), Seconds: demo.Seconds(step.after),
			}
			if len(step.chosen) == 0 {
				reason, err := r.unsatisfied(ctx, s.Placements[i])
				if err != nil {
					return err
				}
				result.Got = "no cluster: " + reason
				result.OK = result.OK && strings.Contains(reason, change.Reason)
			}
			r.results = append(r.results, result)
			r.progress(result.Summary())
		}
		copy(before, change.Want)
	}
	return r.reset(ctx)
}

// change makes a change of a story.
func (r *run) change(ctx context.Context, s story, c change) error {
	switch {
	case c.Cluster != "":
		return r.publish(ctx, c.Cluster, c.Pools)
	case c.File != "":
		return r.apply(ctx, "changes/"+c.File+".yaml")
	}
	return r.apply(ctx, placementFile(s.Folder))
}

// decision is the selected clusters of a placement, and the time after which they were selected, if the decision changed.
type decision struct {
	chosen []string
	after  time.Duration
}

// follow waits until each placement has selected the expected clusters. It observes placements whose
// decision should not change for FollowsWithin.
func (r *run) follow(ctx context.Context, names []string, began time.Time, before, want [][]string) ([]decision, error) {
	out, isDone := make([]decision, len(names)), make([]bool, len(names))
	err := r.Await(ctx, "placements to be decided", func(ctx context.Context) (bool, error) {
		for i, name := range names {
			if isDone[i] {
				continue
			}
			chosen, err := r.chosen(ctx, name)
			if err != nil {
				return false, err
			}
			out[i].chosen = chosen
			after, isExpected := time.Since(began), slices.Equal(chosen, want[i])
			switch {
			case slices.Equal(before[i], want[i]):
				isDone[i] = !isExpected || after > FollowsWithin
			case isExpected:
				out[i].after, isDone[i] = after, true
			default:
				isDone[i] = after > followTimeout
			}
		}
		return !slices.Contains(isDone, false), nil
	})
	return out, err
}
