package recommend

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// Sizes of the search: the kinds of requests that are tried with other profiles, and the pairs for which slack is searched, and the rows of
// the frontier.
const (
	bestPairs   = 4
	maxFrontier = 10
)

// enoughCost is the cost, relative to the cost with the requests of all workloads, with which the requests of fewer are enough: a change
// restarts pods. bisections is how often the number of workloads is bisected: up to a 32nd of them.
const (
	enoughCost = 1.02
	bisections = 5
)

// candidate is a configuration.
type candidate struct {
	profile  engine.NamedConfig
	requests *rule
	slack    slackChoice
	// whole is the candidate with the requests of all workloads, nil if this one has them.
	whole *candidate
	// mark is the role in the result, empty for none.
	mark string
	// parts are the figures by part, nil for a part that was not simulated.
	parts []*figures
}

// figures are the outcome of a part.
type figures struct {
	// days is the time that counts.
	days, cost, overload, saturation, killed, unschedulable float64
	waits                                                   result.Waits
	nodesPeak                                               int
}

// newFigures returns the figures of a run whose first seconds do not count.
func newFigures(run *result.Run, settle int64) *figures {
	return &figures{
		days: float64(run.Seconds-settle) / 86400, cost: run.Scaling.Cost, overload: run.OverloadMinutes, killed: float64(run.Victims),
		saturation: run.CPUSaturationMinutes, unschedulable: float64(run.Unschedulable), waits: run.Waits, nodesPeak: run.Scaling.NodesPeak,
	}
}

// sum returns the sum of the figures of parts.
func sum(parts []*figures) *figures {
	s := &figures{waits: result.Waits{}}
	for _, p := range parts {
		s.days += p.days
		s.cost += p.cost
		s.overload += p.overload
		s.saturation += p.saturation
		s.killed += p.killed
		s.unschedulable += p.unschedulable
		s.waits.Add(p.waits)
		s.nodesPeak = max(s.nodesPeak, p.nodesPeak)
	}
	return s
}

// name describes the candidate.
func (c *candidate) name() string {
	return fmt.Sprintf("%s, %s, %s", c.profile.Name, c.requests.Name, c.slack.name)
}

// isSame reports whether two candidates have the same configuration.
func (c *candidate) isSame(other *candidate) bool {
	return c.profile.Name == other.profile.Name && c.requests == other.requests && c.slack.name == other.slack.name
}

// search finds the cheapest candidate that meets the goals on the parts to fit. Its Options are as given: what the recording decides is in
// fields of its own.
type search struct {
	Options

	ctx context.Context
	// goals have their defaults, and autoscaler its costs and its time until a node is removed.
	goals      Goals
	autoscaler scaling.Spec
	// triesSlack is set if slack may be changed, and waits can be judged.
	triesSlack bool
	rules      []rule
	// parts of the recording, each with a value of --recording: the first fit ones to fit, the others to confirm. order are the parts to
	// fit, the part with most use first.
	parts, fit int
	recordings []string
	seconds    int64 // of a part
	settle     int64
	running    int // number of pods that run at the start
	order      []int
	fitted     string // the parts to fit, a value of --recording
	inForce    *candidate
	raced      []*candidate
	// untried are the pairs of profile and requests that were simulated on the first part only, by cost.
	untried   []*candidate
	simulated int
	// countsCPUs is set if nodes, which have no cost, cost as much as they have CPUs.
	countsCPUs bool
}

// simulate runs candidates on parts, except those with figures.
func (s *search) simulate(candidates []*candidate, parts ...int) error {
	var jobs []compare.Job
	var missing []**figures
	for _, c := range candidates {
		if c.parts == nil {
			c.parts = make([]*figures, s.parts)
		}
		for _, part := range parts {
			if c.parts[part] == nil {
				missing, jobs = append(missing, &c.parts[part]), append(jobs, s.job(c, part))
			}
		}
	}
	runs, err := s.Run(s.ctx, jobs)
	if err = cmp.Or(err, s.ctx.Err()); err != nil {
		return err
	}
	for i, f := range missing {
		if *f = newFigures(runs[i], s.settle); s.goals.NoUsage {
			(*f).overload, (*f).saturation, (*f).killed = 0, 0, 0
		}
		s.simulated++
	}
	return nil
}

