package placement

import (
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// benchState returns a state with clusters, all in a set that is bound to namespace ns.
func benchState(clusters int) *fleet.State {
	s := fleet.NewState()
	for i := range clusters {
		object := managed(fmt.Sprintf("cluster-%04d", i))
		object.Status.Allocatable = clusterv1.ResourceList{
			clusterv1.ResourceName(v1.ResourceCPU): *resource.NewQuantity(int64(4+i*7919%997), resource.DecimalSI),
		}
		s.SetCluster(&object.ManagedCluster)
	}
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	s.SetClusterSet(set)
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "all"}}
	binding.Spec.ClusterSet = "all"
	s.SetBinding(binding)
	return s
}

// BenchmarkBurst measures 10,000 placements over 5,000 clusters that are created at once, without the
// API server: the time until all placements are decided, and until changes that arrive meanwhile are decided.
func BenchmarkBurst(b *testing.B) {
	const placements, changes = 10_000, 100
	for b.Loop() {
		b.StopTimer()
		state := benchState(5000)
		q := setup.NewFairQueue("burst", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		var mu sync.Mutex
		generations, decided := map[types.NamespacedName]int64{}, map[types.NamespacedName]chan time.Time{}
		object := func(i int) reconcile.Request {
			return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("p-", i)}}
		}
		for i := range placements {
			generations[object(i).NamespacedName] = 1
			setup.AddWithPriority(q, object(i), handler.LowPriority, 0)
		}
		b.StartTimer()
		var working sync.WaitGroup
		for range workers {
			working.Go(func() {
				for request, shutdown := q.Get(); !shutdown; request, shutdown = q.Get() {
					mu.Lock()
					generation, notify := generations[request.NamespacedName], decided[request.NamespacedName]
					mu.Unlock()
					p := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
						Namespace: request.Namespace, Name: request.Name, UID: types.UID(request.Name), Generation: generation,
					}}
					p.Spec.NumberOfClusters = new(int32(10))
					state.SetPlacement(p)
					state.Decide(request.NamespacedName, time.Unix(0, 0))
					q.Done(request)
					if notify != nil && generation == 2 {
						notify <- time.Now()
					}
				}
			})
		}
		var slowest time.Duration
		remaining := 0
		for i := range changes {
			request := object(placements - 1 - 7*i)
			notify := make(chan time.Time, 2)
			mu.Lock()
			generations[request.NamespacedName], decided[request.NamespacedName] = 2, notify
			mu.Unlock()
			began := time.Now()
			setup.AddWithPriority(q, request, setup.ChangePriority, 0)
			slowest = max(slowest, (<-notify).Sub(began))
			remaining = q.Len()
		}
		q.ShutDown() // the workers process the queued requests
		working.Wait()
		if remaining == 0 {
			b.Error("all placements were decided before the last change")
		}
		b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-change-ms")
	}
}
