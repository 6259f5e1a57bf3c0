package tune

import (
	"context"
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Races look after 4, 6, 8 and so on seeds. The best candidate of a race is dropped with a probability of at most raceLevel.
const (
	firstLook = 4
	lookStep  = 2
	raceLevel = 0.1
)

// leaders is the number of candidates whose neighbors take part in the next round.
const leaders = 2

// candidate is a configuration that is simulated.
type candidate struct {
	point   Point
	profile engine.NamedConfig
	round   int
	// values of the objective by seed.
	values  []float64
	dropped result.Answer
}

// Progress is the state of a search after some runs.
type Progress struct {
	// Round from 1, of at most Rounds.
	Round, Rounds int
	// Seeds is the number of seeds with which the candidates of the round were simulated, Running the number of Candidates that were not
	// dropped.
	Seeds, Running, Candidates int
	// Best are the settings of the best candidate so far, BestObjective is its objective, and CurrentObjective the objective of the
	// configuration in force with the same seeds.
	Best                            string
	BestObjective, CurrentObjective float64
}

// search looks for the candidate with the smallest objective.
type search struct {
	options    Options
	region     region
	current    *current
	candidates []*candidate
	seen       map[Point]bool
	runs       int
	exhausted  bool
	// best is the leader of the latest race.
	best *candidate
}

// newSearch returns a search whose first candidate is the configuration in force.
func newSearch(o Options, c *current) *search {
	s := &search{options: o, current: c, region: newRegion(c.point, o.Exclude), seen: map[Point]bool{}}
	s.region.center, _ = s.region.normal(c.point)
	first := &candidate{point: c.point, profile: c.profile, round: 1}
	s.candidates, s.best = []*candidate{first}, first
	s.seen[s.region.center] = true
	return s
}

// add adds a candidate for each point of the region without a candidate, and returns the new candidates.
func (s *search) add(points []Point, round int) ([]*candidate, error) {
	var added []*candidate
	for _, p := range points {
		p, ok := s.region.normal(p)
		if !ok || s.seen[p] {
			continue
		}
		s.seen[p] = true
		profile, err := s.current.at(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.current.profile.Name, err)
		}
		if _, err := profile.Config(); err != nil {
			return nil, err
		}
		added = append(added, &candidate{point: p, profile: profile, round: round})
	}
	s.candidates = append(s.candidates, added...)
	return added, nil
}

// run searches until no neighbor of the best candidate is better, or all rounds or runs are used. It reports whether it was
// interrupted.
func (s *search) run(ctx context.Context) (interrupted bool, err error) {
	points, err := startPoints()
	if err != nil {
		return false, err
	}
	racing := s.candidates
	for round := 1; round <= s.options.Rounds; round++ {
		added, err := s.add(points, round)
		if err != nil {
			return false, err
		}
		if len(added) == 0 {
			break
		}
		racing = append(slices.Clone(racing), added...)
		before := s.best
		racing, interrupted, err = s.race(ctx, racing, round)
		if err != nil || interrupted || s.exhausted || round > 1 && s.best == before {
			return interrupted, err
		}
		racing = racing[:min(leaders, len(racing))]
		points = nil
		for _, c := range racing {
			points = append(points, s.region.neighbors(c.point)...)
		}
	}
	return false, nil
}