// job returns the simulation of a candidate on a part.
func (s *search) job(c *candidate, part int) compare.Job {
	source := s.Source
	source.Recording, source.Reschedule, source.Pack, source.Requests = s.recordings[part], true, s.pack(), c.requests.table
	return compare.Job{
		Source: generate.Source{Source: source}, Profile: c.profile, Metrics: s.Metrics, Seed: uint64(part), Settle: s.settle,
		Autoscaler: &scaling.Config{Spec: s.autoscaler, Slack: c.slack.policy},
	}
}

// pack returns the number of pods that are scheduled again per second, so that all are within half of the time to settle.
func (s *search) pack() int { return int(2*int64(s.running)/max(s.settle, 1)) + 1 }

// partsOf returns the figures of a candidate on parts.
func partsOf(c *candidate, parts []int) []*figures {
	out := make([]*figures, len(parts))
	for i, part := range parts {
		out[i] = c.parts[part]
	}
	return out
}

// misses returns the goals that figures miss, given the figures of the configuration in force.
func (s *search) misses(f, base *figures) (missed []string) {
	overload, killed := s.goals.bounds(base)
	if f.overload > overload {
		missed = append(missed, fmt.Sprintf("overload %s node minutes a day, allowed %s", perDay(f.overload, f), perDay(overload, base)))
	}
	if f.killed > killed {
		missed = append(missed, fmt.Sprintf("%s pods killed a day, allowed %s", perDay(f.killed, f), perDay(killed, base)))
	}
	if f.unschedulable > base.unschedulable {
		missed = append(missed,
			fmt.Sprintf("%s unschedulable pods, %s in force", format.Plain(f.unschedulable), format.Plain(base.unschedulable)))
	}
	if wait, bound := s.goals.wait(f), s.goals.waitBound(base); !s.goals.isReached(f, base) {
		missed = append(missed, fmt.Sprintf("%g %% of the pods wait at most %s, allowed %s", s.goals.Percent, wait, bound))
	}
	return missed
}

// perDay returns an amount per day of figures.
func perDay(amount float64, f *figures) string { return format.Plain(amount / max(f.days, 1e-9)) }

// meets reports whether a candidate meets the goals on parts, with or without the goal of waits.
func (s *search) meets(c *candidate, parts []int, withWait bool) bool {
	f, base := sum(partsOf(c, parts)), sum(partsOf(s.inForce, parts))
	if !withWait {
		f.waits = nil
	}
	return len(s.misses(f, base)) == 0
}

// run returns the cheapest candidate that meets the goals on the parts to fit, or the nearest and false. Only changed levers differ from
// the configuration in force.
func (s *search) run() (best *candidate, reached bool, err error) {
	s.inForce = &candidate{profile: s.Current, requests: &s.rules[0], slack: s.slackInForce()}
	pairs := []*candidate{s.inForce}
	for i := range s.rules[1:] {
		pairs = append(pairs, &candidate{profile: s.Current, requests: &s.rules[i+1], slack: s.inForce.slack})
	}
	first := s.order[0]
	s.Report(fmt.Sprintf("part %d of %d, which has the highest use: %s of requests", first+1, s.fit, format.Of(len(pairs), "kind")))
	if err := s.simulate(pairs, first); err != nil {
		return nil, false, err
	}
	if s.Change.Profile {
		pairs = append(pairs, s.profileCandidates(pairs)...)
	}
	s.Report(fmt.Sprintf("the same part: %s of profile and requests", format.Of(len(pairs), "pair")))
	if err := s.simulate(pairs, first); err != nil {
		return nil, false, err
	}
	if err := s.simulate(pairs[:1], s.order[1:]...); err != nil {
		return nil, false, err
	}
	good, err := s.goodPairs(pairs[1:])
	if err != nil {
		return nil, false, err
	}
	if s.raced, err = s.slackCandidates(append(good, s.inForce)); err != nil {
		return nil, false, err
	}
	if _, err := s.race(s.raced); err != nil {
		return nil, false, err
	}
	return s.winner()
}

