package placement

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// latencies measures the time from a change to the write of the decisions that take
// it into account. The zero value is ready to use.
type latencies struct {
	mu sync.Mutex
	// waiting has the time of the first change of each placement that no decision has
	// taken into account; deciding has the same for the current decision.
	waiting, deciding map[types.NamespacedName]time.Time
}

// changed records a change that affects a placement.
func (l *latencies) changed(key types.NamespacedName, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting, l.deciding = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]time.Time{}
	}
	if _, earlier := l.waiting[key]; !earlier {
		l.waiting[key] = at
	}
}

// start must be called when a placement is decided. Changes of a previous decision
// that could not be written keep their time.
func (l *latencies) start(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, waiting := l.waiting[key]
	if !waiting {
		return
	}
	delete(l.waiting, key)
	if earlier, ok := l.deciding[key]; !ok || since.Before(earlier) {
		l.deciding[key] = since
	}
}

// finish must be called when a decision has been written. It returns the time of the
// first change that the decision takes into account, false if there was no change.
func (l *latencies) finish(key types.NamespacedName) (since time.Time, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, changed = l.deciding[key]
	delete(l.deciding, key)
	return since, changed
}

// predicate returns a predicate that accepts all events and records them as changes.
func (l *latencies) predicate() predicate.Predicate {
	record := func(object client.Object) bool {
		l.changed(client.ObjectKeyFromObject(object), time.Now())
		return true
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return record(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return record(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return record(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return true },
	}
}
