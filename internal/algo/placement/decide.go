package placement

import (
	"fmt"
	"math"
)

// All is the Number that chooses every feasible cluster.
const All int64 = math.MaxInt64

// Request is what a placement asks for, and all that its decision depends on.
// Nothing of it is changed. Clusters are named by their indexes in the fleet;
// an index that is not in it is a mistake of the caller and panics.
type Request struct {
	// Fleet is all clusters, sorted by name, without duplicates.
	Fleet []*Cluster
	// Members are the clusters of the bound cluster sets that the placement asks
	// for, ascending, without duplicates. None means none: a set that is gone must
	// not turn into the whole fleet. Everyone lists all.
	Members []int32
	// Predicates of which a member has to match one, if there are any.
	Predicates  []Predicate
	Tolerations []Toleration
	// Prioritizers as Resolve returns them, with the scores of AddOns filled in.
	Prioritizers []Prioritizer
	// Number of clusters to choose; All for every feasible one. Negative counts
	// as 0.
	Number int64
	// Spread in order of importance.
	Spread []SpreadConstraint
	// Groups and GroupSize divide the decisions. SortByScore fills groups by
	// descending total, equal ones by name, instead of by name alone.
	Groups      []NamedGroup
	GroupSize   Size
	SortByScore bool
	// Chosen are the clusters of the placement's decisions so far that are still
	// in the fleet, ascending, without duplicates: the Chosen of the last Decision.
	Chosen []int32
	// Counts are how many decisions each cluster of the fleet has, those of this
	// placement included; where it is shorter than the fleet, 0.
	Counts []int32
	// Now in Unix seconds.
	Now int64
}