// profileCandidates returns the pairs of the profiles that are not in force with the kinds of requests that can win: the requests in force,
// the cheapest that meet the goals other than the wait on the first part with the profile in force, and the most expensive that miss them,
// which another profile may meet.
func (s *search) profileCandidates(pairs []*candidate) (more []*candidate) {
	first := s.order[:1]
	byCost := slices.SortedStableFunc(slices.Values(pairs[1:]), func(a, b *candidate) int {
		return cmp.Compare(a.parts[first[0]].cost, b.parts[first[0]].cost)
	})
	rules, met, missed := []*rule{s.inForce.requests}, 0, []*rule{}
	for _, c := range byCost {
		if !s.meets(c, first, false) {
			missed = append(missed, c.requests)
		} else if met++; met <= bestPairs {
			rules = append(rules, c.requests)
		}
	}
	rules = append(rules, missed[max(0, len(missed)-max(1, bestPairs-met)):]...)
	for _, profile := range s.Profiles {
		for _, r := range rules {
			if profile.Name != s.Current.Name {
				more = append(more, &candidate{profile: profile, requests: r, slack: s.inForce.slack})
			}
		}
	}
	return more
}

// goodPairs returns the cheapest pairs, by the first part, that meet the goals other than the wait on all parts to fit, at most bestPairs.
// It tries bestPairs at a time, until so many are good or one also meets the goal of waits, so that no slack is needed.
func (s *search) goodPairs(pairs []*candidate) (good []*candidate, err error) {
	first := s.order[:1]
	slices.SortStableFunc(pairs, func(a, b *candidate) int { return cmp.Compare(a.parts[first[0]].cost, b.parts[first[0]].cost) })
	s.untried = slices.DeleteFunc(pairs, func(c *candidate) bool { return c.parts[first[0]].cost >= s.inForce.parts[first[0]].cost })
	isBest := func(c *candidate) bool { return s.meets(c, s.order, true) }
	for len(s.untried) > 0 && len(good) < bestPairs && !slices.ContainsFunc(good, isBest) {
		running, err := s.racePairs()
		if err != nil {
			return nil, err
		}
		for _, c := range running {
			if s.meets(c, s.order, false) {
				good = append(good, c)
			}
		}
	}
	return good[:min(len(good), bestPairs)], nil
}

// racePairs simulates the next bestPairs of the untried pairs on the parts to fit, and returns those that were simulated on all.
func (s *search) racePairs() ([]*candidate, error) {
	batch := s.untried[:min(bestPairs, len(s.untried))]
	s.untried = s.untried[len(batch):]
	running, err := s.race(batch)
	s.raced = append(s.raced, running...)
	return running, err
}

// race simulates candidates on the parts to fit, one after the other, and returns those that were simulated on all. It drops candidates
// that exceed the goals of all parts already.
func (s *search) race(candidates []*candidate) ([]*candidate, error) {
	running := slices.Clone(candidates)
	overload, killed := s.goals.bounds(sum(partsOf(s.inForce, s.order)))
	for i, part := range s.order {
		s.Report(fmt.Sprintf("part %d of %d to fit: %s", i+1, s.fit, format.Of(len(running), "configuration")))
		if err := s.simulate(running, part); err != nil {
			return nil, err
		}
		running = slices.DeleteFunc(running, func(c *candidate) bool {
			f := sum(partsOf(c, s.order[:i+1]))
			return c != s.inForce && (f.overload > overload || f.killed > killed)
		})
	}
	return running, nil
}

