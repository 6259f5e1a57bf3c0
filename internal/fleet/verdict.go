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

// Reasons of conditions, as clients of placements know them; MatchesNothing is
// our own.
const (
	ReasonConfigured      = "Succeedconfigured"
	ReasonMisconfigured   = "Misconfigured"
	ReasonMatchesNothing  = "MatchesNothing"
	ReasonAllScheduled    = "AllDecisionsScheduled"
	ReasonNotAllScheduled = "NotAllDecisionsScheduled"
	ReasonNoBindings      = "NoManagedClusterSetBindings"
	ReasonNoIntersection  = "NoIntersection"
	ReasonSetsEmpty       = "AllManagedClusterSetsEmpty"
	ReasonNoneMatched     = "NoManagedClusterMatched"
)

// Verdict is what comes of a placement.
type Verdict struct {
	Generation int64
	// Policy and Fleet are what was decided over, Decision how; nil if nothing
	// could be decided.
	Policy   *Policy
	Fleet    []*placement.Cluster
	Decision *placement.Decision
	// Keep: what the placement has it keeps; Groups say nothing.
	Keep bool
	// Groups are the chosen clusters, in groups of which there is at least one.
	Groups []Group
	// Conditions without times; the ones that are not here stay as they were.
	Conditions []metav1.Condition
	// RequeueAt is when the answer may be another though nothing has changed; zero
	// if that is never.
	RequeueAt time.Time
}

// Group is a part of the decisions.
type Group struct {
	Name     string
	Clusters []Choice
}

// Choice is a chosen cluster and its total score, as it is once it is chosen: with
// what Steady gives it from then on. Else every new decision would be written
// twice.
type Choice struct {
	Name  string
	Score int64
}

// Chosen returns how many clusters the verdict chooses.
func (v *Verdict) Chosen() (n int) {
	for _, group := range v.Groups {
		n += len(group.Clusters)
	}
	return n
}

// Decide returns the verdict on a placement at a time; ok is false if there is no
// such placement. From then on the placement has the clusters chosen, and others
// are balanced against them; they are to be written by the caller.
func (s *State) Decide(key types.NamespacedName, now time.Time) (v *Verdict, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	if p == nil || p.foreign() {
		return nil, false
	}
	v = s.judge(key, p, now)
	if !v.Keep {
		var names []string
		for _, i := range v.chosen() {
			names = append(names, v.Fleet[i].Name)
		}
		s.choose(p, names)
		p.good = p.generation
	}
	return v, true
}

// Preview returns the verdict on a placement at a time and changes nothing.
func (s *State) Preview(key types.NamespacedName, now time.Time) (v *Verdict, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	if p == nil || p.foreign() {
		return nil, false
	}
	return s.judge(key, p, now), true
}

// chosen returns the indexes of the clusters chosen.
func (v *Verdict) chosen() []int32 {
	if v.Decision == nil {
		return nil
	}
	return v.Decision.Chosen
}

// judge decides. The caller holds the lock.
func (s *State) judge(key types.NamespacedName, p *placed, now time.Time) *Verdict {
	v := &Verdict{Generation: p.generation, Policy: p.policy, Fleet: s.fleet, Groups: []Group{{}}}
	if len(p.errs) > 0 {
		v.misconfigured(ReasonMisconfigured, problems(p.errs))
		return v
	}
	sets, unbound := s.reachable(key.Namespace, p.policy)
	if len(sets) == 0 {
		s.withoutSets(v, key.Namespace, p, unbound)
		return v
	}
	request := p.policy.request(s, p, now)
	request.Members = union(s.fleet, sets)
	failed := s.ask(request, p)
	v.Decision = placement.Decide(request)
	if *failed != nil {
		v.Decision = nil
		v.misconfigured(ReasonMisconfigured, "spec.predicates: "+(*failed).Error())
		return v
	}
	if v.Decision.Matched == 0 && v.Decision.Members > 0 && p.hurts() {
		v.misconfigured(ReasonMatchesNothing, fmt.Sprintf(
			"spec.predicates: since the spec was changed they match none of the %d clusters of the sets; the decisions made before are kept (numberOfClusters: 0 chooses none)", v.Decision.Members))
		return v
	}
	p.remember(v.Decision)
	v.fill(p.policy, unbound)
	return v
}

// hurts reports whether choosing nothing would take clusters away because the
// spec was changed, and not because clusters were, nor because none are wanted.
func (p *placed) hurts() bool {
	return len(p.chosen) > 0 && p.good != 0 && p.good != p.generation && p.policy.number != 0
}

// withoutSets fills the verdict where no set is to be had.
func (s *State) withoutSets(v *Verdict, namespace string, p *placed, unbound []string) {
	if len(unbound) == 0 {
		v.conditions(false, ReasonNoBindings, fmt.Sprintf("no cluster set is bound to namespace %s: create a ManagedClusterSetBinding there", namespace))
		return
	}
	message := fmt.Sprintf("spec.clusterSets: %s: not bound to namespace %s", strings.Join(unbound, ", "), namespace)
	if p.hurts() {
		v.misconfigured(ReasonMatchesNothing, message+"; the decisions made before are kept")
		return
	}
	if len(s.bindings[namespace]) == 0 {
		v.conditions(false, ReasonNoBindings, message)
		return
	}
	v.conditions(false, ReasonNoIntersection, message)
}

