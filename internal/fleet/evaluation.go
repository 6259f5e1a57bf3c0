package fleet

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/fairqueue"
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
	// transient is set if the results of single clusters are not used after the pass.
	transient bool
	missing   []evaluation
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

// predicates returns the predicates of a placement. Outcomes of expressions are kept
// until the cluster changes; missing outcomes are added to the pass.
func (s *State) predicates(p *placementState, attempt *pass) (out []Predicate) {
	if len(p.policy.predicates) == 0 {
		return nil
	}
	attempt.failures = make([]failures, len(p.policy.predicates))
	out = make([]Predicate, 0, len(p.policy.predicates))
	for i := range p.policy.predicates {
		predicate := &p.policy.predicates[i]
		converted := Predicate{Selector: predicate.selector}
		if len(predicate.expressions) > 0 {
			converted.Match = func(index int) bool {
				cluster := s.fleet[index]
				known, ok := p.outcomes[i][cluster]
				if !ok {
					attempt.missing = append(attempt.missing, evaluation{i, cluster, s.value(cluster.Name)})
					return false
				}
				attempt.cost += int64(known.cost)
				attempt.failures[i].add(cluster.Name, known)
				return known.matches
			}
		}
		out = append(out, converted)
	}
	return out
}

// value returns a cluster of the fleet for expressions.
func (s *State) value(name string) *clusterValue {
	e := s.entries[name]
	if e.value == nil {
		e.value = newClusterValue(e.object, e.scores)
	}
	return e.value
}

// brokenPredicate returns a predicate whose expressions failed for all clusters, nil if
// there is none.
func (a *pass) brokenPredicate() *failures {
	for i := range a.failures {
		if f := &a.failures[i]; f.failed > 0 && f.succeeded == 0 {
			return f
		}
	}
	return nil
}

// failure returns the failures of the first predicate with failures, nil if there is none.
func (a *pass) failure() *failures {
	for i := range a.failures {
		if a.failures[i].failed > 0 {
			return &a.failures[i]
		}
	}
	return nil
}

// evaluateSlice evaluates expressions of a policy without the lock of the state until
// their cost exceeds the limit. It returns the outcomes of the evaluations so far, in
// the order of the list, and their cost.
func evaluateSlice(ctx context.Context, policy *Policy, list []evaluation, limit int64) (outcomes []outcome, cost int64) {
	for _, item := range list {
		if cost > limit || ctx.Err() != nil {
			break
		}
		o := policy.predicates[item.predicate].evaluate(item.value)
		outcomes, cost = append(outcomes, o), cost+int64(o.cost)
	}
	return outcomes, cost
}

// evaluate evaluates the expressions of the predicate for a cluster, which must match
// all of them.
func (p *predicate) evaluate(cluster ref.Val) outcome {
	var cost uint32
	for _, e := range p.expressions {
		o := e.evaluate(cluster)
		if cost += o.cost; !o.matches {
			return outcome{cost: cost, err: o.err}
		}
	}
	return outcome{cost: cost, matches: true}
}

// keepOutcomes adds outcomes to a placement. It has no effect if the placement has
// another spec by now. It must be called with the lock held.
func (s *State) keepOutcomes(key types.NamespacedName, policy *Policy, list []evaluation, outcomes []outcome) {
	p := s.placements[key]
	if p == nil || p.policy != policy {
		return
	}
	for i, o := range outcomes {
		item := &list[i]
		known := p.outcomes[item.predicate]
		if known == nil || len(known) > 2*len(s.fleet) {
			known = s.pruned(known)
			p.outcomes[item.predicate] = known
		}
		known[item.cluster] = o
	}
}

// pruned returns the outcomes for the current versions of the clusters.
func (s *State) pruned(known map[*Cluster]outcome) map[*Cluster]outcome {
	out := make(map[*Cluster]outcome, len(s.fleet))
	for _, cluster := range s.fleet {
		if o, ok := known[cluster]; ok {
			out[cluster] = o
		}
	}
	return out
}

// waiting is a placement that waits for its expressions.
type waiting struct {
	policy *Policy
	list   []evaluation
	// cost is the cost of the outcomes that are known.
	cost int64
}