// race races candidates and returns the candidates that were not dropped, best first.
func (s *search) race(ctx context.Context, racing []*candidate, round int) (ranked []*candidate, interrupted bool, err error) {
	o := s.options
	r := newRace(len(racing), raceOptions{First: min(firstLook, o.Seeds), Step: lookStep, Blocks: o.Seeds, Level: raceLevel})
	for next := r.Next(); next > 0; next = r.Next() {
		running := r.Running()
		if interrupted, err = s.measure(ctx, racing, running, r.blocks+next); err != nil || interrupted || s.exhausted {
			break
		}
		for range next {
			values := make([]float64, len(running))
			for i, number := range running {
				values[i] = racing[number].values[r.blocks]
			}
			r.Add(values)
		}
		for i, c := range racing {
			c.dropped = r.answers[i]
		}
		s.best = racing[r.Leader()]
		o.Report(Progress{
			Round: round, Rounds: o.Rounds, Seeds: r.blocks, Running: len(r.Running()), Candidates: len(racing),
			Best: s.name(s.best), BestObjective: mean(s.best.values), CurrentObjective: mean(s.candidates[0].values),
		})
	}
	if r.blocks == 0 {
		return racing, interrupted, err
	}
	for _, number := range r.Ranking() {
		ranked = append(ranked, racing[number])
	}
	return ranked, interrupted, err
}

// name returns the settings of a candidate, or that it is in force.
func (s *search) name(c *candidate) string {
	if c == s.candidates[0] {
		return s.options.Current.Name + ", which is in force"
	}
	return c.point.String()
}

// measure simulates the running candidates with the first seeds, except seeds that they were simulated with. It reports whether it
// was interrupted, and sets exhausted if the runs do not suffice.
func (s *search) measure(ctx context.Context, racing []*candidate, running []int, seeds int) (interrupted bool, err error) {
	var jobs []compare.Job
	for _, number := range running {
		c := racing[number]
		for i := len(c.values); i < seeds; i++ {
			for _, template := range s.options.templates {
				template.Profile, template.Seed = c.profile, s.options.Compare.Seed+uint64(i)
				jobs = append(jobs, template)
			}
		}
	}
	if s.runs+len(jobs) > s.options.MaxRuns {
		s.exhausted = true
		return false, nil
	}
	runs, err := s.options.Run(ctx, jobs)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(runs, func(run *result.Run) bool { return run == nil || run.Interrupted }) {
		return true, nil
	}
	s.runs += len(jobs)
	scenarios := len(s.options.templates)
	for _, number := range running {
		c := racing[number]
		for len(c.values) < seeds {
			sum := 0.0
			for _, run := range runs[:scenarios] {
				sum += s.options.Objective.Value(run)
			}
			c.values, runs = append(c.values, sum/float64(scenarios)), runs[scenarios:]
		}
	}
	return false, nil
}

// challenger returns the best candidate that is not in force: the leader of the latest race or, if the leader is in force, the
// candidate with the smallest mean difference from it. It returns nil if there is none.
func (s *search) challenger() *candidate {
	if s.best != s.candidates[0] {
		return s.best
	}
	var best *candidate
	least := 0.0
	for _, c := range s.candidates[1:] {
		if difference, ok := s.difference(c); ok && (best == nil || difference < least) {
			best, least = c, difference
		}
	}
	if best == nil && len(s.candidates) > 1 {
		best = s.candidates[1]
	}
	return best
}

// difference returns the mean difference of a candidate from the configuration in force, and whether they have common seeds.
func (s *search) difference(c *candidate) (float64, bool) {
	first := s.candidates[0]
	n := min(len(c.values), len(first.values))
	if n == 0 {
		return 0, false
	}
	return mean(c.values[:n]) - mean(first.values[:n]), true
}

// document returns the search as part of a result.
func (s *search) document() result.Search {
	d := result.Search{Seeds: []uint64{}, Points: s.region.size(), Runs: s.runs, Exhausted: s.exhausted}
	for i := range s.options.Seeds {
		d.Seeds = append(d.Seeds, s.options.Compare.Seed+uint64(i))
	}
	for i, c := range s.candidates {
		entry := result.Candidate{
			Settings: c.point.String(), Round: c.round, Seeds: len(c.values), Objective: mean(c.values), Dropped: c.dropped,
		}
		if difference, ok := s.difference(c); ok && i > 0 {
			entry.Difference = &difference
		}
		d.Candidates = append(d.Candidates, entry)
	}
	return d
}

// mean returns the mean of values, 0 if there are none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}
