package fleet

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of the evaluation of expressions, in units of CEL. A unit takes 0.1 to 1 microseconds.
const (
	// maxTotalCost is the cost limit of all expressions of a placement for all clusters.
	maxTotalCost = 10_000_000
	// sliceCost is the cost after which the evaluation for a placement is interrupted in
	// favor of other placements.
	sliceCost = 50_000
)

// evaluation is an evaluation of the expressions of a predicate for a cluster.
type evaluation struct {
	predicate int
	cluster   *Cluster
	value     *clusterValue
}

// pass is one attempt to decide a placement. It holds the lock, and therefore evaluates
// no expressions: it collects missing evaluations.
type pass struct {
	missing []evaluation
	// preview does not change the state. again decides as if the placement had no decisions yet.
	preview, again bool
	// cost is the sum of the costs of all outcomes that the decision used.
	cost int64
	// failures has the failures of each predicate.
	failures []failures
}

// failures counts the clusters for which the expressions of a predicate failed and
// succeeded.
type failures struct {
	failed, succeeded int
	// first is the first cluster by name for which an expression failed, with its error.
	first string
	err   error
}

// add counts an outcome for a cluster.
func (f *failures) add(cluster string, o outcome) {
	if o.err == nil {
		f.succeeded++
		return
	}
	if f.failed++; f.failed == 1 || cluster < f.first {
		f.first, f.err = cluster, o.err
	}
}

// String returns the first error and the number of clusters.
func (f *failures) String() string {
	if f.failed == 1 {
		return fmt.Sprintf("%v (cluster %s)", f.err, f.first)
	}
	return fmt.Sprintf("%v (cluster %s and %d more)", f.err, f.first, f.failed-1)
}

// matcher returns the function Match of requests for a placement. Outcomes of expressions are kept
// until the cluster changes; missing outcomes are added to the pass.
func (s *State) matcher(p *placementState, attempt *pass) func(predicate int, c *Cluster) bool {
	if !p.policy.hasExpressions() {
		return nil
	}
	attempt.failures = make([]failures, len(p.policy.request.Predicates))
	return func(predicate int, cluster *Cluster) bool {
		known, ok := p.outcomes[predicate][cluster]
		if !ok {
			attempt.missing = append(attempt.missing, evaluation{predicate, cluster, s.value(cluster.Name)})
			return false
		}
		attempt.cost += int64(known.cost)
		attempt.failures[predicate].add(cluster.Name, known)
		return known.matches
	}
}

// value returns a cluster of the fleet for expressions.
func (s *State) value(name string) *clusterValue {
	e := s.entries[name]
	if e.value == nil {
		e.value = newClusterValue(e.object, e.scores)
	}
	return e.value
}

// failure returns the failures of the first predicate whose expressions failed for some clusters or, if all is set, for
// all clusters; nil if there is none.
func (a *pass) failure(all bool) *failures {
	for i := range a.failures {
		if f := &a.failures[i]; f.failed > 0 && (f.succeeded == 0 || !all) {
			return f
		}
	}
	return nil
}

// evaluate evaluates the expressions of the predicate for a cluster, which must match
// all of them.
func (p *Predicate) evaluate(cluster ref.Val) outcome {
	var cost uint32
	for _, e := range p.expressions {
		o := e.evaluate(cluster)
		if cost += o.cost; !o.matches {
			return outcome{cost: cost, err: o.err}
		}
	}
	return outcome{cost: cost, matches: true}
}

// keepOutcomes adds the outcomes of evaluations to a placement. It must be called with the lock held.
func (s *State) keepOutcomes(p *placementState, list []evaluation, outcomes []outcome) {
	for i, o := range outcomes {
		item := &list[i]
		known := p.outcomes[item.predicate]
		if known == nil {
			known = make(map[*Cluster]outcome, len(s.fleet))
			p.outcomes[item.predicate] = known
		}
		if len(known) > 2*len(s.fleet) {
			maps.DeleteFunc(known, func(c *Cluster, _ outcome) bool { // a former version of a cluster
				i, exists := s.indexOf(c.Name)
				return !exists || s.fleet[i] != c
			})
		}
		known[item.cluster] = o
	}
}