// evaluateMissing evaluates the expressions that a pass missed. It reports whether the
// evaluation is complete or too expensive. A long evaluation is left to EvaluateNext.
func (s *State) evaluateMissing(ctx context.Context, key types.NamespacedName, policy *Policy, attempt *pass, limit int64) bool {
	remaining := s.maxCost - attempt.cost
	var outcomes []outcome
	var cost int64
	if limit >= maxTotalCost { // the caller waits for the result
		outcomes, cost = evaluateSlice(ctx, policy, attempt.missing, remaining)
	} else {
		select {
		case s.evaluators <- struct{}{}:
			outcomes, cost = evaluateSlice(ctx, policy, attempt.missing, min(limit, remaining))
			<-s.evaluators
		default: // EvaluateNext evaluates all expressions
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepOutcomes(key, policy, attempt.missing, outcomes)
	rest := attempt.missing[len(outcomes):]
	if len(rest) == 0 || cost > remaining {
		return true
	}
	if p := s.placements[key]; p != nil && p.policy == policy {
		p.waiting = &waiting{policy, rest, attempt.cost + cost}
		s.queue.push(key)
	}
	return false
}

// EvaluateNext compiles and evaluates expressions of placements whose decision is pending, for a
// short time each and for the namespaces in turn. It returns the next
// placement that can be decided, and false after the context has ended.
func (s *State) EvaluateNext(ctx context.Context) (types.NamespacedName, bool) {
	for ctx.Err() == nil {
		s.mu.Lock()
		key, ok := s.queue.pop()
		s.mu.Unlock()
		if !ok {
			select {
			case <-ctx.Done():
			case <-s.queue.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
		case s.evaluators <- struct{}{}:
			isReady := s.evaluateTurn(ctx, key)
			<-s.evaluators
			if isReady {
				return key, true
			}
		}
	}
	return types.NamespacedName{}, false
}

// evaluateTurn compiles the expressions of a placement, or evaluates the next expressions that it waits for.
// It reports whether the placement can be decided.
func (s *State) evaluateTurn(ctx context.Context, key types.NamespacedName) bool {
	s.mu.Lock()
	added, isUncompiled := s.uncompiled[key]
	var work *waiting
	if p := s.placements[key]; p != nil {
		if work = p.waiting; work != nil && work.policy != p.policy {
			work, p.waiting = nil, nil
		}
	}
	s.mu.Unlock()
	if isUncompiled {
		s.AddPlacement(added.object, added.clusters)
		return true
	}
	return work == nil || s.evaluateWaiting(ctx, key, work)
}

// evaluateWaiting evaluates the next expressions of a placement. It reports whether the
// evaluation is complete or too expensive.
func (s *State) evaluateWaiting(ctx context.Context, key types.NamespacedName, work *waiting) bool {
	remaining := s.maxCost - work.cost
	outcomes, cost := evaluateSlice(ctx, work.policy, work.list, min(sliceCost, remaining))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepOutcomes(key, work.policy, work.list, outcomes)
	work.list, work.cost = work.list[len(outcomes):], work.cost+cost
	p := s.placements[key]
	if p == nil || p.waiting != work {
		return true
	}
	if len(work.list) == 0 || work.cost > s.maxCost {
		p.waiting = nil
		return true
	}
	s.queue.push(key)
	return false
}

// evaluationQueue is a queue of placements that takes them from the namespaces in turn.
type evaluationQueue struct {
	turns  fairqueue.Queue[string, types.NamespacedName]
	queued map[types.NamespacedName]bool
	// wake has a value if the queue may have become non-empty.
	wake chan struct{}
}

// newQueue returns an empty queue.
func newQueue() evaluationQueue {
	return evaluationQueue{queued: map[types.NamespacedName]bool{}, wake: make(chan struct{}, 1)}
}

// push appends a placement unless it is in the queue.
func (q *evaluationQueue) push(key types.NamespacedName) {
	if q.queued[key] {
		return
	}
	q.queued[key] = true
	q.turns.Push(key.Namespace, key)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop removes the next placement. ok is false if there is none.
func (q *evaluationQueue) pop() (key types.NamespacedName, ok bool) {
	key, ok = q.turns.Pop()
	delete(q.queued, key)
	return key, ok
}
