package fleet

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
)

// sliceCost is the cost after which the evaluation for a placement is interrupted in favor of other placements.
const sliceCost = 50_000

// pass is one attempt to decide a placement. It holds the lock, and therefore evaluates
// no expressions: it collects missing evaluations.
type pass struct {
	missing []evaluation
	// preview does not change the state.
	preview bool
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

// addOutcome counts an outcome for a cluster.
func (f *failures) addOutcome(cluster string, o expression.Outcome) {
	if o.Err == nil {
		f.succeeded++
		return
	}
	if f.failed++; f.failed == 1 || cluster < f.first {
		f.first, f.err = cluster, o.Err
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
func (s *State) matcher(p *placementState, attempt *pass) func(predicate int, c *decide.Cluster) bool {
	if !p.policy.hasExpressions() {
		return nil
	}
	attempt.failures = make([]failures, len(p.policy.request.Predicates))
	return func(predicate int, cluster *decide.Cluster) bool {
		known, ok := p.outcomes[predicate][cluster]
		if !ok {
			attempt.missing = append(attempt.missing, evaluation{predicate, cluster, s.valueOf(cluster.Name)})
			return false
		}
		attempt.cost += int64(known.Cost)
		attempt.failures[predicate].addOutcome(cluster.Name, known)
		return known.Matches
	}
}

// valueOf returns a cluster of the fleet for expressions.
func (s *State) valueOf(name string) *expression.Cluster {
	e := s.entries[name]
	if e.value == nil {
		scores := e.scores
		e.value = expression.NewCluster(e.object, func(name string) map[string]int32 {
			if score := scores[name]; score != nil {
				return score.Values
			}
			return nil
		})
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

// keepOutcomes adds the outcomes of evaluations to a placement. It must be called with the lock held.
func (s *State) keepOutcomes(p *placementState, list []evaluation, outcomes []expression.Outcome) {
	for i, o := range outcomes {
		item := &list[i]
		known := p.outcomes[item.predicate]
		if known == nil {
			known = make(map[*decide.Cluster]expression.Outcome, len(s.fleet))
			p.outcomes[item.predicate] = known
		}
		if len(known) > 2*len(s.fleet) {
			maps.DeleteFunc(known, func(c *decide.Cluster, _ expression.Outcome) bool { // a former version of a cluster
				i, exists := s.indexOf(c.Name)
				return !exists || s.fleet[i] != c
			})
		}
		known[item.cluster] = o
	}
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
	var outcomes []expression.Outcome // in the order of the list
	cost := int64(0)
	for _, item := range work.list { // without the lock of the state
		if cost > min(limit, s.maxCost-work.cost) || ctx.Err() != nil {
			break
		}
		o := expression.EvaluateAll(work.policy.expressions[item.predicate], item.value)
		outcomes, cost = append(outcomes, o), cost+int64(o.Cost)
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