// request returns what the policy asks for, without members.
func (p *Policy) request(s *State, is *placed, now time.Time) *placement.Request {
	r := &placement.Request{
		Fleet: s.fleet, Tolerations: p.tolerations, Prioritizers: slices.Clone(p.prioritizers), Number: p.number,
		Spread: p.spread, Groups: p.groups, GroupSize: p.groupSize, SortByScore: p.sortByScore, Counts: s.counts, Now: now.Unix(),
	}
	for _, name := range is.chosen {
		if i, known := s.find(name); known {
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

// addOnScores returns what is said of the clusters of the fleet.
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

// ask lets the expressions of the predicates be asked for the clusters that the
// selectors match. What they say of a cluster is remembered as long as it is the
// same. failed is set if one is too much work.
func (s *State) ask(r *placement.Request, p *placed) (failed *error) {
	failed = new(error)
	for i := range p.policy.predicates {
		predicate := &p.policy.predicates[i]
		out := placement.Predicate{Selector: predicate.selector}
		if len(predicate.expressions) > 0 {
			if len(p.memos[i]) > 2*len(r.Fleet) || p.memos[i] == nil {
				p.memos[i] = make(map[*placement.Cluster]bool, len(r.Fleet))
			}
			memo := p.memos[i]
			out.Match = func(index int) bool {
				cluster := r.Fleet[index]
				holds, known := memo[cluster]
				if !known && *failed == nil {
					// A failure is no answer: it is to fail the next time, too.
					if holds, *failed = s.all(predicate.expressions, cluster.Name); *failed == nil {
						memo[cluster] = holds
					}
				}
				return holds
			}
		}
		r.Predicates = append(r.Predicates, out)
	}
	return failed
}

// all reports whether all expressions hold for a cluster.
func (s *State) all(expressions []*expression, name string) (bool, error) {
	e := s.entries[name]
	if e.variables == nil {
		variables, err := variablesOf(e.object, e.scores)
		if err != nil {
			return false, err
		}
		e.variables = variables
	}
	for _, expression := range expressions {
		if holds, err := expression.holds(e.variables); err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

// remember keeps which clusters could be chosen.
func (p *placed) remember(d *placement.Decision) {
	p.feasible = make([]uint64, (len(d.Clusters)+63)/64)
	for i := range d.Clusters {
		if d.Clusters[i].Outcome.Feasible() {
			p.feasible[i/64] |= 1 << (i % 64)
		}
	}
}

// fill reads the decision.
func (v *Verdict) fill(policy *Policy, unbound []string) {
	d := v.Decision
	v.Groups = nil
	for _, group := range d.Groups {
		out := Group{Name: group.Name}
		for _, i := range group.Clusters {
			score := d.Clusters[i].Total
			if !d.Clusters[i].Before {
				score += policy.steady()
			}
			out.Clusters = append(out.Clusters, Choice{v.Fleet[i].Name, score})
		}
		v.Groups = append(v.Groups, out)
	}
	// Further ahead than a Duration holds is as good as never.
	if d.ChangesAt < math.MaxInt32*int64(100) {
		v.RequeueAt = time.Unix(d.ChangesAt, 0)
	}
	funnel := fmt.Sprintf("in the sets: %d, matching: %d, not kept out by taints: %d", d.Members, d.Matched, d.Feasible)
	if len(unbound) > 0 {
		funnel += "; sets not bound to the namespace: " + strings.Join(unbound, ", ")
	}
	switch {
	case d.Members == 0:
		v.conditions(false, ReasonSetsEmpty, "there is no cluster in the sets; label clusters with the set, or look at its selector")
	case d.Feasible == 0 && policy.number != 0:
		v.conditions(false, ReasonNoneMatched, "no cluster can be chosen ("+funnel+")")
	case d.Short > 0:
		v.conditions(false, ReasonNotAllScheduled, fmt.Sprintf("clusters chosen: %d of %d (%s)", len(d.Chosen), policy.number, funnel))
	default:
		v.conditions(true, ReasonAllScheduled, fmt.Sprintf("clusters chosen: %d (%s)", len(d.Chosen), funnel))
	}
}

// conditions sets those of a placement that makes sense.
func (v *Verdict) conditions(satisfied bool, reason, message string) {
	status := metav1.ConditionFalse
	if satisfied {
		status = metav1.ConditionTrue
	}
	v.Conditions = []metav1.Condition{
		{Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionFalse, Reason: ReasonConfigured, Message: "The placement can be read.", ObservedGeneration: v.Generation},
		{Type: clusterv1beta1.PlacementConditionSatisfied, Status: status, Reason: reason, Message: message, ObservedGeneration: v.Generation},
	}
}

// misconfigured sets the condition of one that does not. What it had stays, and
// what is said of that.
func (v *Verdict) misconfigured(reason, message string) {
	v.Keep = true
	v.Conditions = []metav1.Condition{
		{Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: v.Generation},
	}
}
