package setup

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/internal/fairqueue"
)

// ChangePriority is the priority of a request whose own object has changed. Requests for objects that
// have not been reconciled yet have handler.LowPriority, all other requests 0.
const ChangePriority = 100

// priorities are the priorities of requests by level of urgency: above 0, 0 and below 0.
var priorities = [...]int{ChangePriority, 0, handler.LowPriority}

// levelOf returns the level of a priority.
func levelOf(priority int) int { return 1 - cmp.Compare(priority, 0) }

// NewFairQueue returns a priority queue that takes requests of one priority from the namespaces
// in turn, so that many objects in one namespace do not delay another namespace. Every fourth request
// has a lower priority, if there are any. NewFairQueue is a value for NewQueue of the options of a
// controller.
func NewFairQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	storage := &fairStorage{
		requests:  fairqueue.NewLevels[string, reconcile.Request](len(priorities)),
		requested: map[reconcile.Request]int{}, taken: map[reconcile.Request]int{},
	}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: storage})
	return &fairQueue{storage: storage, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
		limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
			Name: name,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
				Name: name, Queue: queue,
			}),
		})}
}

// AddWithPriority adds a request to a queue after a delay, with its priority if it is a priority queue.
func AddWithPriority(
	queue workqueue.TypedRateLimitingInterface[reconcile.Request], request reconcile.Request, priority int, delay time.Duration,
) {
	if q, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority), After: delay}, request)
		return
	}
	queue.AddAfter(request, delay)
}

// fairQueue is a priorityqueue.PriorityQueue. A controller adds requests with AddWithOpts; other methods add them with priority 0, unless
// they are to be added with another one after a delay.
type fairQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	storage *fairStorage
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &fairQueue{}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *fairQueue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	priority := 0
	if options.Priority != nil {
		priority = *options.Priority
	}
	for _, request := range requests {
		q.storage.request(request, levelOf(priority))
		switch {
		case options.RateLimited:
			q.AddRateLimited(request)
		case options.After > 0:
			q.AddAfter(request, options.After)
		default:
			q.Add(request)
		}
	}
}

// Get implements workqueue.TypedInterface.
func (q *fairQueue) Get() (request reconcile.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *fairQueue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	request, shutdown = q.TypedRateLimitingInterface.Get()
	return request, q.storage.priorityOf(request), shutdown
}

// fairStorage holds queued requests. The workqueue makes sure that Push, Touch, Pop and Len are
// not called concurrently.
type fairStorage struct {
	requests *fairqueue.Levels[string, reconcile.Request]

	mu sync.Mutex
	// requested is the most urgent level of each request that is to be added, now or after a delay.
	requested map[reconcile.Request]int
	// taken is the level of each request that is processed.
	taken map[reconcile.Request]int
}

// request sets the level of a request that is added next.
func (s *fairStorage) request(request reconcile.Request, level int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current, ok := s.requested[request]; !ok || level < current {
		s.requested[request] = level
	}
}

// Push implements workqueue.Queue.
func (s *fairStorage) Push(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	level, ok := s.requested[request]
	if !ok {
		level = levelOf(0)
	}
	delete(s.requested, request)
	s.requests.Push(level, request.Namespace, request)
}

// Touch implements workqueue.Queue. A request that is added again keeps its place unless its
// priority is higher now.
func (s *fairStorage) Touch(request reconcile.Request) { s.Push(request) }

// Len implements workqueue.Queue.
func (s *fairStorage) Len() int { return s.requests.Len() }

// Pop implements workqueue.Queue. There must be a request.
func (s *fairStorage) Pop() reconcile.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	request, level, _ := s.requests.Pop()
	s.taken[request] = level
	return request
}

// priorityOf returns the priority of a request that has been taken from the queue.
func (s *fairStorage) priorityOf(request reconcile.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	level, ok := s.taken[request]
	delete(s.taken, request)
	if !ok { // the queue has been shut down
		return 0
	}
	return priorities[level]
}
