package fleet

import (
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// ClusterRanking is the result of a placement for one cluster.
type ClusterRanking struct {
	Name string `json:"name"`
	// Chosen is set for selected clusters, Feasible for clusters that cluster sets,
	// predicates and taints allow.
	Chosen   bool `json:"-"`
	Feasible bool `json:"feasible"`
	// Reason is why the cluster is not selected.
	Reason string `json:"reason"`
	// Replicas are the replicas of the workload if the placement names one and the cluster is selected.
	Replicas *int64 `json:"replicas,omitempty"`
	// Total is the sum of weight x score, 0 for clusters that are not feasible.
	Total int64 `json:"total"`
	// Scores are the scores by prioritizer. Clusters that are not feasible have none.
	Scores map[string]Score `json:"scores"`
}

// Score is the score of a cluster by one prioritizer.
type Score struct {
	// Score is in [-100, 100]. Without data it is the score that is worst for the cluster.
	Score  int64 `json:"score"`
	Weight int32 `json:"weight"`
	// HasData is not set if the cluster reports no data for the prioritizer.
	HasData bool `json:"hasData"`
}

// Ranking returns the clusters of the fleet: feasible clusters by rank, then all
// other clusters by name. It is empty if nothing was decided.
func (r *Result) Ranking() []ClusterRanking {
	if r.Decision == nil {
		return []ClusterRanking{}
	}
	var feasible, others []int32
	for i := range r.Fleet {
		if r.Decision.Clusters[i].Outcome.Feasible() {
			feasible = append(feasible, int32(i))
		} else {
			others = append(others, int32(i))
		}
	}
	slices.SortFunc(feasible, r.Decision.Compare)
	names, weights := r.Policy.Prioritizers()
	ranking := make([]ClusterRanking, 0, len(r.Fleet))
	for _, i := range append(feasible, others...) {
		cluster := &r.Decision.Clusters[i]
		c := ClusterRanking{
			Name: r.Fleet[i].Name, Chosen: cluster.Outcome == decide.Chosen, Feasible: cluster.Outcome.Feasible(),
			Total: cluster.Total, Reason: r.reason(int(i)), Scores: map[string]Score{},
		}
		if c.Feasible {
			for p, name := range names {
				score, hasData := r.Decision.Score(p, int(i))
				c.Scores[name] = Score{score, weights[p], hasData}
			}
		}
		if promise, known := r.Promises[c.Name]; known {
			c.Replicas = &promise.Replicas
		}
		ranking = append(ranking, c)
	}
	return ranking
}

// reason returns why a cluster is not selected, "" if it is.
func (r *Result) reason(i int) string {
	cluster := &r.Decision.Clusters[i]
	switch cluster.Outcome {
	case decide.Chosen:
		return ""
	case decide.Outranked:
		if cluster.Avoided {
			return "has a PreferNoSelect taint that is not tolerated, and enough other clusters are available"
		}
		return "enough other clusters rank higher"
	case decide.Skewed:
		return fmt.Sprintf("would exceed maxSkew of spec.spreadPolicy.spreadConstraints[%d]", cluster.Detail)
	case decide.NoTopology:
		return fmt.Sprintf("does not have %s, the topologyKey of spec.spreadPolicy.spreadConstraints[%d]",
			r.Policy.request.Spread[cluster.Detail].TopologyKey, cluster.Detail)
	case decide.NotMember:
		return "is in none of the cluster sets"
	case decide.Unmatched:
		return "matches none of the predicates"
	case decide.Unfit:
		return r.unfit[int32(i)]
	case decide.Tainted:
		taint := r.Fleet[i].Taints[cluster.Detail]
		value := ""
		if taint.Value != "" {
			value = "=" + taint.Value
		}
		return fmt.Sprintf("has taint %s%s, which is not tolerated or no longer tolerated", taint.Key, value)
	}
	return ""
}
