package result

import (
	"cmp"
	"slices"
)

// Tuning describes the search whose winner a document compares with the configuration in force. The seeds of the document are the
// seeds of the confirmation, which the search has not used.
type Tuning struct {
	// Objective is the weighted sum of figures that the search minimized, in the syntax of --objective. With several scenarios it is
	// their mean.
	Objective string `json:"objective"`
	// Verdict is about the winner: better if the interval of the difference excludes 0 in the confirmation.
	Verdict Verdict `json:"verdict"`
	// Settings of the winner, the best alternative to the configuration in force.
	Settings string `json:"settings"`
	// Current and Winner are the means of the objective over the seeds of the confirmation, and Difference is their difference by seed.
	// They are nil if the confirmation did not take place.
	Current    *float64    `json:"current,omitempty"`
	Winner     *float64    `json:"winner,omitempty"`
	Difference *Difference `json:"difference,omitempty"`
	// Profile is the name of the profile to use, and Configuration its KubeSchedulerConfiguration, in YAML: the winner if it is better, or
	// the best when the search was interrupted, and otherwise the configuration in force.
	Profile       string `json:"profile"`
	Configuration string `json:"configuration"`
	// Notes are the steps before the configuration is used, one sentence each.
	Notes  []string `json:"notes,omitempty"`
	Search Search   `json:"search"`
}

// Search describes how the winner was found.
type Search struct {
	// Seeds of the search.
	Seeds []uint64 `json:"seeds"`
	// Points is the number of configurations in the space. Candidates are the simulated configurations in the order of the search;
	// the first candidate is in force. Runs is the number of simulations without the confirmation.
	Points     int         `json:"points"`
	Runs       int         `json:"runs"`
	Candidates []Candidate `json:"candidates"`
	// Exhausted is set if the search stopped because of --max-runs.
	Exhausted bool `json:"exhausted,omitempty"`
}

// Candidate is a configuration that was simulated in a search.
type Candidate struct {
	Settings string `json:"settings"`
	// Round in which the candidate appeared, from 1.
	Round int `json:"round"`
	// Seeds is the number of seeds with which it was simulated, from the first seed on, and Objective the mean over them.
	Seeds     int     `json:"seeds"`
	Objective float64 `json:"objective"`
	// Difference is the mean of the differences of the objective from the configuration in force, with the seeds of both. It is
	// nil if there are none.
	Difference *float64 `json:"difference,omitempty"`
	// Dropped is why the candidate was dropped: Worse or Equal, empty if it was not dropped.
	Dropped Answer `json:"dropped,omitempty"`
}

// Ranked returns the candidates of a search, the best first: by the difference from the configuration in force, which has the difference 0.
// Candidates that were not simulated are omitted.
func (s *Search) Ranked() []Candidate {
	ranked := slices.DeleteFunc(slices.Clone(s.Candidates), func(c Candidate) bool { return c.Seeds == 0 })
	difference := func(c Candidate) float64 {
		if c.Difference == nil {
			return 0
		}
		return *c.Difference
	}
	slices.SortStableFunc(ranked, func(a, b Candidate) int { return cmp.Compare(difference(a), difference(b)) })
	return ranked
}
