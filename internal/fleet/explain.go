package fleet

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	labelselection "k8s.io/apimachinery/pkg/selection"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
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

// Absent returns sentences about labels and claims that a placement requires and no cluster has, if it matches no cluster or spreads over
// their values, and about scores that no cluster has.
func (r *Result) Absent() (absent []string) {
	if r.Decision == nil {
		return nil
	}
	for i := 0; r.Decision.Matched == 0 && i < len(r.Policy.request.Predicates); i++ {
		p := &r.Policy.request.Predicates[i]
		absent = append(append(absent, r.absent("label", p.Labels, ofLabels)...), r.absent("claim", p.Claims, claims)...)
	}
	absent = append(absent, r.absentTopologies()...)
	for _, p := range r.Policy.request.Prioritizers {
		found := map[string]bool{}
		for _, c := range r.Fleet {
			for name, scores := range c.Scores {
				for score := range scores.Values {
					found[name+"/"+score] = true
				}
			}
		}
		if name := p.Coordinate.ResourceName + "/" + p.Coordinate.ScoreName; p.Kind == decide.KindAddOn && !found[name] {
			absent = append(absent, "no cluster has the score "+name+" of an AddOnPlacementScore"+describeFound(found))
		}
	}
	return absent
}

func claims(c *decide.Cluster) map[string]string   { return c.Claims }
func ofLabels(c *decide.Cluster) map[string]string { return c.Labels }

// absentTopologies returns sentences about the labels and claims that clusters must have to be spread, and none has.
func (r *Result) absentTopologies() (absent []string) {
	for _, term := range r.Policy.request.Spread {
		word, of := "label", ofLabels
		if term.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim {
			word, of = "claim", claims
		}
		exists, err := labels.NewRequirement(term.TopologyKey, labelselection.Exists, nil)
		if err == nil && term.WhenUnsatisfiable == clusterv1beta1.DoNotSchedule {
			absent = append(absent, r.absent(word, labels.NewSelector().Add(*exists), of)...)
		}
	}
	return absent
}

// absent returns sentences about the requirements of a selector that no cluster meets.
func (r *Result) absent(word string, selector labels.Selector, of func(*decide.Cluster) map[string]string) (absent []string) {
	if selector == nil {
		return nil
	}
	requirements, _ := selector.Requirements()
	for _, q := range requirements {
		keys, values, isMet := map[string]bool{}, map[string]bool{}, false
		for _, c := range r.Fleet {
			for key, value := range of(c) {
				keys[key] = true
				if key == q.Key() {
					values[key+"="+value] = true
				}
			}
			isMet = isMet || q.Matches(labels.Set(of(c)))
		}
		switch text := q.String(); {
		case isMet:
		case len(values) > 0:
			absent = append(absent, "no cluster has "+word+" "+text+describeFound(values))
		default:
			absent = append(absent, "no cluster has "+word+" "+text+describeFound(keys))
		}
	}
	return absent
}

// describeFound returns the end of a sentence with the names that were found.
func describeFound(found map[string]bool) string {
	if len(found) == 0 {
		return ""
	}
	return "; found " + format.Abbreviate(slices.Sorted(maps.Keys(found)), 5, ", ")
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

// Move is a change of the decisions of a placement.
type Move struct {
	// From and To are the clusters that are no longer selected and that are selected instead, sorted.
	From []string `json:"from"`
	To   []string `json:"to"`
	// Gain is by how much the sum of the totals of the selected clusters is higher.
	Gain int64 `json:"gain"`
}

// MoveTo returns the change from the clusters that are selected now, sorted, to the clusters that PreviewFromScratch selects, nil if no
// change gains anything.
func (r *Result) MoveTo(selected []string) *Move {
	if r.Decision == nil || r.KeepDecisions {
		return nil
	}
	m := &Move{From: []string{}, To: []string{}}
	for i, cluster := range r.Fleet {
		_, selectedBefore := slices.BinarySearch(selected, cluster.Name)
		selectedAfter := r.Decision.Clusters[i].Outcome == decide.Chosen
		switch {
		case selectedAfter && !selectedBefore:
			m.To, m.Gain = append(m.To, cluster.Name), m.Gain+r.Decision.Clusters[i].Total
		case selectedBefore && !selectedAfter:
			m.From, m.Gain = append(m.From, cluster.Name), m.Gain-r.Decision.Clusters[i].Total
		}
	}
	if len(m.From) == 0 || m.Gain <= 0 {
		return nil
	}
	return m
}
