package prediction

import (
	"context"
	"sync"
	"time"
)

// timeout is the longest time that all functions together delay the shutdown.
const timeout = 5 * time.Second

// hooks are the functions of one scheduler.
type hooks struct {
	mu        sync.Mutex
	functions []func(context.Context)
}

// key is the key of the hooks in a context.
type key struct{}

// WithShutdown returns a context that is done after ctx, when the functions that were registered with it have returned, or after five
// seconds. kube-scheduler exits as soon as its context is done, so that what must be written before is written while the context is not
// done yet. stop releases the resources of the context.
func WithShutdown(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	h := &hooks{}
	inner, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), key{}, h))
	unregister := context.AfterFunc(ctx, func() {
		defer cancel()
		h.run(inner)
	})
	return inner, func() {
		unregister()
		cancel()
	}
}

// beforeShutdown registers a function that is called when the scheduler of a context is about to stop, with a context that bounds its
// time. It returns false, and never calls the function, if ctx does not come from WithShutdown.
func beforeShutdown(ctx context.Context, function func(context.Context)) bool {
	h, ok := ctx.Value(key{}).(*hooks)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.functions = append(h.functions, function)
	return true
}

// run calls all functions at the same time, and waits for them until the timeout.
func (h *hooks) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	h.mu.Lock()
	functions := h.functions
	h.mu.Unlock()
	done := make(chan struct{})
	var group sync.WaitGroup
	for _, function := range functions {
		group.Go(func() { function(ctx) })
	}
	go func() {
		defer close(done)
		group.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
