package placement

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// delays know how long changes have been waiting for the decisions that they
// lead to. The zero value is good.
type delays struct {
	mu sync.Mutex
	// waiting has, by placement, when the first change was heard of that no
	// decision has taken into account; deciding the same of those that the decision
	// under way does.
	waiting, deciding map[types.NamespacedName]time.Time
}

// changed notes a change that concerns a placement.
func (d *delays) changed(key types.NamespacedName, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting, d.deciding = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]time.Time{}
	}
	if _, earlier := d.waiting[key]; !earlier {
		d.waiting[key] = at
	}
}

// decide says that a placement is decided now. What a decision before was about
// that could not be written goes on waiting.
func (d *delays) decide(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, waiting := d.waiting[key]
	if !waiting {
		return
	}
	delete(d.waiting, key)
	if earlier, ok := d.deciding[key]; !ok || since.Before(earlier) {
		d.deciding[key] = since
	}
}

// done says that what was decided is written, and returns since when the first of
// the changes that it is about has been waiting; false if nothing had changed.
func (d *delays) done(key types.NamespacedName) (since time.Time, changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, changed = d.deciding[key]
	delete(d.deciding, key)
	return since, changed
}

// noting is a predicate that lets everything pass and notes it as a change.
func (d *delays) noting() predicate.Predicate {
	note := func(object client.Object) bool {
		d.changed(client.ObjectKeyFromObject(object), time.Now())
		return true
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return note(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return note(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return note(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return true },
	}
}
