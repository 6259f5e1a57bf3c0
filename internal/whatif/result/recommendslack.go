package result

import (
	"slices"
	"strings"
)

// enoughReduction is the fraction of the largest reduction of the pending time that a recommended rate of slack reaches.
const enoughReduction = 2.0 / 3

// recommendSlack recommends an amount of slack, with its effect on the time that pods are pending.
func (s *Recommendation) recommendSlack(r *Result) {
	best := bestSlack(r)
	if best == 0 {
		s.Headline = "Keep " + r.Profiles[0] + ": no other amount of slack clearly shortens the time that pods are pending " +
			"without doing clear harm elsewhere."
		s.Of = r.Profiles[1]
		s.describe(r, 1, &pending)
		return
	}
	s.use(r, best, ", if less waiting is worth its price.")
	s.describe(r, best, &pending)
	s.Price = append(s.Price, "Of the amounts compared, it is the cheapest with at least two thirds of the largest clear reduction; "+
		"the curve below shows all.")
}

// SlackNames returns the names of all profiles but the first. If profiles differ only by their slack, the common prefix
// is removed: "slack 10%" for "default, slack 10%".
func SlackNames(r *Result) []string {
	names := slices.Clone(r.Profiles[1:])
	if len(r.Scenarios) == 0 || r.Scenarios[0].Profiles[0].Slack == "" {
		return names
	}
	common := strings.TrimSuffix(r.Profiles[0], "slack "+r.Scenarios[0].Profiles[0].Slack)
	for i, name := range names {
		if names[i] = strings.TrimPrefix(name, common); names[i] == name {
			return r.Profiles[1:]
		}
	}
	return names
}

// bestSlack returns the index of the cheapest profile that shortens the pending time by at least enoughReduction
// of the largest reduction, 0 if there is none. The profile must shorten it clearly in one scenario, without clear
// harm in any.
func bestSlack(r *Result) int {
	reductions, costs := map[int]float64{}, map[int]float64{}
	largest := 0.0
	for i := 1; i < len(r.Profiles); i++ {
		clear, harmful, reduction := false, false, 0.0
		for j := range r.Scenarios {
			base, other := &r.Scenarios[j].Profiles[0], &r.Scenarios[j].Profiles[i]
			v := assessFigure(r, base, other, pending.figure.Name)
			clear, harmful = clear || v == Better, harmful || v == Worse
			for _, name := range harm {
				harmful = harmful || assessFigure(r, base, other, name) == Worse
			}
			reduction += base.Figures[pending.figure.Name].Mean - other.Figures[pending.figure.Name].Mean
			costs[i] += other.Figures["cost"].Mean
		}
		if clear && !harmful && reduction > 0 {
			reductions[i] = reduction
			largest = max(largest, reduction)
		}
	}
	best := 0
	for i := 1; i < len(r.Profiles); i++ {
		if reduction, ok := reductions[i]; ok && reduction >= enoughReduction*largest && (best == 0 || costs[i] < costs[best]) {
			best = i
		}
	}
	return best
}
