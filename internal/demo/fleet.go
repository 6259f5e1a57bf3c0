package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FleetScenario is the scenario with managed clusters: the placements of
// examples/placement are decided, and follow what becomes of the fleet or stay.
const FleetScenario = "fleet"

// FleetShows says in a sentence what is to be seen, and what of it is simulated.
const FleetShows = "placements choose clusters by what these have, and follow changes or stay, as weights say " +
	"(the ManagedClusters are objects without clusters behind them)"

// PlacementForms are the forms in which each story is told.
var PlacementForms = []string{"v1alpha1", "v1beta1"}

const (
	// followsWithin is the time in which decisions are to follow. Those that are to
	// stay are watched for as long.
	followsWithin = time.Second
	// givenUp is when decisions that have not followed are taken as they are. It is
	// longer, so that a machine that is busy with other things for a moment fails
	// nothing; how long they took is told.
	givenUp = 10 * time.Second
)

// FleetStep is what has become of a placement after a step of a story.
type FleetStep struct {
	// Story is its folder in examples/placement.
	Story     string `json:"story"`
	Step      string `json:"step"`
	Placement string `json:"placement"`
	// Chosen clusters, by name.
	Chosen []string `json:"chosen"`
	// Seconds from the change until they were the ones wanted, where they have
	// changed.
	Seconds float64 `json:"seconds,omitempty"`
}

// story is one of the folders in examples/placement. The arithmetic of what is
// wanted is in its files.
type story struct {
	folder     string
	placements []string
	steps      []fleetChange
}

// fleetChange is something that happens, and what is chosen then.
type fleetChange struct {
	says string
	// file in the folder changes; none where the placements are made.
	file string
	// want are the clusters chosen, by name, for each placement of the story.
	want [][]string
}

const made = "it is made"

var stories = []story{
	{"1-largest-ratios", []string{"largest-ratios"}, []fleetChange{
		{made, "", [][]string{{"cluster2", "cluster4", "cluster6"}}},
	}},
	{"2-most-memory", []string{"most-memory"}, []fleetChange{
		{made, "", [][]string{{"cluster3"}}},
	}},
	{"3-follow", []string{"follow"}, []fleetChange{
		{made, "", [][]string{{"cluster3", "cluster4"}}},
		{"cluster2: from 8 to 50 CPUs", "cluster2-grows", [][]string{{"cluster2", "cluster4"}}},
	}},
	{"4-steady", []string{"steady"}, []fleetChange{
		{made, "", [][]string{{"cluster1", "cluster3", "cluster4", "cluster6"}}},
		{"cluster2: from 8 to 50 CPUs", "cluster2-grows", [][]string{{"cluster1", "cluster3", "cluster4", "cluster6"}}},
	}},
	{"5-scaling", []string{"where-most-is", "where-it-was"}, []fleetChange{
		{made, "", [][]string{{"cluster4"}, {"cluster4"}}},
		{"cluster1: from 18 to 34 CPUs", "cluster1-two-nodes-more", [][]string{{"cluster1"}, {"cluster4"}}},
		{"cluster1: from 34 to 26 CPUs", "cluster1-one-node-less", [][]string{{"cluster1"}, {"cluster4"}}},
		{"cluster1: from 26 to 18 CPUs", "cluster1-two-nodes-less", [][]string{{"cluster4"}, {"cluster4"}}},
	}},
}

// fleetRun is one run of the scenario.
type fleetRun struct {
	*hub
	say     func(string)
	results []Result
}

// play tells all stories in one form, then in the other: what the controller has
// queued for a placement is long done when the next one of that name is made.
func (r *fleetRun) play(ctx context.Context) error {
	for _, form := range PlacementForms {
		for _, s := range stories {
			if err := r.tell(ctx, s, form); err != nil {
				return fmt.Errorf("%s in the form %s: %w", s.folder, form, err)
			}
		}
	}
	return nil
}

// tell tells a story, and leaves the fleet as it was found. The controller must
// know of that before the next one: what it decides first may stay.
func (r *fleetRun) tell(ctx context.Context, s story, form string) error {
	before := make([][]string, len(s.placements))
	for _, change := range s.steps {
		began := time.Now()
		if err := r.happen(ctx, s, form, change); err != nil {
			return err
		}
		outcomes, err := r.follow(ctx, s.placements, began, before, change.want)
		if err != nil {
			return err
		}
		var said []string
		for i, o := range outcomes {
			result := Result{
				Scenario: FleetScenario, Profile: form, Want: strings.Join(change.want[i], ", "),
				OK:    slices.Equal(o.chosen, change.want[i]),
				Fleet: &FleetStep{Story: s.folder, Step: change.says, Placement: s.placements[i], Chosen: o.chosen, Seconds: seconds(o.after)},
			}
			r.results = append(r.results, result)
			said = append(said, result.Summary())
		}
		r.say(fmt.Sprintf("scenario %s, %s as %s, %s: %s", FleetScenario, s.folder, form, change.says, strings.Join(said, "; ")))
		before = change.want
	}
	if err := r.apply(ctx, fleetFile); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.remove(ctx, s.placements)
}

// happen makes a change.
func (r *fleetRun) happen(ctx context.Context, s story, form string, change fleetChange) error {
	if change.file == "" {
		return r.apply(ctx, placementFile(s.folder, form))
	}
	return r.apply(ctx, "changes/"+change.file+".yaml")
}

// placed is what has become of a placement.
type placed struct {
	chosen []string
	// after is when it was as wanted, zero where it stayed so.
	after time.Duration
}

// follow watches placements until each has the clusters wanted, and those that
// are to stay as they were for as long as others may take.
func (r *fleetRun) follow(ctx context.Context, names []string, began time.Time, before, want [][]string) ([]placed, error) {
	out, settled := make([]placed, len(names)), make([]bool, len(names))
	err := r.await(ctx, "placements to be decided", func(ctx context.Context) (bool, error) {
		for i, name := range names {
			if settled[i] {
				continue
			}
			var err error
			if out[i].chosen, err = r.chosen(ctx, name); err != nil {
				return false, err
			}
			after, asWanted := time.Since(began), slices.Equal(out[i].chosen, want[i])
			switch {
			case slices.Equal(before[i], want[i]):
				settled[i] = !asWanted || after > followsWithin
			case asWanted:
				out[i].after, settled[i] = after, true
			default:
				settled[i] = after > givenUp
			}
		}
		return !slices.Contains(settled, false), nil
	})
	return out, err
}

// summary says in a few words what has become of the placement.
func (s *FleetStep) summary() string {
	text := s.Placement + ": " + strings.Join(s.Chosen, ", ")
	if s.Seconds > 0 {
		text += fmt.Sprintf(" after %.2f s", s.Seconds)
	}
	return text
}
