package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
)

// Reasons of conditions. They are those of Open Cluster Management, except
// MatchesNothing.
const (
	reasonConfigured      = "Succeedconfigured"
	reasonMisconfigured   = "Misconfigured"
	reasonMatchesNothing  = "MatchesNothing"
	reasonAllScheduled    = "AllDecisionsScheduled"
	reasonNotAllScheduled = "NotAllDecisionsScheduled"
	reasonNoBindings      = "NoManagedClusterSetBindings"
	reasonNoIntersection  = "NoIntersection"
	reasonSetsEmpty       = "AllManagedClusterSetsEmpty"
	reasonNoneMatched     = "NoManagedClusterMatched"
)

// Result is the result of deciding a placement.
type Result struct {
	Generation int64
	// Policy and Fleet are the input of Decision, which is nil if nothing could be
	// decided.
	Policy   *Policy
	Fleet    []*placement.Cluster
	Decision *placement.Decision
	// KeepDecisions is set if the existing decisions must not be changed: Groups has
	// no meaning then.
	KeepDecisions bool
	// Groups are the selected clusters in groups, at least one.
	Groups []Group
	// Conditions are conditions without times. Conditions of other types do not change.
	Conditions []metav1.Condition
	// RequeueAt is the time at which the result can change although no object
	// changes, zero if it cannot.
	RequeueAt time.Time
}

// Group is a group of the decisions.
type Group struct {
	Name     string
	Clusters []Choice
}

// Choice is a selected cluster and its total score in the next decision: it includes
// the contribution of prioritizer Steady, so that a new decision is not written again
// by the next one.
type Choice struct {
	Name  string
	Score int64
}

// Selected returns the number of selected clusters.
func (r *Result) Selected() (n int) {
	for _, group := range r.Groups {
		n += len(group.Clusters)
	}
	return n
}

// Decide decides a placement and makes the selected clusters part of the state. The
// caller must write the decisions. ok is false if the placement does not exist.
func (s *State) Decide(key types.NamespacedName, now time.Time) (r *Result, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	if p == nil || p.unmanaged() {
		return nil, false
	}
	r = s.evaluate(key, p, now)
	if r.KeepDecisions {
		return r, true
	}
	var names []string
	if r.Decision != nil {
		for _, i := range r.Decision.Chosen {
			names = append(names, r.Fleet[i].Name)
		}
	}
	s.setSelected(p, names)
	p.decidedGeneration = p.generation
	return r, true
}

// Preview decides a placement without changing the state.
func (s *State) Preview(key types.NamespacedName, now time.Time) (r *Result, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	if p == nil || p.unmanaged() {
		return nil, false
	}
	return s.evaluate(key, p, now), true
}

// evaluate decides a placement. It must be called with the lock held.
func (s *State) evaluate(key types.NamespacedName, p *placementState, now time.Time) *Result {
	r := &Result{Generation: p.generation, Policy: p.policy, Fleet: s.fleet, Groups: []Group{{}}}
	if len(p.errs) > 0 {
		r.setMisconfigured(reasonMisconfigured, joinErrors(p.errs))
		return r
	}
	sets, unbound := s.setsOf(key.Namespace, p.policy)
	if len(sets) == 0 {
		s.evaluateWithoutSets(r, key.Namespace, p, unbound)
		return r
	}
	request := p.policy.request(s, p, now)
	request.Members = union(s.fleet, sets)
	var expressionErr error
	request.Predicates = s.predicates(p, &expressionErr)
	r.Decision = placement.Decide(request)
	if expressionErr != nil {
		r.Decision = nil
		r.setMisconfigured(reasonMisconfigured, "spec.predicates: "+expressionErr.Error())
		return r
	}
	if r.Decision.Matched == 0 && r.Decision.Members > 0 && p.wouldEvictAll() {
		r.setMisconfigured(reasonMatchesNothing, fmt.Sprintf(
			"spec.predicates: the changed spec matches none of the %d clusters of the sets; "+
				"the existing decisions are kept (set numberOfClusters: 0 to select no cluster)", r.Decision.Members))
		return r
	}
	p.setFeasible(r.Decision)
	r.setDecision(p.policy, unbound)
	return r
}

// wouldEvictAll reports whether a decision without clusters would remove clusters only
// because the spec was changed to one that matches nothing.
func (p *placementState) wouldEvictAll() bool {
	return len(p.selected) > 0 && p.decidedGeneration != 0 && p.decidedGeneration != p.generation && p.policy.number != 0
}

// evaluateWithoutSets sets the result of a placement without cluster sets.
func (s *State) evaluateWithoutSets(r *Result, namespace string, p *placementState, unbound []string) {
	if len(unbound) == 0 {
		r.setConditions(false, reasonNoBindings,
			fmt.Sprintf("no cluster set is bound to namespace %s: create a ManagedClusterSetBinding in it", namespace))
		return
	}
	message := fmt.Sprintf("spec.clusterSets: %s: not bound to namespace %s", strings.Join(unbound, ", "), namespace)
	switch {
	case p.wouldEvictAll():
		r.setMisconfigured(reasonMatchesNothing, message+"; the existing decisions are kept")
	case len(s.bindings[namespace]) == 0:
		r.setConditions(false, reasonNoBindings, message)
	default:
		r.setConditions(false, reasonNoIntersection, message)
	}
}