// cheapest returns the cheapest of the candidates that meet the goals on parts, nil if none does.
func (s *search) cheapest(candidates []*candidate, parts []int) (best *candidate) {
	lowest := math.Inf(1)
	for _, c := range candidates {
		if cost := sum(partsOf(c, parts)).cost; cost < lowest && s.meets(c, parts, true) {
			best, lowest = c, cost
		}
	}
	return best
}

// complete returns the raced candidates that were simulated on all parts to fit.
func (s *search) complete() []*candidate {
	return slices.DeleteFunc(slices.Clone(s.raced), func(c *candidate) bool { return slices.Contains(partsOf(c, s.order), nil) })
}

// winner returns the cheapest candidate that meets the goals or, if none does, the one that misses them least: by the number of missed
// goals, then the wait, then the cost.
func (s *search) winner() (*candidate, bool, error) {
	candidates := s.complete()
	if best := s.cheapest(candidates, s.order); best != nil {
		return best, true, nil
	}
	base := sum(partsOf(s.inForce, s.order))
	return slices.MinFunc(candidates, func(a, b *candidate) int {
		x, y := sum(partsOf(a, s.order)), sum(partsOf(b, s.order))
		return cmp.Or(cmp.Compare(len(s.misses(x, base)), len(s.misses(y, base))), cmp.Compare(s.goals.wait(x), s.goals.wait(y)),
			cmp.Compare(x.cost, y.cost))
	}), false, nil
}

// isEnough reports whether a candidate meets the goals on parts, and costs at most enoughCost times as much as another.
func (s *search) isEnough(c, full *candidate, parts []int) bool {
	return s.meets(c, parts, true) && sum(partsOf(c, parts)).cost <= enoughCost*sum(partsOf(full, parts)).cost
}

// fewestChanges returns a candidate that changes the requests of the fewest workloads, those that release most, and is enough on the parts
// to fit and on those to confirm. Their number is bisected on the part with the highest use.
func (s *search) fewestChanges(full *candidate, confirm []int) (*candidate, error) {
	enough, low, high, first := []*candidate{full}, -1, len(full.requests.table), s.order[:1]
	for range bisections {
		if high-low <= 1 {
			break
		}
		middle := (low + high) / 2
		c := &candidate{profile: full.profile, requests: full.requests.first(middle), slack: full.slack, whole: full}
		if middle == 0 {
			if c.requests = s.inForce.requests; c.isSame(s.inForce) {
				c = s.inForce
			}
		}
		s.Report("fewer patches: " + c.name())
		if err := s.simulate([]*candidate{c}, first...); err != nil {
			return nil, err
		}
		if s.isEnough(c, full, first) {
			enough, high = append(enough, c), middle
		} else {
			low = middle
		}
	}
	for _, c := range slices.Backward(enough[1:]) {
		if err := s.simulate([]*candidate{c}, slices.Concat(s.order, confirm)...); err != nil ||
			s.isEnough(c, full, s.order) && s.isEnough(c, full, confirm) {
			return c, err
		}
	}
	return full, nil
}

// frontier returns the candidates for which no cheaper one has neither more overload nor a longer wait, by cost, and the configuration in
// force.
func (s *search) frontier() []*candidate {
	all := s.complete()
	total := func(c *candidate) *figures { return sum(partsOf(c, s.order)) }
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Compare(total(a).cost, total(b).cost) })
	var out []*candidate
	for _, c := range all {
		f := total(c)
		if !slices.ContainsFunc(out, func(cheaper *candidate) bool {
			other := total(cheaper)
			return other.overload <= f.overload && other.killed <= f.killed && s.goals.wait(other) <= s.goals.wait(f)
		}) {
			out = append(out, c)
		}
	}
	out = out[:min(len(out), maxFrontier-1)]
	if !slices.Contains(out, s.inForce) {
		out = append(out, s.inForce)
	}
	return out
}
