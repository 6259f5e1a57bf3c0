package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Decide decides a placement and makes the selected clusters part of the state. The
// caller must write the decisions. ok is false if the placement does not exist.
func (s *State) Decide(key types.NamespacedName, now time.Time) (r *Result, ok bool) {
	return s.decide(key, now, false)
}

// Preview decides a placement without changing the state. The result is not pending.
func (s *State) Preview(key types.NamespacedName, now time.Time) (r *Result, ok bool) {
	return s.decide(key, now, true)
}

// decide decides a placement. The lock is not held while expressions are evaluated.
func (s *State) decide(key types.NamespacedName, now time.Time, preview bool) (*Result, bool) {
	for {
		r, missing := s.tryDecide(key, now, preview)
		if missing == nil {
			return r, r != nil
		}
		if !s.evaluateMissing(key, missing, preview) {
			return r, true
		}
	}
}

// tryDecide decides a placement, nil if it does not exist. If expressions remain to be evaluated, the result is pending.
func (s *State) tryDecide(key types.NamespacedName, now time.Time, preview bool) (*Result, *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	if p == nil || p.unmanaged() {
		return nil, nil
	}
	if p.waiting != nil && p.waiting.policy == p.policy && !preview {
		return &Result{Generation: p.generation, KeepDecisions: true, Pending: true}, nil
	}
	attempt := pass{preview: preview}
	r := s.evaluate(key, p, now, &attempt)
	if len(attempt.missing) > 0 {
		return &Result{Generation: p.generation, KeepDecisions: true, Pending: true}, &waiting{p.policy, attempt.missing, attempt.cost}
	}
	r.shortenMessages()
	if !preview {
		s.commit(p, r)
		r.Decision = nil
	}
	return r, nil
}

// commit makes the selected clusters part of the state.
func (s *State) commit(p *placementState, r *Result) {
	if !r.KeepDecisions {
		var names []string
		if r.Decision != nil {
			names = make([]string, len(r.Decision.Chosen))
			for i, cluster := range r.Decision.Chosen {
				names[i] = r.Fleet[cluster].Name
			}
		}
		s.setSelected(p, names)
		if w := p.workload; w != nil {
			s.setPromises(w, r.Promises)
			w.notes = r.notes
			p.lacksRoom = r.missing > 0 || r.Decision != nil && r.Decision.Unfit > 0 &&
				(r.Decision.Shortfall > 0 || p.policy.request.Number == decide.All)
		}
		p.decidedGeneration = p.generation
	}
}

// noGroups are the groups of a result without a decision.
var noGroups = []decide.Group{{}}

// evaluate decides a placement. It must be called with the lock held. The result has no
// meaning if the pass has missing evaluations.
func (s *State) evaluate(key types.NamespacedName, p *placementState, now time.Time, attempt *pass) *Result {
	r := &Result{Generation: p.generation, Policy: p.policy, Fleet: s.fleet, Groups: noGroups}
	if p.policy != nil {
		r.Warnings = p.warnings()
	}
	if len(p.errs) > 0 {
		r.setMisconfigured(p, reasonMisconfigured, joinErrors(p.errs))
		// A PlacementDecision cannot have the label of a placement whose name is too long.
		r.KeepDecisions = r.KeepDecisions || len(key.Name) > maxNameLength
		return r
	}
	if w := p.workload; w != nil && w.err != nil {
		r.setMisconfigured(p, reasonMisconfigured, w.err.Error())
		return r
	}
	sets, unbound := s.setsOf(key.Namespace, p.policy)
	if len(sets) == 0 {
		s.evaluateWithoutSets(r, key.Namespace, p, unbound)
		return r
	}
	request := s.request(p, now)
	request.Members, request.Match = union(s.fleet, sets), s.matcher(p, attempt)
	workload := s.workloadDecisionFor(p, request.Now)
	if workload != nil {
		workload.addFits(request)
	}
	if r.Decision = s.decision; attempt.preview {
		r.Decision = new(decide.Decision)
	}
	r.Decision.Decide(request)
	if message := attempt.misconfiguration(s.maxCost); message != "" {
		r.Decision = nil
		r.setMisconfigured(p, reasonMisconfigured, message)
		return r
	}
	if r.Decision.Matched == 0 && r.Decision.Members > 0 && p.wouldEvictAll() {
		r.setMisconfigured(p, reasonMatchesNothing, fmt.Sprintf(
			"spec.predicates: the changed spec matches no cluster of the sets, which have %s; "+
				"the existing decisions are kept (set numberOfClusters: 0 to select no cluster)", format.Of(r.Decision.Members, "cluster")))
		return r
	}
	p.setFeasible(r.Decision)
	r.warnOfAmounts()
	if workload != nil {
		workload.addPromises(r, request, attempt.preview)
	}
	r.setDecision(p.policy.request.Number, unbound, attempt.failure(false))
	return r
}

