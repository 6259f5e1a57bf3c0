package load

import (
	"sync"
	"sync/atomic"
)

// observers are functions that are called with each new value before readers see it. The zero value is ready to use.
type observers[T any] struct {
	mu  sync.Mutex
	all []func(*T)
}

// add registers an observer. If there is a current value, the observer is called with it before add returns.
func (o *observers[T]) add(current *atomic.Pointer[T], observe func(*T)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, observe)
	if value := current.Load(); value != nil {
		observe(value)
	}
}

// publish calls the observers with a value and then makes it the current value.
func (o *observers[T]) publish(current *atomic.Pointer[T], value *T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, observe := range o.all {
		observe(value)
	}
	current.Store(value)
}