// request returns the request of the policy for a placement, without members and
// predicates.
func (p *Policy) request(s *State, state *placementState, now time.Time) *placement.Request {
	r := &placement.Request{
		Fleet: s.fleet, Tolerations: p.tolerations, Prioritizers: slices.Clone(p.prioritizers), Number: p.number,
		Spread: p.spread, Groups: p.groups, GroupSize: p.groupSize, SortByScore: p.sortByScore, Counts: s.counts, Now: now.Unix(),
	}
	for _, name := range state.selected {
		if i, known := s.indexOf(name); known {
			r.Chosen = append(r.Chosen, int32(i))
		}
	}
	for i := range r.Prioritizers {
		if r.Prioritizers[i].Kind == placement.AddOn {
			r.Prioritizers[i].Scores = s.addOnScores(r.Prioritizers[i].Coordinate)
		}
	}
	return r
}

// addOnScores returns the scores of the clusters of the fleet at a coordinate.
func (s *State) addOnScores(c placement.Coordinate) (scores []placement.AddOnScore) {
	for i, cluster := range s.fleet {
		if score := s.entries[cluster.Name].scores[c.ResourceName]; score != nil {
			if value, ok := score.values[c.ScoreName]; ok {
				scores = append(scores, placement.AddOnScore{Cluster: int32(i), Value: value, Until: score.until})
			}
		}
	}
	return scores
}

// predicates returns the predicates of a placement. Expressions are evaluated for
// clusters that the selectors match; results are kept until the cluster changes. err
// is set if an expression fails.
func (s *State) predicates(p *placementState, err *error) (out []placement.Predicate) {
	for i := range p.policy.predicates {
		predicate := &p.policy.predicates[i]
		converted := placement.Predicate{Selector: predicate.selector}
		if len(predicate.expressions) > 0 {
			if len(p.memos[i]) > 2*len(s.fleet) || p.memos[i] == nil {
				p.memos[i] = make(map[*placement.Cluster]bool, len(s.fleet))
			}
			memo := p.memos[i]
			converted.Match = func(index int) bool {
				cluster := s.fleet[index]
				matches, known := memo[cluster]
				if !known && *err == nil {
					// A failure is not kept: the next decision must fail, too.
					if matches, *err = s.matchesAll(predicate.expressions, cluster.Name); *err == nil {
						memo[cluster] = matches
					}
				}
				return matches
			}
		}
		out = append(out, converted)
	}
	return out
}

// matchesAll reports whether all expressions match a cluster.
func (s *State) matchesAll(expressions []*expression, name string) (bool, error) {
	e := s.entries[name]
	if e.variables == nil {
		variables, err := variablesOf(e.object, e.scores)
		if err != nil {
			return false, err
		}
		e.variables = variables
	}
	for _, expression := range expressions {
		if matches, err := expression.matches(e.variables); err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

// setFeasible sets the feasible clusters to those of a decision.
func (p *placementState) setFeasible(d *placement.Decision) {
	p.feasible = make([]uint64, (len(d.Clusters)+63)/64)
	for i := range d.Clusters {
		if d.Clusters[i].Outcome.Feasible() {
			p.feasible[i/64] |= 1 << (i % 64)
		}
	}
}

// setDecision sets groups, time and conditions from the decision.
func (r *Result) setDecision(policy *Policy, unbound []string) {
	d := r.Decision
	r.Groups = nil
	for _, group := range d.Groups {
		out := Group{Name: group.Name}
		for _, i := range group.Clusters {
			score := d.Clusters[i].Total
			if !d.Clusters[i].WasChosen {
				score += policy.steadyBonus()
			}
			out.Clusters = append(out.Clusters, Choice{r.Fleet[i].Name, score})
		}
		r.Groups = append(r.Groups, out)
	}
	// Later times exceed the range of a Duration.
	if d.ChangesAt < math.MaxInt32*int64(100) {
		r.RequeueAt = time.Unix(d.ChangesAt, 0)
	}
	counts := fmt.Sprintf("clusters in the sets: %d, matching the predicates: %d, with tolerated taints: %d", d.Members, d.Matched,
		d.Feasible)
	if len(unbound) > 0 {
		counts += "; sets not bound to the namespace: " + strings.Join(unbound, ", ")
	}
	switch {
	case d.Members == 0:
		r.setConditions(false, reasonSetsEmpty, "the cluster sets have no clusters: label clusters with the set, or check its selector")
	case d.Feasible == 0 && policy.number != 0:
		r.setConditions(false, reasonNoneMatched, "no cluster is feasible ("+counts+")")
	case d.Shortfall > 0:
		r.setConditions(false, reasonNotAllScheduled, fmt.Sprintf("selected %d of %d clusters (%s)", len(d.Chosen), policy.number, counts))
	default:
		r.setConditions(true, reasonAllScheduled, fmt.Sprintf("selected %d clusters (%s)", len(d.Chosen), counts))
	}
}

// setConditions sets the conditions of a valid placement.
func (r *Result) setConditions(satisfied bool, reason, message string) {
	status := metav1.ConditionFalse
	if satisfied {
		status = metav1.ConditionTrue
	}
	r.Conditions = []metav1.Condition{
		{
			Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionFalse,
			Reason: reasonConfigured, Message: "the spec is valid", ObservedGeneration: r.Generation,
		},
		{
			Type: clusterv1beta1.PlacementConditionSatisfied, Status: status, Reason: reason, Message: message,
			ObservedGeneration: r.Generation,
		},
	}
}

// setMisconfigured sets the condition of an invalid placement. Decisions and the
// condition PlacementSatisfied do not change.
func (r *Result) setMisconfigured(reason, message string) {
	r.KeepDecisions = true
	r.Conditions = []metav1.Condition{{
		Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue,
		Reason: reason, Message: message, ObservedGeneration: r.Generation,
	}}
}
