package setup

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/turns"
)

// NewFairQueue returns a queue that takes requests from the namespaces in turn, so that
// many objects in one namespace do not delay those of another one. It is a value for
// NewQueue of the options of a controller.
func NewFairQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	storage := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: &fairStorage{}})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name, Queue: storage,
		}),
	})
}

// fairStorage holds queued requests by namespace. The workqueue makes sure that it is not used
// concurrently and contains a request at most once. The zero value is empty.
type fairStorage struct {
	turns.Queue[string, reconcile.Request]
}

// Touch implements workqueue.Queue. A request that is added again keeps its place.
func (*fairStorage) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (s *fairStorage) Push(request reconcile.Request) { s.Queue.Push(request.Namespace, request) }

// Pop implements workqueue.Queue. There must be a request.
func (s *fairStorage) Pop() reconcile.Request {
	request, _ := s.Queue.Pop()
	return request
}
