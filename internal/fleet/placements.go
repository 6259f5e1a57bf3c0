package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
)

// SetPlacement adds or updates a placement. It reports whether its spec is new.
func (s *State) SetPlacement(object *v1beta1.Placement) bool {
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	if s.isCompiled(key, object) {
		return false
	}
	policy, errs := compilePolicy(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placementOf(object)
	p.generation, p.policy, p.errs = object.Generation, policy, errs
	p.feasible, p.outcomes, p.uncompiled = nil, nil, nil
	if policy != nil {
		p.outcomes = make([]map[*decide.Cluster]expression.Outcome, len(policy.request.Predicates))
	}
	return true
}

// isCompiled reports whether the spec of a placement equals the spec in the state.
func (s *State) isCompiled(key types.NamespacedName, object *v1beta1.Placement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	return p != nil && p.uid == object.UID && p.generation == object.Generation && p.generation != 0
}

// AddPlacement adds a placement or its new spec. clusters are the clusters in its
// PlacementDecisions; they are used until the placement is first decided here.
func (s *State) AddPlacement(object *v1beta1.Placement, clusters []string) {
	if !s.SetPlacement(object) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}]
	if p != nil && p.decidedGeneration == 0 {
		s.setSelected(p, sorted(clusters))
		p.decidedGeneration = observedGeneration(object)
	}
}

// TryAddPlacement is AddPlacement unless the spec has expressions and too many other expressions are being compiled or
// evaluated: it then returns false, and EvaluateNext adds the placement and returns it.
func (s *State) TryAddPlacement(object *v1beta1.Placement, clusters []string) bool {
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	if s.isCompiled(key, object) {
		return true
	}
	if !needsCompiling(object) {
		s.AddPlacement(object, clusters)
		return true
	}
	if s.evaluators.TryAcquire(1) {
		defer s.evaluators.Release(1)
		s.AddPlacement(object, clusters)
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.placement(key).uncompiled = &uncompiled{object, clusters}
	s.enqueue(key)
	return false
}

// needsCompiling reports whether a placement has CEL expressions, which take long to compile.
func needsCompiling(object *v1beta1.Placement) bool {
	return slices.ContainsFunc(object.Spec.Predicates, func(p clusterv1beta1.ClusterPredicate) bool {
		return len(p.RequiredClusterSelector.CelSelector.CelExpressions) > 0
	})
}

// observedGeneration returns the generation of the spec that the decisions of a
// placement were made for, as its status reports it; 0 if it does not.
func observedGeneration(object *v1beta1.Placement) int64 {
	if c := meta.FindStatusCondition(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied); c != nil {
		return c.ObservedGeneration
	}
	return 0
}

// placementOf returns the state of a placement. A new object of its name has no decisions and promises: they belong to the deleted one.
func (s *State) placementOf(object *v1beta1.Placement) *placementState {
	p := s.placement(types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
	if p.uid != "" && p.uid != object.UID {
		s.deleteWorkload(p)
		s.setSelected(p, nil)
		p.generation, p.decidedGeneration = 0, 0
	}
	p.uid = object.UID
	return p
}

// SetWorkload sets the workload of a placement, from its spec or annotation and the object that the workload refers to, nil if it refers
// to none. err is why the object could not be read. It reports whether the workload is new.
func (s *State) SetWorkload(p *v1beta1.Placement, object *unstructured.Unstructured, err error) bool {
	spec, invalid := WorkloadOf(p)
	raw := contentOf(object)
	if err != nil {
		err = fmt.Errorf("%s: %w", workloadPath(p).Child("ref"), err)
	}
	err = errors.Join(invalid, err)
	cause := fmt.Sprint(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.placementOf(p)
	old := state.workload
	if spec == nil {
		s.deleteWorkload(state)
		return old != nil
	}
	if old != nil && old.cause == cause && bytes.Equal(old.object, raw) && equality.Semantic.DeepEqual(old.spec, spec) {
		return false
	}
	next := placementWorkload{spec: spec, object: raw, cause: cause, err: err, fits: map[*fit.Summary]cachedFit{}}
	if old == nil {
		old = &placementWorkload{}
		state.workload = old
	}
	// The promises of a workload that is no longer valid count.
	next.workload, next.promises = old.workload, old.promises
	if err == nil {
		var w *fit.Workload
		if w, next.err = compileWorkload(p, spec, raw); next.err == nil {
			next.workload = w
		}
	}
	*old = next
	return true
}

// deleteWorkload removes the workload of a placement with its promises, if it names one.
func (s *State) deleteWorkload(p *placementState) {
	if p.workload != nil {
		s.setPromises(p.workload, nil)
		p.workload = nil
	}
}

// DeletePlacement removes a placement and its decisions.
func (s *State) DeletePlacement(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil {
		s.deleteWorkload(p)
		s.setSelected(p, nil)
		delete(s.placements, key)
	}
}

// SetUnmanaged sets the clusters in the decisions of a placement that another
// controller decides. Prioritizer Balance counts them.
func (s *State) SetUnmanaged(key types.NamespacedName, clusters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placement(key)
	s.setSelected(p, sorted(clusters))
	*p = placementState{selected: p.selected, workload: p.workload}
	if w := p.workload; w != nil { // its pods in these clusters count
		promises := maps.Clone(w.promises)
		maps.DeleteFunc(promises, func(cluster string, _ podPromise) bool { return !slices.Contains(clusters, cluster) })
		s.setPromises(w, promises)
	}
}

// setSelected changes the selected clusters of a placement and the counts.
func (s *State) setSelected(p *placementState, clusters []string) {
	add := func(names []string, n int32) {
		for _, name := range names {
			if i, known := s.indexOf(name); known {
				s.counts[i] += n
			}
		}
	}
	add(p.selected, -1)
	p.selected = clusters
	add(p.selected, 1)
}

// sorted returns the names in order, without duplicates.
func sorted(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// RestorePromises sets the promises of a placement, which its PlacementDecisions have.
func (s *State) RestorePromises(key types.NamespacedName, promises map[string]podPromise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil && p.workload != nil && len(p.workload.promises) == 0 {
		s.setPromises(p.workload, promises)
	}
}

// SetPromises sets the promises of a placement after a preview of its decision, so that later previews deduct them.
func (s *State) SetPromises(key types.NamespacedName, promises map[string]podPromise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil && p.workload != nil {
		s.setPromises(p.workload, promises)
	}
}

// setPromises sets the promises of a placement, nil for none, in the placement and in the clusters. If they release capacity, EvaluateNext
// returns the placements whose workload did not fit.
func (s *State) setPromises(w *placementWorkload, promises map[string]podPromise) {
	released := false
	for cluster, promise := range w.promises {
		released = released || promises[cluster].Replicas < promise.Replicas
		if _, remains := promises[cluster]; !remains {
			e := s.entry(cluster)
			e.promised = slices.DeleteFunc(e.promised, func(other *placementWorkload) bool { return other == w })
			s.dropIfEmpty(cluster)
		}
	}
	for cluster := range promises {
		if _, known := w.promises[cluster]; !known {
			e := s.entry(cluster)
			e.promised = append(e.promised, w)
		}
	}
	w.promises = promises
	if !released {
		return
	}
	for key, p := range s.placements {
		if p.lacksRoom && p.workload != w {
			s.enqueue(key)
		}
	}
}

// Placements returns the names of the placements that are decided here, sorted.
func (s *State) Placements() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.placementsWhere(func(_ types.NamespacedName, p *placementState) bool { return !p.unmanaged() })
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return keys
}
