package fleet

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
)

// All is the Number that selects every feasible cluster.
const All int64 = math.MaxInt64

// Request is the complete input of a decision. Decide changes nothing but Index. Clusters
// are given by their indexes in the fleet; an index out of range panics.
type Request struct {
	// Fleet has all clusters, sorted by name, without duplicates.
	Fleet []*Cluster
	// Index is the index of Fleet. If it is nil, the decision makes one, which takes about as long as the rest.
	Index *Index
	// Members are the clusters in the cluster sets of the placement, ascending,
	// without duplicates. An empty list has no clusters: a deleted set must not select
	// the entire fleet.
	Members []int32
	// Predicates are alternatives: a member must match one, if there are any. Match reports whether the expressions of a
	// predicate, given by its index, are true for a cluster. It is only called for clusters that the selector matches.
	Predicates  []Predicate
	Match       func(predicate int, c *Cluster) bool
	Tolerations []clusterv1beta1.Toleration
	// Prioritizers is the result of Resolve.
	Prioritizers []Prioritizer
	// Number is the number of clusters to choose; All for every feasible cluster. A
	// negative number has the meaning of 0.
	Number int64
	// Spread has the spread constraints in order of importance.
	Spread []clusterv1beta1.SpreadConstraintsTerm
	// Groups and GroupSize divide the decisions: GroupSize is a number of clusters or a percentage of all decisions, rounded
	// up; 0 for no maximum. SortByScore orders decisions by descending total, then by name, instead of by name.
	Groups      []NamedGroup
	GroupSize   intstr.IntOrString
	SortByScore bool
	// Chosen are the clusters in the previous decision that are still in the fleet,
	// ascending, without duplicates.
	Chosen []int32
	// Counts has the number of decisions for each cluster of the fleet, including
	// the decisions of this placement. Missing elements are 0.
	Counts []int32
	// Fits are the fits of the workload by cluster of the fleet, nil if the placement names none. Replicas is the number of its
	// replicas in one cluster. Clusters that are Unfit are not feasible, unless they are chosen already.
	Fits     []capacity.Fit
	Replicas int64
	Unfit    []bool
	// Now is the Unix time in seconds.
	Now int64
}

