package fleet

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

// Scenario is the name of the scenario, in which the fleet changes and the decisions of placements
// follow or stay.
const Scenario = "fleet"

// Shows describes the scenario and the simulated parts in one sentence.
const Shows = "placements select clusters by their resources and where workloads fit, and follow changes or stay, depending on weights " +
	"(the ManagedClusters are objects; their capacity is computed from generated nodes)"

// version is the API version of the placements.
const version = "v1beta1"

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
		for i := range steps {
			step := &steps[i]
			step.Story, step.Step = s.Folder, change.Description
			result := demo.Result{
				Scenario: Scenario, Profile: version, Want: strings.Join(change.Want[i], ", "),
				OK: slices.Equal(step.Chosen, change.Want[i]), Fleet: step,
			}
			if len(step.Chosen) == 0 {
				if step.Reason, err = r.unsatisfied(ctx, step.Placement); err != nil {
					return err
				}
				result.OK = result.OK && strings.Contains(step.Reason, change.Reason)
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

// follow waits until each placement has selected the expected clusters. It observes placements whose
// decision should not change for FollowsWithin.
func (r *run) follow(ctx context.Context, names []string, began time.Time, before, want [][]string) ([]demo.FleetStep, error) {
	out, isDone := make([]demo.FleetStep, len(names)), make([]bool, len(names))
	err := r.Await(ctx, "placements to be decided", func(ctx context.Context) (bool, error) {
		for i, name := range names {
			if isDone[i] {
				continue
			}
			chosen, err := r.chosen(ctx, name)
			if err != nil {
				return false, err
			}
			out[i].Placement, out[i].Chosen = name, chosen
			after, isExpected := time.Since(began), slices.Equal(chosen, want[i])
			switch {
			case slices.Equal(before[i], want[i]):
				isDone[i] = !isExpected || after > FollowsWithin
			case isExpected:
				out[i].Seconds, isDone[i] = demo.Seconds(after), true
			default:
				isDone[i] = after > followTimeout
			}
		}
		return !slices.Contains(isDone, false), nil
	})
	return out, err
}