// warnings returns the warnings about the policy of a placement.
func (p *placementState) warnings() []string {
	warnings := slices.Clip(p.policy.warnings) // the slice is shared
	isFit := func(p decide.Prioritizer) bool { return strings.HasPrefix(string(p.Kind), "Fit") }
	if p.workload == nil && slices.ContainsFunc(p.policy.request.Prioritizers, isFit) {
		warnings = append(warnings, "FitReplicas, FitWait and FitCost have no data without spec.workload or its annotation")
	}
	return warnings
}

// misconfiguration returns why the expressions of a placement cannot be used, "" if
// they can. If they cost too much, it drops the missing evaluations, which are not needed.
func (a *pass) misconfiguration(maxCost int64) string {
	if a.cost > maxCost {
		a.missing = nil
		return fmt.Sprintf("spec.predicates: the CEL expressions cost more than %d for all clusters: simplify them", maxCost)
	}
	if broken := a.failure(true); broken != nil {
		return broken.String()
	}
	return ""
}

// wouldEvictAll reports whether a decision without clusters would remove clusters only
// because the spec was changed to a spec that matches nothing.
func (p *placementState) wouldEvictAll() bool {
	return len(p.selected) > 0 && p.decidedGeneration != 0 && p.decidedGeneration != p.generation && p.policy.request.Number != 0
}

// evaluateWithoutSets sets the result of a placement without cluster sets.
func (s *State) evaluateWithoutSets(r *Result, namespace string, p *placementState, unbound []string) {
	bound := slices.Sorted(maps.Keys(s.bindings[namespace]))
	message := s.describeUnbound(namespace, unbound)
	switch {
	case len(unbound) == 0 && len(bound) == 0:
		r.setConditions(false, reasonNoBindings,
			fmt.Sprintf("no cluster set is bound to namespace %s: create a ManagedClusterSetBinding in it", namespace))
	case len(unbound) == 0:
		names := format.Abbreviate(bound, maxSetNames, ", ")
		r.setConditions(false, reasonNoBindings,
			fmt.Sprintf("the cluster sets that are bound to namespace %s do not exist: %s", namespace, names))
	case p.wouldEvictAll():
		r.setMisconfigured(p, reasonMatchesNothing, message+"; the existing decisions are kept")
	case len(s.boundSets(namespace)) == 0:
		r.setConditions(false, reasonNoBindings, message)
	default:
		r.setConditions(false, reasonNoIntersection, message)
	}
}

// describeUnbound returns why a placement cannot use the cluster sets with the given names. It does not say
// whether an unbound set exists: creating the set does not queue the placement.
func (s *State) describeUnbound(namespace string, names []string) string {
	var missing, unbound []string
	for _, name := range names {
		if s.bindings[namespace][name] {
			missing = append(missing, name)
		} else {
			unbound = append(unbound, name)
		}
	}
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("spec.clusterSets: %s: no such ManagedClusterSet", format.Abbreviate(missing, maxSetNames, ", ")))
	}
	if len(unbound) > 0 {
		text := fmt.Sprintf("spec.clusterSets: %s: not bound to namespace %s", format.Abbreviate(unbound, maxSetNames, ", "), namespace)
		if bound := slices.Sorted(maps.Keys(s.bindings[namespace])); len(bound) > 0 {
			text += ", which is bound to " + format.Abbreviate(bound, maxSetNames, ", ")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// request returns the request for a placement, without members and the function Match.
func (s *State) request(p *placementState, now time.Time) *decide.Request {
	r := p.policy.request
	r.Fleet, r.Counts, r.Now = s.fleet, s.counts, now.Unix()
	r.Chosen = make([]int32, 0, len(p.selected))
	for _, name := range p.selected {
		if i, known := s.indexOf(name); known {
			r.Chosen = append(r.Chosen, int32(i))
		}
	}
	return &r
}

// setFeasible sets the feasible clusters to the feasible clusters of a decision.
func (p *placementState) setFeasible(d *decide.Decision) {
	if words := (len(d.Clusters) + 63) / 64; len(p.feasible) != words {
		p.feasible = make([]uint64, words)
	}
	clear(p.feasible)
	for i := range d.Clusters {
		if d.Clusters[i].Outcome.Feasible() {
			p.feasible[i/64] |= 1 << (i % 64)
		}
	}
}
