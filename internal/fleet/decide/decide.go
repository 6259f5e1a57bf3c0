package decide

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// All is the Number that selects every feasible cluster.
const All int64 = math.MaxInt64

// Request is the complete input of a decision. Clusters are given by their indexes in the fleet; an index out of range panics.
type Request struct {
	// Fleet has all clusters, sorted by name, without duplicates.
	Fleet []*Cluster
	// Members are the clusters in the cluster sets of the placement, ascending,
	// without duplicates. An empty list has no clusters: a deleted set must not select
	// the entire fleet.
	Members []int32
	// Predicates are alternatives: a member must match one, if there are any. Match reports whether the expressions of a
	// predicate, given by its index, are true for a cluster. It is only called for clusters that the selector matches.
	Predicates  []Predicate
	Match       func(predicate int, c *Cluster) bool
	Tolerations []clusterv1beta1.Toleration
	// Prioritizers is the result of EnabledPrioritizers.
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
	Fits     []fit.Fit
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
	// Clusters has the result of each cluster of the fleet.
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
	// feasible are the indexes of the feasible clusters, others the number of decisions of other placements by cluster.
	feasible, others []int32
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
func Decide(r *Request) *Decision { return new(Decision).Decide(r) }

// Decide replaces the decision by the decision of a request. It uses the memory again, which would be most of
// the allocations of a placement controller with many clusters.
func (d *Decision) Decide(r *Request) *Decision {
	n := len(r.Fleet)
	*d = Decision{
		Members: len(r.Members), ChangesAt: Forever, Clusters: slices.Grow(d.Clusters[:0], n)[:n],
		prioritizers: r.Prioritizers, scores: slices.Grow(d.scores[:0], len(r.Prioritizers)*n)[:len(r.Prioritizers)*n],
		feasible: slices.Grow(d.feasible[:0], len(r.Members)), others: slices.Grow(d.others[:0], n)[:n],
	}
	for i := range d.Clusters {
		d.Clusters[i] = ClusterResult{Outcome: NotMember}
	}
	for _, i := range r.Chosen {
		d.Clusters[i].WasChosen = true
	}
	s := &scoring{request: r, decision: d, feasible: r.filterMembers(d)}
	d.Feasible = len(s.feasible)
	for p := range r.Prioritizers {
		prioritizer := &r.Prioritizers[p]
		s.scores = d.scores[p*n:][:n]
		kinds[prioritizer.Kind].score(prioritizer, s)
		prioritizer.addToTotals(d.Clusters, s.feasible, s.scores)
	}
	r.chooseClusters(d, s.feasible)
	d.Groups = r.groupsOf(d)
	return d
}

// filterMembers returns the feasible clusters, ascending. It marks them as Outranked; the
// following steps change that.
func (r *Request) filterMembers(d *Decision) (feasible []int32) {
	feasible = d.feasible
	for _, i := range r.Members {
		result := &d.Clusters[i]
		if !r.isMatched(r.Fleet[i]) {
			result.Outcome = Unmatched
			continue
		}
		d.Matched++
		result.Outcome = Outranked
		taint, avoided, until := r.checkTaints(r.Fleet[i], result.WasChosen)
		if taint >= 0 {
			result.Outcome, result.Detail = Tainted, taint
			continue
		}
		result.Avoided = avoided
		d.limitTo(until)
		if r.Unfit != nil && r.Unfit[i] && !result.WasChosen {
			result.Outcome = Unfit
			d.Unfit++
			continue
		}
		feasible = append(feasible, i)
	}
	return feasible
}

// isMatched reports whether a cluster matches a predicate, if there are any.
func (r *Request) isMatched(c *Cluster) bool {
	for p := range r.Predicates {
		predicate := &r.Predicates[p]
		if predicate.Matches(c) && (!predicate.HasExpressions || r.Match(p, c)) {
			return true
		}
	}
	return len(r.Predicates) == 0
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

// chooseClusters sets the outcomes of the feasible clusters and lists the chosen ones.
func (r *Request) chooseClusters(d *Decision, feasible []int32) {
	n := int(min(max(r.Number, 0), int64(len(feasible))))
	d.Chosen = make([]int32, 0, n)
	if r.mustSpread(n, len(feasible)) {
		r.spreadClusters(d, feasible, n)
		for _, i := range feasible {
			if d.Clusters[i].Outcome == Chosen {
				d.Chosen = append(d.Chosen, i)
			}
		}
	} else {
		best := feasible
		if n < len(feasible) {
			best = d.bestOf(feasible, n)
		}
		for _, i := range best {
			d.Clusters[i].Outcome = Chosen
		}
		d.Chosen = append(d.Chosen, best...)
		slices.Sort(d.Chosen)
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

// limitTo records a time at which the decision may change.
func (d *Decision) limitTo(at int64) { d.ChangesAt = min(d.ChangesAt, at) }

// bestOf returns the n best of feasible clusters, the best first.
func (d *Decision) bestOf(feasible []int32, n int) []int32 {
	best := make([]int32, 0, n+1)
	for _, i := range feasible {
		if len(best) < n || n > 0 && d.Compare(i, best[n-1]) < 0 {
			at, _ := slices.BinarySearchFunc(best, i, d.Compare)
			best = slices.Insert(best, at, i)
			best = best[:min(len(best), n)]
		}
	}
	return best
}

// ranked returns feasible clusters, the best first.
func (d *Decision) ranked(feasible []int32) []int32 {
	out := slices.Clone(feasible)
	slices.SortFunc(out, d.Compare)
	return out
}

// Compare orders two feasible clusters, given by their indexes in the fleet, the
// better one first: clusters without a PreferNoSelect taint that is not tolerated,
// then higher totals, then clusters that were chosen before, then by name. It is
// only 0 for the same cluster.
func (d *Decision) Compare(a, b int32) int {
	x, y := &d.Clusters[a], &d.Clusters[b]
	switch {
	case x.Total != y.Total && x.Avoided == y.Avoided:
		return cmp.Compare(y.Total, x.Total)
	case x.Avoided != y.Avoided && y.Avoided, x.Avoided == y.Avoided && x.WasChosen && !y.WasChosen:
		return -1
	case x.Avoided != y.Avoided, !x.WasChosen && y.WasChosen:
		return 1
	}
	return cmp.Compare(a, b) // the fleet is sorted by name
}

// Missing is the amount of a resource that a cluster does not report. All negative
// amounts have this meaning.
const Missing int64 = -1

// Amounts are amounts by resource: CPU in millicores and memory in bytes.
type Amounts [resources.Memory + 1]int64

// Cluster has the fields of a managed cluster that decisions depend on. It is
// shared by all placements and must not be changed.
type Cluster struct {
	// Name is unique in the fleet.
	Name string
	// Labels are the labels of the object, and Claims the claims in its status by name.
	Labels, Claims map[string]string
	// Taints prevent that placements select the cluster, unless they tolerate them. An unknown effect excludes the cluster as NoSelect
	// does. Tolerations with a limit end relative to the time at which a taint was added; without that time they have ended.
	Taints []clusterv1.Taint
	// Allocatable is the part of Capacity that pods may use, of CPU and memory. It may exceed Capacity
	// if the cluster reports wrong amounts.
	Allocatable, Capacity Amounts
	// Ignored are the fields of the object with amounts that are not credible.
	Ignored []string
	// Scores are the AddOnPlacementScores of the cluster by name.
	Scores map[string]*AddOnScores
}

// AddOnScores has the values of an AddOnPlacementScore by name, which are valid until a Unix time in seconds.
type AddOnScores struct {
	Values map[string]int32
	Until  int64
}

// Selector matches clusters by labels and claims. A nil part matches all clusters.
type Selector struct {
	Labels, Claims labels.Selector
}

// Matches reports whether the selector matches a cluster.
func (s *Selector) Matches(c *Cluster) bool {
	return (s.Labels == nil || s.Labels.Matches(labels.Set(c.Labels))) && (s.Claims == nil || s.Claims.Matches(labels.Set(c.Claims)))
}

// Predicate is a condition on clusters: a selector and, because expressions are slow, expressions on the clusters that
// the selector matches.
type Predicate struct {
	Selector
	HasExpressions bool
}
