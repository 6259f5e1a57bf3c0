package setup

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewFairQueue returns a queue that takes requests from the namespaces in turn, so that
// many objects in one namespace do not delay those of another one. It is a value for
// NewQueue of the options of a controller.
func NewFairQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	storage := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: &turns{}})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name, Queue: storage,
		}),
	})
}

// turns holds queued requests by namespace. The workqueue makes sure that it is not used
// concurrently and contains a request at most once. The zero value is empty.
type turns struct {
	// namespaces are those with requests, the next one first.
	namespaces []string
	requests   map[string][]reconcile.Request
	length     int
}

// Touch implements workqueue.Queue. A request that is added again keeps its place.
func (*turns) Touch(reconcile.Request) {}

// Push adds a request after the others of its namespace.
func (t *turns) Push(request reconcile.Request) {
	if t.requests == nil {
		t.requests = map[string][]reconcile.Request{}
	}
	if len(t.requests[request.Namespace]) == 0 {
		t.namespaces = append(t.namespaces, request.Namespace)
	}
	t.requests[request.Namespace] = append(t.requests[request.Namespace], request)
	t.length++
}

// Len returns the number of requests.
func (t *turns) Len() int { return t.length }

// Pop removes the first request of the next namespace, which is the last one then. There
// must be a request.
func (t *turns) Pop() reconcile.Request {
	namespace := t.namespaces[0]
	t.namespaces = t.namespaces[1:]
	request, rest := t.requests[namespace][0], t.requests[namespace][1:]
	if len(rest) > 0 {
		t.requests[namespace] = rest
		t.namespaces = append(t.namespaces, namespace)
	} else {
		delete(t.requests, namespace)
	}
	t.length--
	return request
}
