package setup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestOf(key string) reconcile.Request {
	namespace, name, _ := strings.Cut(key, "/")
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func newFairQueue(t *testing.T) *fairQueue {
	t.Helper()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	q := NewFairQueue("fair", limiter).(*fairQueue)
	t.Cleanup(q.ShutDown)
	return q
}

// Namespaces take turns; requests of one namespace keep their order.
func TestFairQueue(t *testing.T) {
	q := newFairQueue(t)
	for key := range strings.FieldsSeq("a/1 a/2 a/3 a/2 b/1 a/4 c/1 b/2 /cluster") {
		q.Add(requestOf(key))
	}
	var got []string
	next := func() {
		request, _ := q.Get()
		got = append(got, request.String())
		q.Done(request)
	}
	for range 5 {
		next()
	}
	q.Add(requestOf("c/2"))
	for q.Len() > 0 {
		next()
	}
	if text := strings.Join(got, " "); text != "a/1 b/1 c/1 /cluster a/2 b/2 a/3 c/2 a/4" {
		t.Error(text)
	}
}

// Changes are served before other requests, and these before objects that have not been
// reconciled. Every fourth request has a lower priority.
func TestFairQueuePriorities(t *testing.T) {
	q := newFairQueue(t)
	for i := range 10 {
		AddWithPriority(q, requestOf(fmt.Sprint("fill/", i)), handler.LowPriority, 0)
	}
	q.Add(requestOf("a/other"))
	AddWithPriority(q, requestOf("a/changed"), ChangePriority, 0)
	AddWithPriority(q, requestOf("fill/9"), ChangePriority, 0) // it has not been reconciled either
	q.Add(requestOf("fill/8"))
	var got []string
	for q.Len() > 0 {
		request, priority, _ := q.GetWithPriority()
		got = append(got, fmt.Sprintf("%s:%d", request, priority))
		q.Done(request)
	}
	want := "a/changed:100 fill/9:100 a/other:0 fill/0:-100 fill/8:0 fill/1:-100 fill/2:-100 fill/3:-100 fill/4:-100 fill/5:-100 " +
		"fill/6:-100 fill/7:-100"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if n := len(q.storage.requested) + len(q.storage.taken); n != 0 {
		t.Errorf("%d levels are kept of an empty queue", n)
	}
}

// A request that is added during its processing, or with a delay, keeps the highest priority with
// which it was added.
func TestFairQueueKeepsPriority(t *testing.T) {
	q := newFairQueue(t)
	request := requestOf("a/1")
	AddWithPriority(q, request, handler.LowPriority, 0)
	q.Get()
	AddWithPriority(q, request, ChangePriority, 0)
	AddWithPriority(q, request, handler.LowPriority, 0)
	q.Done(request)
	if _, priority, _ := q.GetWithPriority(); priority != ChangePriority {
		t.Errorf("added during its processing: priority %d", priority)
	}
	q.AddWithOpts(priorityqueue.AddOpts{After: time.Millisecond, Priority: new(ChangePriority)}, request)
	q.Done(request)
	if _, priority, _ := q.GetWithPriority(); priority != ChangePriority {
		t.Errorf("added with a delay: priority %d", priority)
	}
	q.Done(request)
	q.Add(request)
	if _, priority, _ := q.GetWithPriority(); priority != 0 {
		t.Errorf("added again: priority %d", priority)
	}
}
