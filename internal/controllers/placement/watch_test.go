package placement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func amount(cpu string) clusterv1.ResourceList {
	return clusterv1.ResourceList{clusterv1.ResourceCPU: resource.MustParse(cpu)}
}

// added is a queue that notes what it is given.
type added struct {
	queue
	names []string
}

func (a *added) AddAfter(request reconcile.Request, after time.Duration) {
	if after == changeDelay {
		a.names = append(a.names, request.Name)
	}
}

// Nothing is lost or decided too early: before all has been read events are not
// looked at, then they queue whom they matter to, as the cache has it.
func TestChanges(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), asks(t, "plain", byScoreless), asks(t, "cpu", `prioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}]}`))...)
	handler := h.c.onChange(h.c.readCluster)
	tell := func(object *clusterv1.ManagedCluster) string {
		q := &added{}
		handler.Update(t.Context(), event.UpdateEvent{ObjectOld: object, ObjectNew: object}, q)
		slices.Sort(q.names)
		return strings.Join(q.names, " ")
	}
	a := managed("a")
	if got := tell(a); got != "" {
		t.Errorf("before anything was read, %s is queued", got)
	}
	h.settled("plain")
	h.settled("cpu")
	if got := tell(a); got != "" {
		t.Errorf("a heartbeat queues %s", got)
	}
	h.change(a, func() { a.Status.Allocatable = amount("4") })
	// The event is an old one: what counts is what the cache has.
	if got := tell(managed("a")); got != "cpu" {
		t.Errorf("another amount queues %q", got)
	}
	h.change(a, func() { a.Labels = map[string]string{"x": "y"} })
	if got := tell(a); got != "cpu plain" {
		t.Errorf("a label queues %q", got)
	}
	q := &added{}
	handler.Delete(t.Context(), event.DeleteEvent{Object: managed("gone")}, q)
	handler.Create(t.Context(), event.CreateEvent{Object: managed("a")}, q)
	if len(q.names) > 0 {
		t.Errorf("%v are queued by what is known", q.names)
	}
}

// Every kind is taken in, and forgotten when it is gone.
func TestReadEveryKind(t *testing.T) {
	score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "usage"}}
	score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpu", Value: 5}}
	h := newHub(t, AdoptAll, append(fleetOf("a"), score, asks(t, "p", `prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}}]}`))...)
	h.settled("p")
	for _, tc := range []struct {
		object client.Object
		read   func(context.Context, client.ObjectKey) ([]types.NamespacedName, error)
	}{
		{score, h.c.readScores},
		{managed("a"), h.c.readCluster},
		{&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, h.c.readSet},
		{&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}, h.c.readBinding},
	} {
		key := client.ObjectKeyFromObject(tc.object)
		if keys, err := tc.read(t.Context(), key); err != nil || len(keys) != 0 {
			t.Errorf("%T: known, and returns %v, %v", tc.object, keys, err)
		}
		if err := h.client.Delete(t.Context(), tc.object); err != nil {
			t.Fatal(err)
		}
		if keys, err := tc.read(t.Context(), key); err != nil || len(keys) != 1 {
			t.Errorf("%T: gone, and returns %v, %v", tc.object, keys, err)
		}
	}
}

// The first reading fails, a cluster goes meanwhile, which nobody tells of; the
// second reading knows better.
func TestLoadingFails(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), asks(t, "p", byScoreless))...)
	h.listFails = errors.New("connection refused")
	if _, err := h.reconcile("p"); err == nil || len(h.writes) > 0 {
		t.Errorf("writes %v, %v", h.writes, err)
	}
	h.listFails = nil
	if err := h.client.Delete(t.Context(), managed("a")); err != nil {
		t.Fatal(err)
	}
	h.c.onChange(h.c.readCluster).Delete(t.Context(), event.DeleteEvent{Object: managed("a")}, &added{})
	h.settled("p")
	if got := h.chosen("p"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("chosen %v, want b", got)
	}
}
