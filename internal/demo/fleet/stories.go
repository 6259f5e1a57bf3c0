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
const Shows = "placements select clusters by their resources, and follow changes or stay, depending on weights " +
	"(the ManagedClusters are objects without real clusters)"

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
	// want are the names of the clusters that each placement of the story should select.
	want [][]string
}

// created is the description of the change that creates the placements.
const created = "created"

var stories = []story{
	{"1-largest-ratios", []string{"largest-ratios"}, []change{
		{created, "", [][]string{{"cluster2", "cluster4", "cluster6"}}},
	}},
	{"2-most-memory", []string{"most-memory"}, []change{
		{created, "", [][]string{{"cluster3"}}},
	}},
	{"3-follow", []string{"follow"}, []change{
		{created, "", [][]string{{"cluster3", "cluster4"}}},
		{"cluster2: from 8 to 50 CPUs", "cluster2-grows", [][]string{{"cluster2", "cluster4"}}},
	}},
	{"4-steady", []string{"steady"}, []change{
		{created, "", [][]string{{"cluster1", "cluster3", "cluster4", "cluster6"}}},
		{"cluster2: from 8 to 50 CPUs", "cluster2-grows", [][]string{{"cluster1", "cluster3", "cluster4", "cluster6"}}},
	}},
	{"5-scaling", []string{"where-most-is", "where-it-was"}, []change{
		{created, "", [][]string{{"cluster4"}, {"cluster4"}}},
		{"cluster1: from 18 to 34 CPUs", "cluster1-two-nodes-more", [][]string{{"cluster1"}, {"cluster4"}}},
		{"cluster1: from 34 to 26 CPUs", "cluster1-one-node-less", [][]string{{"cluster1"}, {"cluster4"}}},
		{"cluster1: from 26 to 18 CPUs", "cluster1-two-nodes-less", [][]string{{"cluster4"}, {"cluster4"}}},
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
		began, file := time.Now(), placementFile(s.folder)
		if change.file != "" {
			file = "changes/" + change.file + ".yaml"
		}
		if err := r.apply(ctx, file); err != nil {
			return err
		}
		decided, err := r.follow(ctx, s.placements, began, before, change.want)
		if err != nil {
			return err
		}
		for i, d := range decided {
			result := demo.Result{
				Scenario: Scenario, Profile: version, Want: strings.Join(change.want[i], ", "),
				OK: slices.Equal(d.chosen, change.want[i]),
				Fleet: &demo.FleetStep{
					Story: s.folder, Step: change.description, Placement: s.placements[i], Chosen: d.chosen, Seconds: demo.Seconds(d.after),
				},
			}
			r.results = append(r.results, result)
			r.progress(result.Summary())
		}
		before = change.want
	}
	if err := r.apply(ctx, fleetFile); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.deletePlacements(ctx, s.placements)
}

// decision is the decision of a placement.
type decision struct {
	chosen []string
	// after is the time from the change to the expected decision, zero if it did not change.
	after time.Duration
}

// follow waits until each placement has selected the expected clusters. It observes placements whose
// decision should not change for FollowsWithin.
func (r *run) follow(ctx context.Context, names []string, began time.Time, before, want [][]string) ([]decision, error) {
	out, isDone := make([]decision, len(names)), make([]bool, len(names))
	err := r.await(ctx, "placements to be decided", func(ctx context.Context) (bool, error) {
		for i, name := range names {
			if isDone[i] {
				continue
			}
			var err error
			if out[i].chosen, err = r.chosen(ctx, name); err != nil {
				return false, err
			}
			after, isExpected := time.Since(began), slices.Equal(out[i].chosen, want[i])
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