// Everyone returns the indexes of a fleet of n clusters.
func Everyone(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// Outcome is what became of a cluster. Those up to NoTopology are feasible.
type Outcome uint8

const (
	// Chosen: it is a decision.
	Chosen Outcome = iota
	// Outranked: it is feasible, but others are better and enough.
	Outranked
	// Skewed: it is feasible, but with the decisions as they are, choosing it too
	// would exceed a DoNotSchedule constraint; Detail is its index.
	Skewed
	// NoTopology: it is feasible, but lacks the key of a DoNotSchedule constraint;
	// Detail is its index.
	NoTopology
	// Outside: it is not in a cluster set that counts.
	Outside
	// Unmatched: it matches none of the predicates.
	Unmatched
	// Tainted: it has a taint that is not tolerated, or no longer; Detail is the
	// index of the first.
	Tainted
)

var outcomeNames = [...]string{"Chosen", "Outranked", "Skewed", "NoTopology", "Outside", "Unmatched", "Tainted"}

// String returns the name of the constant.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Feasible reports whether the cluster could be chosen as far as sets,
// predicates and taints go. Feasible clusters have scores.
func (o Outcome) Feasible() bool { return o <= NoTopology }

// Result is what became of one cluster.
type Result struct {
	// Total is the sum of weight x score, 0 where it is not feasible.
	Total   int64
	Outcome Outcome
	// Avoided: it has a PreferNoSelect taint that is not tolerated, and ranks
	// after all feasible ones without.
	Avoided bool
	// Before: it was a decision of the placement already.
	Before bool
	// Detail of the outcome, an index; 0 where the outcome has none.
	Detail int32
}

// Decision is the answer to a request.
type Decision struct {
	// Chosen clusters, ascending, which is by name.
	Chosen []int32
	// Groups that they divide into, at least one.
	Groups []Group
	// Clusters of the fleet, each by its index.
	Clusters []Result
	// Members, and how many of them match a predicate, and of those how many are
	// feasible: Matched - Feasible are ruled out by taints.
	Members, Matched, Feasible int
	// Short is how many clusters were asked for and not found; 0 if all were asked
	// for.
	Short int64
	// ChangesAt is the earliest second at which the answer to the same request may
	// be another, because a toleration or a score of a feasible cluster ends;
	// Forever if there is none. It can be further away than a time.Duration holds.
	// Which of several taints rules out a cluster may change before.
	ChangesAt int64

	prioritizers []Prioritizer
	scores       []int8 // one column for each prioritizer
}

// Score returns what a prioritizer, by its index in the request, gives to a
// feasible cluster, in [-100, 100], so that the total is the sum of weight x
// score. Without data it is the score that is worst for the cluster: -100, or
// 100 if the weight is negative.
func (d *Decision) Score(prioritizer, cluster int) (score int64, hasData bool) {
	if s := d.scores[prioritizer*len(d.Clusters)+cluster]; s != noData {
		return int64(s), true
	}
	return d.prioritizers[prioritizer].worst(), false
}

// Decide returns the decision that a request leads to. The same request always
// leads to the same decision.
func Decide(r *Request) *Decision {
	d := &Decision{
		Clusters:     make([]Result, len(r.Fleet)),
		Members:      len(r.Members),
		ChangesAt:    Forever,
		prioritizers: r.Prioritizers,
		scores:       make([]int8, len(r.Prioritizers)*len(r.Fleet)),
	}
	for i := range d.Clusters {
		d.Clusters[i].Outcome = Outside
	}
	for _, i := range r.Chosen {
		d.Clusters[i].Before = true
	}
	feasible := r.filter(d)
	d.Feasible = len(feasible)
	for p := range r.Prioritizers {
		prioritizer := &r.Prioritizers[p]
		column := d.scores[p*len(r.Fleet):][:len(r.Fleet)]
		prioritizer.score(r, d, feasible, column)
		prioritizer.addTo(d, feasible, column)
	}
	r.choose(d, feasible)
	d.Groups = r.group(d)
	return d
}

// filter returns the feasible clusters, ascending, and marks them as outranked
// until something better is known.
func (r *Request) filter(d *Decision) []int32 {
	feasible := make([]int32, 0, len(r.Members))
	for _, i := range r.Members {
		result := &d.Clusters[i]
		if !r.qualifies(i) {
			result.Outcome = Unmatched
			continue
		}
		d.Matched++
		result.Outcome = Outranked
		if cluster := r.Fleet[i]; len(cluster.Taints) > 0 {
			by, avoided, until := r.repelled(cluster, result.Before)
			if by >= 0 {
				result.Outcome, result.Detail = Tainted, by
				continue
			}
			result.Avoided = avoided
			d.expires(until)
		}
		feasible = append(feasible, i)
	}
	return feasible
}

// addTo adds the weighted scores to the totals.
func (p *Prioritizer) addTo(d *Decision, feasible []int32, column []int8) {
	weight, worst := int64(p.Weight), p.worst()
	for _, i := range feasible {
		score := int64(column[i])
		if score == noData {
			score = worst
		}
		d.Clusters[i].Total += weight * score
	}
}

// choose marks and lists the clusters that are decided for.
func (r *Request) choose(d *Decision, feasible []int32) {
	n := int(min(max(r.Number, 0), int64(len(feasible))))
	switch {
	case r.mustSpread(n, len(feasible)):
		r.spread(d, feasible, n)
	case n < len(feasible):
		d.best(feasible, n)
	default:
		for _, i := range feasible {
			d.Clusters[i].Outcome = Chosen
		}
	}
	d.Chosen = make([]int32, 0, n)
	for _, i := range feasible {
		if d.Clusters[i].Outcome == Chosen {
			d.Chosen = append(d.Chosen, i)
		}
	}
	if r.Number != All {
		d.Short = max(r.Number, 0) - int64(len(d.Chosen))
	}
}

// mustSpread reports whether the spread constraints have a say: preferences have
// none where all are chosen anyway.
func (r *Request) mustSpread(n, feasible int) bool {
	for k := range r.Spread {
		if r.Spread[k].DoNotSchedule || n < feasible {
			return true
		}
	}
	return false
}

// expires notes an instant at which the decision may change.
func (d *Decision) expires(at int64) { d.ChangesAt = min(d.ChangesAt, at) }
