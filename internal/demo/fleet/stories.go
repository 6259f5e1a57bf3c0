package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	folder     string
	placements []string
	changes    []change
}

// change is a change of the fleet and the decisions that follow.
type change struct {
	description string
	// file is a file in examples/placement/changes, empty for the creation of the placements.
	file string
	// want are the names of the clusters that each placement of the story so far should select.
	want [][]string
	// cluster is a cluster whose nodes are then pools, "" for none.
	cluster string
	pools   []nodePool
	// reason is a part of the reason why the last placement so far selects fewer clusters than requested, "" if it does not.
	reason string
}

// created is the description of the change that creates the placements.
const created = "created"

var stories = []story{
	{"1-largest-ratios", []string{"largest-ratios"}, []change{
		{description: created, want: [][]string{{"cluster2", "cluster4", "cluster6"}}},
	}},
	{"2-most-memory", []string{"most-memory"}, []change{
		{description: created, want: [][]string{{"cluster3"}}},
	}},
	{"3-follow", []string{"follow"}, []change{
		{description: created, want: [][]string{{"cluster3", "cluster4"}}},
		{description: "cluster2: from 8 to 50 CPUs", file: "cluster2-grows", want: [][]string{{"cluster2", "cluster4"}}},
	}},
	{"4-steady", []string{"steady"}, []change{
		{description: created, want: [][]string{{"cluster1", "cluster3", "cluster4", "cluster6"}}},
		{
			description: "cluster2: from 8 to 50 CPUs", file: "cluster2-grows",
			want: [][]string{{"cluster1", "cluster3", "cluster4", "cluster6"}},
		},
	}},
	{"5-scaling", []string{"where-most-is", "where-it-was"}, []change{
		{description: created, want: [][]string{{"cluster4"}, {"cluster4"}}},
		{description: "cluster1: from 18 to 34 CPUs", file: "cluster1-two-nodes-more", want: [][]string{{"cluster1"}, {"cluster4"}}},
		{description: "cluster1: from 34 to 26 CPUs", file: "cluster1-one-node-less", want: [][]string{{"cluster1"}, {"cluster4"}}},
		{description: "cluster1: from 26 to 18 CPUs", file: "cluster1-two-nodes-less", want: [][]string{{"cluster4"}, {"cluster4"}}},
	}},
	{"7-fit", []string{"solver", "second-solver"}, []change{
		{description: created, want: [][]string{{"cluster3"}}},
		{
			description: "a second placement right after", file: "second-solver", want: [][]string{{"cluster3"}, nil},
			reason: "pods of other placements are not in the summary yet",
		},
		{
			description: "cluster2: one node of 64 CPUs more", want: [][]string{{"cluster3"}, {"cluster2"}},
			cluster: "cluster2", pools: append(slices.Clone(members["cluster2"]), nodePool{1, 64}),
		},
	}},
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
			return fmt.Errorf("story %s: %w", s.folder, err)
		}
	}
	return nil
}

// runStory runs a story and restores the fleet. It waits until the controller has observed the
// restored fleet, because the first decision of the next story depends on it.
func (r *run) runStory(ctx context.Context, s story) error {
	before := make([][]string, len(s.placements))
	for _, change := range s.changes {
		began := time.Now()
		if err := r.change(ctx, s, change); err != nil {
			return err
		}
		steps, err := r.follow(ctx, s.placements[:len(change.want)], began, before, change.want)
		if err != nil {
			return err
		}
		for i := range steps {
			step := &steps[i]
			step.Story, step.Step = s.folder, change.description
			result := demo.Result{
				Scenario: Scenario, Profile: version, Want: strings.Join(change.want[i], ", "),
				OK: slices.Equal(step.Chosen, change.want[i]), Fleet: step,
			}
			if len(step.Chosen) == 0 {
				if step.Reason, err = r.unsatisfied(ctx, step.Placement); err != nil {
					return err
				}
				result.OK = result.OK && strings.Contains(step.Reason, change.reason)
			}
			r.results = append(r.results, result)
			r.progress(result.Summary())
		}
		copy(before, change.want)
	}
	return r.reset(ctx)
}

// change makes a change of a story.
func (r *run) change(ctx context.Context, s story, c change) error {
	switch {
	case c.cluster != "":
		return r.publish(ctx, c.cluster, c.pools)
	case c.file != "":
		return r.apply(ctx, "changes/"+c.file+".yaml")
	}
	return r.apply(ctx, placementFile(s.folder))
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
