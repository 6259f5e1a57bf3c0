// Package tune searches the scheduler configuration with the smallest objective in a simulated cluster.
//
// It races candidates, simulated with the same seeds: first the configuration in force and the built-in profiles, then in each round
// the neighbors of the best candidates in a space of weights and arguments (Space). The winner is compared with the configuration in
// force with seeds that the search has not used, since the best of many candidates is partly best by chance.
//
// # Race
//
// A race finds the best of several candidates with few measurements. All candidates are measured in the same blocks, such as
// simulations with the same seed, so that a block that is hard for one candidate is hard for all, and the differences within
// blocks are due to the candidates alone. Smaller values are better.
//
// At each look, after some of the blocks, the race drops candidates that are worse than the leader, the candidate with the smallest
// mean. A candidate is worse if its differences from the leader, one for each block, have a mean above 0 by a one-sided t test
// (Student, The Probable Error of a Mean, 1908; as a race: Birattari et al., A Racing Algorithm for Configuring Metaheuristics,
// 2002). The level of the race is divided by the number of tests that can concern one pair of candidates and by the number of other
// candidates (Bonferroni), so that with normal differences the best candidate is dropped with at most that probability. A candidate
// with the same values as an earlier candidate in every block is dropped as well, since both have the same effect.
//
// The winner of a race has the smallest mean of many candidates, which is likely to be better than its expectation: compare it in
// blocks that the race has not used. Dropping the best candidate then lowers the quality of the result, never its validity.
package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// winnerName is the name of the profile with the winner in results.
const winnerName = "tuned"

// Options describe a search.
type Options struct {
	// Compare has the input, the scenarios and the first seed. Its profiles and number of seeds are not used, and it has at most one Slack.
	Compare compare.Options
	// Current is the configuration in force.
	Current   engine.NamedConfig
	Objective Objective
	// Exclude are names of Plugins whose settings are not changed.
	Exclude []string
	// Seeds is the number of seeds of the search, Confirm the number of seeds of the confirmation, which follow them. Both are at least 2.
	Seeds, Confirm int
	// Rounds bounds the rounds of the search, and MaxRuns its simulations.
	Rounds, MaxRuns int
	Run             compare.Run
	// Report is called after each look of a race.
	Report func(Progress)

	// templates are the jobs of one candidate and seed, one for each scenario.
	templates []compare.Job
}

// errNothing is returned if the search has only the configuration in force.
var errNothing = errors.New("--exclude: nothing is left to change")

// Tuning is a validated search.
type Tuning struct {
	options Options
	current *current
}

// New validates the options. Errors name the flag of each option.
func New(ctx context.Context, o Options) (*Tuning, error) {
	for _, name := range o.Exclude {
		if !slices.Contains(Plugins(), name) {
			return nil, fmt.Errorf("--exclude: invalid value %q: must be one of %s", name, strings.Join(Plugins(), ", "))
		}
	}
	if o.Current.Name == winnerName {
		return nil, fmt.Errorf("--current: invalid value %q: must have another name than the result", o.Current.Name)
	}
	c, err := newCurrent(o.Current)
	if err != nil {
		return nil, fmt.Errorf("--current: %w", err)
	}
	t := &Tuning{options: o, current: c}
	t.options.templates = o.Compare.Templates()
	if o.Compare.Autoscaler != nil {
		config := scaling.Config{Spec: *o.Compare.Autoscaler}
		for _, slack := range o.Compare.Slack {
			config.Slack = slack.Policy
		}
		for i := range t.options.templates {
			t.options.templates[i].Autoscaler = &config
		}
	}
	// The input and the configuration in force are validated before the search.
	if _, err := t.plan(ctx, []engine.NamedConfig{o.Current}, o.Compare.Warn); err != nil {
		return nil, err
	}
	if newRegion(c.point, o.Exclude).size() < 2 {
		return nil, errNothing
	}
	return t, nil
}

// plan returns the comparison of profiles with the seeds of the confirmation.
func (t *Tuning) plan(ctx context.Context, compared []engine.NamedConfig, warn func(string)) (*compare.Plan, error) {
	o := t.options.Compare
	o.Given, o.Seed, o.Seeds, o.Warn = compared, o.Seed+uint64(t.options.Seeds), t.options.Confirm, warn
	return compare.NewPlan(ctx, o)
}

