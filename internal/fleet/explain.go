package fleet

import (
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
)

// Standing is how one cluster stands in a verdict.
type Standing struct {
	Name string
	// Chosen, and Feasible: it could be chosen as far as sets, predicates and taints
	// go.
	Chosen, Feasible bool
	// Reason says in words why it is not chosen.
	Reason string
	// Total is the sum of weight x score, of those that are feasible.
	Total  int64
	Scores []Score
}

// Score is what one prioritizer gives.
type Score struct {
	Name   string
	Weight int32
	// Score in [-100, 100]. Without data it is the worst for the cluster.
	Score   int64
	HasData bool
}

// Standings returns how the clusters of the fleet stand: the best of those that
// could be chosen first, the others by name. There are none where nothing could
// be decided.
func (v *Verdict) Standings() []Standing {
	if v.Decision == nil {
		return nil
	}
	var ranked, others []int32
	for i := range v.Fleet {
		if v.Decision.Clusters[i].Outcome.Feasible() {
			ranked = append(ranked, int32(i))
		} else {
			others = append(others, int32(i))
		}
	}
	slices.SortFunc(ranked, v.Decision.Compare)
	names, weights := v.Policy.Prioritizers()
	var out []Standing
	for _, i := range append(ranked, others...) {
		result := &v.Decision.Clusters[i]
		s := Standing{Name: v.Fleet[i].Name, Chosen: result.Outcome == placement.Chosen, Feasible: result.Outcome.Feasible(), Total: result.Total, Reason: v.reason(int(i))}
		if s.Feasible {
			for p, name := range names {
				score, hasData := v.Decision.Score(p, int(i))
				s.Scores = append(s.Scores, Score{name, weights[p], score, hasData})
			}
		}
		out = append(out, s)
	}
	return out
}

// reason says why a cluster is not chosen.
func (v *Verdict) reason(i int) string {
	result := &v.Decision.Clusters[i]
	switch result.Outcome {
	case placement.Chosen:
		return ""
	case placement.Outranked:
		if result.Avoided {
			return "has a PreferNoSelect taint that is not tolerated, and others are enough"
		}
		return "others rank before it and are enough"
	case placement.Skewed:
		return fmt.Sprintf("would exceed maxSkew of spec.spreadPolicy.spreadConstraints[%d]", result.Detail)
	case placement.NoTopology:
		return fmt.Sprintf("lacks %s, the topologyKey of spec.spreadPolicy.spreadConstraints[%d]", v.Policy.spread[result.Detail].Key, result.Detail)
	case placement.Outside:
		return "is in none of the cluster sets"
	case placement.Unmatched:
		return "matches none of the predicates"
	case placement.Tainted:
		taint := v.Fleet[i].Taints[result.Detail]
		value := ""
		if taint.Value != "" {
			value = "=" + taint.Value
		}
		return fmt.Sprintf("its taint %s%s is not tolerated, or not any more", taint.Key, value)
	}
	return result.Outcome.String()
}
