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
		s.describe(r, 1)
		return
	}
	s.use(r, best, ", if less waiting is worth its price.")
	s.describe(r, best)
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

// bestSlack returns the index of the cheapest profile that improves the pending time by at least enoughReduction of the largest
// reduction, 0 if there is none.
func bestSlack(r *Result) int {
	waiting := func(profile int) float64 { return sumOfMeans(r, profile, pending.figure.Name) }
	profiles := improving(r)
	largest := waiting(0) - waiting(least(profiles, waiting))
	profiles = slices.DeleteFunc(profiles, func(profile int) bool {
		reduction := waiting(0) - waiting(profile)
		return reduction <= 0 || reduction < enoughReduction*largest
	})
	return least(profiles, func(profile int) float64 { return sumOfMeans(r, profile, "cost") })
}
