package chaos

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// recorder records the changes of the decisions of each placement and of the number of placeholders of
// each policy.
type recorder struct {
	mu sync.Mutex
	// decisions are the clusters of each PlacementDecision by its name, replicas the placeholders of each
	// object by kind and name; owners are their placements and policies.
	decisions map[string][]string
	replicas  map[string]int64
	owners    map[string]string
	// selections and counts are the changes of this round.
	selections map[string][]selection
	counts     map[string][]int64
}

// startRecorder starts a recorder, which runs until the end of the test.
func startRecorder(t *testing.T, config *rest.Config) *recorder {
	t.Helper()
	r := &recorder{decisions: map[string][]string{}, replicas: map[string]int64{}, owners: map[string]string{}}
	r.startRound()
	informers, err := cache.New(config, cache.Options{Scheme: kube.Scheme()})
	must.Succeed(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = informers.Start(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	objects := []client.Object{&clusterv1beta1.PlacementDecision{}}
	for _, kind := range placeholderKinds() {
		if kind.Kind == "PodTemplate" {
			continue // has no replicas
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		objects = append(objects, object)
	}
	for _, object := range objects {
		informer, err := informers.GetInformer(ctx, object)
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc: r.set, UpdateFunc: func(_, object any) { r.set(object) }, DeleteFunc: r.delete,
			})
		}
		must.Succeed(t, err)
	}
	if !informers.WaitForCacheSync(ctx) {
		t.Fatal("the recorder does not observe the objects")
	}
	return r
}

// startRound forgets the changes so far.
func (r *recorder) startRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.selections, r.counts = map[string][]selection{}, map[string][]int64{}
}

// changes returns the changes of this round.
func (r *recorder) changes() (map[string][]selection, map[string][]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.selections), maps.Clone(r.counts)
}

// present returns the present selection of a placement or number of placeholders of a policy.
func (r *recorder) present(name string) (selection, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.selection(name), r.count(name)
}

// set records an object that has been created or changed.
func (r *recorder) set(object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := object.(type) {
	case *clusterv1beta1.PlacementDecision:
		placement := o.Labels[clusterv1beta1.PlacementLabel]
		r.decisions[o.Name], r.owners[o.Name] = fleet.ClustersIn([]clusterv1beta1.PlacementDecision{*o}), placement
		r.updateSelection(placement)
	case *unstructured.Unstructured:
		if policy := o.GetLabels()[slack.PlaceholderLabel]; policy != "" {
			key := o.GetKind() + "/" + o.GetName()
			r.replicas[key], _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
			r.owners[key] = policy
			r.updateCount(policy)
		}
	}
}

// delete records an object that has been deleted.
func (r *recorder) delete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := object.(type) {
	case *clusterv1beta1.PlacementDecision:
		delete(r.decisions, o.Name)
		r.updateSelection(r.owners[o.Name])
	case *unstructured.Unstructured:
		key := o.GetKind() + "/" + o.GetName()
		delete(r.replicas, key)
		r.updateCount(r.owners[key])
	}
}

// updateSelection records the present selection of a placement if it differs from the last one.
func (r *recorder) updateSelection(placement string) {
	now := r.selection(placement)
	changes := r.selections[placement]
	if len(changes) == 0 || !slices.Equal(changes[len(changes)-1], now) {
		r.selections[placement] = append(changes, now)
	}
}

// selection returns the present selection of a placement. A cluster may be in two PlacementDecisions
// while it moves from one to the other. It must be called with the lock held.
func (r *recorder) selection(placement string) selection {
	var now selection
	for name, clusters := range r.decisions {
		if r.owners[name] == placement {
			now = append(now, clusters...)
		}
	}
	slices.Sort(now)
	return slices.Compact(now)
}

// updateCount records the present number of placeholders of a policy if it differs from the last one.
func (r *recorder) updateCount(policy string) {
	if policy == "" {
		return
	}
	now := r.count(policy)
	changes := r.counts[policy]
	if len(changes) == 0 || changes[len(changes)-1] != now {
		r.counts[policy] = append(changes, now)
	}
}

// count returns the present number of placeholders of a policy. It must be called with the lock held.
func (r *recorder) count(policy string) (n int64) {
	for key, replicas := range r.replicas {
		if r.owners[key] == policy {
			n += replicas
		}
	}
	return n
}