// Run searches, confirms the winner, and returns the comparison of the winner with the configuration in force. If ctx is canceled, the
// result has the best candidate until then, and is marked as interrupted.
func (t *Tuning) Run(ctx context.Context) (*result.Result, error) {
	s := newSearch(t.options, t.current)
	interrupted, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	winner := s.challenger()
	if winner == nil {
		return nil, errNothing
	}
	tuned := engine.NamedConfig{Name: winnerName, Text: winner.profile.Text}
	plan, err := t.plan(context.WithoutCancel(ctx), []engine.NamedConfig{t.options.Current, tuned}, func(string) {})
	if err != nil {
		return nil, err
	}
	run := t.options.Run
	if interrupted { // also if only the runs were interrupted
		run = func(_ context.Context, jobs []compare.Job) ([]*result.Run, error) {
			return make([]*result.Run, len(jobs)), nil
		}
	}
	r, err := plan.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	r.Recommendation = nil
	r.Tuning = &result.Tuning{Objective: t.options.Objective.String(), Settings: winner.point.String(), Search: s.document()}
	t.conclude(r, s, winner)
	return r, nil
}

// conclude sets the verdict and the configuration.
func (t *Tuning) conclude(r *result.Result, s *search, winner *candidate) {
	tuning := r.Tuning
	v := &tuning.Verdict
	v.Candidate, v.Answer = winnerName, result.CannotTell
	tuning.Profile, tuning.Configuration = t.options.Current.Name, string(t.options.Current.Text)
	switch {
	case r.Interrupted && winner == s.best:
		v.Sentence = "Interrupted: the best configuration so far is " + tuning.Settings + ". It is not confirmed."
	case r.Interrupted:
		v.Sentence = "Interrupted: no configuration was confirmed. Keep the configuration in force."
		return
	default:
		current, challenger := t.objectives(r, 0), t.objectives(r, 1)
		before, after := mean(current), mean(challenger)
		// If both are equally good, the answer is Better with a probability of (1 - result.Level) / 2.
		tuning.Difference = result.PairedDifference(current, challenger)
		tuning.Current, tuning.Winner = &before, &after
		v.Answer = result.AnswerOf(result.Definition{}, tuning.Difference, before)
		v.Sentence = tuning.Settings + " is clearly better. "
		if v.Answer != result.Better {
			v.Sentence = "Keep what you have: no configuration is clearly better. The best of the others is " + tuning.Settings + ". "
		}
		v.Sentence += fmt.Sprintf("The objective is %s in place of %s on %s that the search has not used: a difference of%s.",
			format.Auto(after), format.Auto(before), format.Of(len(r.Seeds), "seed"), result.DifferenceText(tuning.Difference, before))
		if v.Answer != result.Better {
			return
		}
	}
	tuning.Profile = winnerName
	tuning.Configuration, tuning.Notes = t.configuration(winner, r.Interrupted)
}

// objectives returns the objective of a profile for each seed: the mean over the scenarios.
func (t *Tuning) objectives(r *result.Result, profile int) []float64 {
	values := make([]float64, len(r.Seeds))
	for i := range r.Scenarios {
		for seed := range values {
			values[seed] += t.options.Objective.Value(&r.Scenarios[i].Profiles[profile].Runs[seed]) / float64(len(r.Scenarios))
		}
	}
	return values
}

// configuration returns the configuration of the winner with a comment, and the steps before it is used.
func (t *Tuning) configuration(winner *candidate, interrupted bool) (text string, notes []string) {
	var reading []string
	for _, plugin := range readers() {
		if winner.point.weight(plugin) > 0 && t.current.point.weight(plugin) == 0 {
			reading = append(reading, plugin)
		}
	}
	if len(reading) > 0 {
		notes = append(
			notes,
			fmt.Sprintf("Check the load sources in the arguments of %s: they must measure load as --metrics describes it.",
				strings.Join(reading, " and ")),
		)
	}
	comment := []string{
		"Written by plimsoll tune: " + winner.point.String() + ".",
		"Objective: " + t.options.Objective.String() + ".",
	}
	if interrupted {
		comment = append(comment, "The search was interrupted: it is not confirmed that this is better than the configuration in force.")
	}
	var out strings.Builder
	for _, line := range append(comment, notes...) {
		fmt.Fprintf(&out, "# %s\n", line)
	}
	out.Write(winner.profile.Text)
	return out.String(), notes
}