// Indexes returns the indexes of all clusters of a fleet of n clusters.
func Indexes(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// ClusterOutcome is the result of a decision for one cluster. Outcomes up to NoTopology are
// feasible.
type ClusterOutcome uint8

const (
	// Chosen is the outcome of a selected cluster.
	Chosen ClusterOutcome = iota
	// Outranked is the outcome of a cluster that ranks after enough other clusters.
	Outranked
	// Skewed is the outcome of a cluster that would exceed the maxSkew of a
	// DoNotSchedule constraint; Detail is the index of the constraint.
	Skewed
	// NoTopology is the outcome of a cluster without the key of a DoNotSchedule
	// constraint; Detail is the index of the constraint.
	NoTopology
	// NotMember is the outcome of a cluster that is in none of the cluster sets.
	NotMember
	// Unmatched is the outcome of a cluster that matches none of the predicates.
	Unmatched
	// Tainted is the outcome of a cluster with a taint that is not tolerated, or no
	// longer; Detail is the index of the first such taint.
	Tainted
	// Unfit is the outcome of a cluster that the replicas of the workload do not fit.
	Unfit
)

var outcomeNames = [...]string{"Chosen", "Outranked", "Skewed", "NoTopology", "NotMember", "Unmatched", "Tainted", "Unfit"}

// String returns the name of the constant.
func (o ClusterOutcome) String() string { return outcomeNames[o] }

// Feasible reports whether cluster sets, predicates and taints allow that the
// cluster is chosen. Feasible clusters have scores.
func (o ClusterOutcome) Feasible() bool { return o <= NoTopology }

// ClusterResult is the part of a decision about one cluster.
type ClusterResult struct {
	// Total is the sum of weight x score, 0 if the cluster is not feasible.
	Total   int64
	Outcome ClusterOutcome
	// Avoided is set for a cluster with a PreferNoSelect taint that is not tolerated:
	// it ranks after all feasible clusters without such a taint.
	Avoided bool
	// WasChosen is set for a cluster in the previous decision.
	WasChosen bool
	// Detail is an index that belongs to the outcome, 0 if the outcome has none.
	Detail int32
}

// Decision is the result of a request.
type Decision struct {
	// Chosen are the selected clusters, ascending, which is by name.
	Chosen []int32
	// Groups are the groups of the selected clusters, at least one.
	Groups []Group
	// Clusters has the result of each cluster of the fleet. The results and scores of single clusters are in buffers of
	// Request.Index: they are valid until the next decision with it.
	Clusters []ClusterResult
	// Members is the number of members, Matched the number of members that match a
	// predicate, Unfit the number of matching members with tolerated taints that the workload does not fit, and Feasible the
	// number of all others with tolerated taints.
	Members, Matched, Unfit, Feasible int
	// Shortfall is the number of clusters that were requested and not found, 0 if
	// Number is All.
	Shortfall int64
	// ChangesAt is the first Unix second at which the same request may have another
	// decision, because a toleration or a score of a feasible cluster ends; Forever if
	// none ends. It may exceed the range of time.Duration. The Detail of Tainted
	// clusters may change earlier.
	ChangesAt int64

	prioritizers []Prioritizer
	scores       []int8 // one column for each prioritizer
}

// Score returns the score in [-100, 100] of a feasible cluster by a prioritizer,
// given by its index in the request. Without data it is the score that is worst
// for the cluster: -100, or 100 if the weight is negative.
func (d *Decision) Score(prioritizer, cluster int) (score int64, hasData bool) {
	if s := d.scores[prioritizer*len(d.Clusters)+cluster]; s != noData {
		return int64(s), true
	}
	return d.prioritizers[prioritizer].worstScore(), false
}

// Decide returns the decision of a request. It is deterministic.
func Decide(r *Request) *Decision {
	d := &Decision{Members: len(r.Members), ChangesAt: Forever, prioritizers: r.Prioritizers}
	index := r.Index
	if index == nil {
		index = NewIndex(r.Fleet)
	}
	n := len(r.Prioritizers) * len(r.Fleet)
	if cap(index.scores) < n {
		index.scores = make([]int8, n)
	}
	d.Clusters, d.scores = index.clusters, index.scores[:n]
	for i := range d.Clusters {
		d.Clusters[i] = ClusterResult{Outcome: NotMember}
	}
	for _, i := range r.Chosen {
		d.Clusters[i].WasChosen = true
	}
	feasible := r.filter(d, index)
	d.Feasible = len(feasible)
	s := &scoring{request: r, decision: d, index: index, feasible: feasible}
	for p := range r.Prioritizers {
		prioritizer := &r.Prioritizers[p]
		s.scores = d.scores[p*len(r.Fleet):][:len(r.Fleet)]
		kinds[prioritizer.Kind].score(prioritizer, s)
		prioritizer.addToTotals(d.Clusters, feasible, s.scores)
	}
	r.choose(d, feasible)
	d.Groups = r.group(d, index)
	return d
}

// filter returns the feasible clusters, ascending. It marks them as Outranked; the
// following steps change that. The list is a buffer of the index.
func (r *Request) filter(d *Decision, index *Index) []int32 {
	feasible := index.feasible[:0]
	matches := index.matches(r)
	for _, i := range r.Members {
		result := &d.Clusters[i]
		if matches != nil && matches[i] == 0 {
			result.Outcome = Unmatched
			continue
		}
		d.Matched++
		result.Outcome = Outranked
		if index.tainted[i] {
			taint, avoided, until := r.checkTaints(r.Fleet[i], result.WasChosen)
			if taint >= 0 {
				result.Outcome, result.Detail = Tainted, taint
				continue
			}
			result.Avoided = avoided
			d.changesBy(until)
		}
		if r.Unfit != nil && r.Unfit[i] && !result.WasChosen {
			result.Outcome = Unfit
			d.Unfit++
			continue
		}
		feasible = append(feasible, i)
	}
	return feasible
}

// addToTotals adds the weighted scores to the totals of the feasible clusters.
func (p *Prioritizer) addToTotals(clusters []ClusterResult, feasible []int32, column []int8) {
	weight, worst := int64(p.Weight), p.worstScore()
	for _, i := range feasible {
		score := int64(column[i])
		if score == noData {
			score = worst
		}
		clusters[i].Total += weight * score
	}
}

// choose sets the outcomes of the feasible clusters and lists the chosen ones.
func (r *Request) choose(d *Decision, feasible []int32) {
	n := int(min(max(r.Number, 0), int64(len(feasible))))
	switch {
	case r.mustSpread(n, len(feasible)):
		r.spread(d, feasible, n)
		d.Chosen = make([]int32, 0, n)
		for _, i := range feasible {
			if d.Clusters[i].Outcome == Chosen {
				d.Chosen = append(d.Chosen, i)
			}
		}
	case n < len(feasible):
		d.Chosen = d.chooseBest(feasible, n)
	default:
		d.Chosen = slices.Clone(feasible)
		for _, i := range feasible {
			d.Clusters[i].Outcome = Chosen
		}
	}
	if r.Number != All {
		d.Shortfall = max(r.Number, 0) - int64(len(d.Chosen))
	}
}

// mustSpread reports whether the spread constraints can affect the decision:
// ScheduleAnyway constraints cannot if all feasible clusters are chosen.
func (r *Request) mustSpread(n, feasible int) bool {
	for k := range r.Spread {
		if isRequired(&r.Spread[k]) || n < feasible {
			return true
		}
	}
	return false
}

// changesBy records a time at which the decision may change.
func (d *Decision) changesBy(at int64) { d.ChangesAt = min(d.ChangesAt, at) }