// waiting is a placement that waits for its expressions.
type waiting struct {
	policy *Policy
	list   []evaluation
	// cost is the cost of the outcomes that are known.
	cost int64
}

// evaluateMissing evaluates the expressions that a decision misses. It reports whether the
// evaluation is complete or too expensive. A long evaluation is left to EvaluateNext.
func (s *State) evaluateMissing(key types.NamespacedName, missing *waiting, preview bool) bool {
	limit := int64(-1) // EvaluateNext evaluates all expressions
	if preview {       // the caller waits for the result
		limit = maxTotalCost
	} else if s.evaluators.TryAcquire(1) {
		defer s.evaluators.Release(1)
		limit = sliceCost
	}
	return s.evaluateWaiting(context.Background(), key, missing, limit)
}

// EvaluateNext compiles and evaluates expressions of placements whose decision is pending, for a
// short time each and for the namespaces in turn. It returns the next
// placement that can be decided, and false after the context has ended.
func (s *State) EvaluateNext(ctx context.Context) (types.NamespacedName, bool) {
	for ctx.Err() == nil {
		s.mu.Lock()
		key, _, ok := s.queue.Pop()
		s.mu.Unlock()
		if !ok {
			select {
			case <-ctx.Done():
			case <-s.queued:
			}
			continue
		}
		if s.evaluators.Acquire(ctx, 1) != nil {
			break
		}
		isReady := s.evaluateTurn(ctx, key)
		s.evaluators.Release(1)
		if isReady {
			return key, true
		}
	}
	return types.NamespacedName{}, false
}

// evaluateTurn compiles the expressions of a placement, or evaluates the next expressions that it waits for.
// It reports whether the placement can be decided.
func (s *State) evaluateTurn(ctx context.Context, key types.NamespacedName) bool {
	s.mu.Lock()
	var added *uncompiled
	var work *waiting
	if p := s.placements[key]; p != nil {
		added, work = p.uncompiled, p.waiting
		if work != nil && work.policy != p.policy {
			work, p.waiting = nil, nil
		}
	}
	s.mu.Unlock()
	if added != nil {
		s.AddPlacement(added.object, added.clusters)
		return true
	}
	return work == nil || s.evaluateWaiting(ctx, key, work, sliceCost)
}

// evaluateWaiting evaluates the next expressions of a placement up to a cost, none if it is negative. It reports whether
// the evaluation is complete or too expensive, or the placement has another spec by now; otherwise the placement waits.
func (s *State) evaluateWaiting(ctx context.Context, key types.NamespacedName, work *waiting, limit int64) bool {
	var outcomes []outcome // in the order of the list
	cost := int64(0)
	for _, item := range work.list { // without the lock of the state
		if cost > min(limit, s.maxCost-work.cost) || ctx.Err() != nil {
			break
		}
		o := work.policy.request.Predicates[item.predicate].evaluate(item.value)
		outcomes, cost = append(outcomes, o), cost+int64(o.cost)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	if p == nil || p.policy != work.policy {
		return true
	}
	s.keepOutcomes(p, work.list, outcomes)
	work.list, work.cost = work.list[len(outcomes):], work.cost+cost
	if len(work.list) == 0 || work.cost > s.maxCost {
		p.waiting = nil
		return true
	}
	p.waiting = work
	s.enqueue(key)
	return false
}

// enqueue adds a placement for EvaluateNext. It must be called with the lock held.
func (s *State) enqueue(key types.NamespacedName) {
	s.queue.Push(0, key.Namespace, key)
	select {
	case s.queued <- struct{}{}:
	default:
	}
}
