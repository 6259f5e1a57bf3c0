package setup

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestOf(key string) reconcile.Request {
	namespace, name, _ := strings.Cut(key, "/")
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Namespaces take turns; requests of one namespace keep their order.
func TestFairQueue(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	q := NewFairQueue("fair", limiter)
	defer q.ShutDown()
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
