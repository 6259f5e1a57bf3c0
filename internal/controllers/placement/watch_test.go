package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func amount(cpu string) clusterv1.ResourceList {
	return clusterv1.ResourceList{clusterv1.ResourceCPU: resource.MustParse(cpu)}
}

// added is a queue that records the requests added with changeDelay.
type added struct {
	queue
	names []string
}

func (a *added) AddAfter(request reconcile.Request, after time.Duration) {
	if after == changeDelay {
		a.names = append(a.names, request.Name)
	}
}

// Events before the initial read are ignored. Later events queue the affected placements;
// the content of an object is read from the cache, not from the event.
func TestEventsQueueAffectedPlacements(t *testing.T) {
	h := newHub(
		t, AdoptAll,
		append(fleetOf("a", "b"), newPlacement(t, "plain", withoutScores),
			newPlacement(t, "cpu", `prioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}]}`))...,
	)
	onChange := h.c.onChange()
	update := func(object *fleet.ManagedCluster) string {
		q := &added{}
		onChange.Update(t.Context(), event.UpdateEvent{ObjectOld: object, ObjectNew: object}, q)
		slices.Sort(q.names)
		return strings.Join(q.names, " ")
	}
	a := managed("a")
	if got := update(a); got != "" {
		t.Errorf("before the initial read, %s is queued", got)
	}
	h.settled("plain")
	h.settled("cpu")
	if got := update(a); got != "" {
		t.Errorf("heartbeat queues %s", got)
	}
	h.change(a, func() { a.Status.Allocatable = amount("4") })
	// The event has outdated content; the cache is used.
	if got := update(managed("a")); got != "cpu" {
		t.Errorf("changed CPU queues %q", got)
	}
	h.change(a, func() { a.Labels = map[string]string{"x": "y"} })
	if got := update(a); got != "cpu plain" {
		t.Errorf("changed label queues %q", got)
	}
	q := &added{}
	onChange.Delete(t.Context(), event.DeleteEvent{Object: managed("gone")}, q)
	onChange.Create(t.Context(), event.CreateEvent{Object: managed("a")}, q)
	if len(q.names) > 0 {
		t.Errorf("events without a change queue %v", q.names)
	}
}

// prioritized is a priority queue that records the options of added requests.
type prioritized struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	options []priorityqueue.AddOpts
}

func (p *prioritized) AddWithOpts(o priorityqueue.AddOpts, _ ...reconcile.Request) {
	p.options = append(p.options, o)
}

// A new placement waits for objects that are created together with it, and for changes of other placements; a change of
// a placement does not wait.
func TestOnPlacementChange(t *testing.T) {
	object, q, changes := newPlacement(t, "p", "{}"), &prioritized{}, (&Controller{}).onPlacementChange()
	changes.Create(t.Context(), event.CreateEvent{Object: object}, q)
	changes.Update(t.Context(), event.UpdateEvent{ObjectOld: object, ObjectNew: object}, q)
	changes.Delete(t.Context(), event.DeleteEvent{Object: object}, q)
	want := []priorityqueue.AddOpts{
		{
			Priority: new(handler.LowPriority),
			After:    changeDelay,
		},
		{Priority: new(setup.ChangePriority)},
		{Priority: new(setup.ChangePriority)},
	}
	if diff := cmp.Diff(want, q.options); diff != "" {
		t.Error(diff)
	}
}

// Objects of each kind are read, and removed when they are deleted.
func TestReadEveryKind(t *testing.T) {
	score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "usage"}}
	score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpu", Value: 5}}
	h := newHub(
		t, AdoptAll,
		append(
			fleetOf("a"), score,
			newPlacement(t, "p",
				`prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}}]}`),
		)...,
	)
	h.settled("p")
	for _, object := range []client.Object{
		score, managed("a"), &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}},
	} {
		if keys, err := h.c.read(t.Context(), object); err != nil || len(keys) != 0 {
			t.Errorf("%T: unchanged, affects %v, %v", object, keys, err)
		}
		must.Succeed(t, h.client.Delete(t.Context(), object))
		if keys, err := h.c.read(t.Context(), object); err != nil || len(keys) != 1 {
			t.Errorf("%T: deleted, affects %v, %v", object, keys, err)
		}
	}
}

// The initial read fails, and a cluster is deleted before the second attempt. The cluster must
// not be in the state.
func TestInitialReadFails(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), newPlacement(t, "p", withoutScores))...)
	h.listFails = errors.New("connection refused")
	if _, err := h.reconcile("p"); err == nil || len(h.writes) > 0 {
		t.Errorf("writes %v, %v", h.writes, err)
	}
	h.listFails = nil
	must.Succeed(t, h.client.Delete(t.Context(), managed("a")))
	h.c.onChange().Delete(t.Context(), event.DeleteEvent{Object: managed("a")}, &added{})
	h.settled("p")
	if got := h.chosen("p"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("chosen %v, want b", got)
	}
}

// outdated is a cache that lacks the last changes of PlacementDecisions.
type outdated struct{ client.Client }

func (o outdated) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, decisions := list.(*clusterv1beta1.PlacementDecisionList); decisions {
		return nil
	}
	return o.Client.List(ctx, list, options...)
}

// reportCapacity sets the capacity of cluster a, 10 CPUs on one node.
func (h *hub) reportCapacity() {
	h.Helper()
	object := &fleet.ClusterCapacity{}
	text := fmt.Sprintf(`{"metadata": {"namespace": "a", "name": "plimsoll"}, "status": {"cluster": "a", "observedAt": %q,
		"classes": [{}], "groups": [{"class": 0, "nodes": 1, "free": {"cpu": "10", "pods": "100"}}]}}`, h.now.UTC().Format(time.RFC3339))
	must.Succeed(h, errors.Join(json.Unmarshal([]byte(text), object), object.Err, h.c.load(h.Context())))
	h.c.state.SetCapacity(object)
}

// A controller decides a placement and is replaced. The cache of the next one lacks the decision: its promise of 8 of 10 CPUs must hold.
func TestPromisesAreNotReadFromCache(t *testing.T) {
	withWorkload := func(name string) *v1beta1.Placement {
		p := newPlacement(t, name, "{numberOfClusters: 1}")
		p.Annotations = map[string]string{v1beta1.AnnotationWorkload: `{"replicas": 8, "requireFit": true,
			"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}}`}
		return p
	}
	h := newHub(t, AdoptAll, append(fleetOf("a"), withWorkload("p"))...)
	h.reportCapacity()
	// The promise ends, and the summary becomes too old, although no object changes.
	if result := h.settled("p"); !slices.Equal(h.chosen("p"), []string{"a"}) || result.RequeueAfter != maxRequeue {
		t.Fatalf("chosen %v, decided again after %s, want a and %s", h.chosen("p"), result.RequeueAfter, maxRequeue)
	}
	h.restart()
	h.c.client = outdated{h.client}
	h.reportCapacity()
	must.Succeed(t, h.client.Create(t.Context(), withWorkload("q")))
	h.reconciled("q")
	if got := h.chosen("q"); len(got) > 0 {
		t.Errorf("the same room is promised twice: chosen %v", got)
	}
}

// A change of the replicas alone writes the annotation of a PlacementDecision, and not the decisions in its status.
func TestOnlyReplicasChange(t *testing.T) {
	const workload = `{"replicas": %d, "template": {"spec": {"containers": [{"name": "c"}]}}}`
	p := newPlacement(t, "p", "{}")
	p.Annotations = map[string]string{v1beta1.AnnotationWorkload: fmt.Sprintf(workload, 2)}
	h := newHub(t, AdoptAll, append(fleetOf("a"), p)...)
	h.settled("p")
	h.change(p, func() { p.Annotations[v1beta1.AnnotationWorkload] = fmt.Sprintf(workload, 3) })
	if _, err := h.reconcile("p"); err != nil || slices.Contains(h.writes, "update p-decision-1") {
		t.Errorf("writes %v, %v", h.writes, err)
	}
	var decision clusterv1beta1.PlacementDecision
	must.Succeed(t, h.client.Get(t.Context(), keyOf("p-decision-1"), &decision))
	if got := decision.Annotations[v1beta1.AnnotationReplicas]; !strings.HasPrefix(got, `{"a":{"replicas":3,`) {
		t.Errorf("annotation %s", got)
	}
}

// The object that a workload refers to is read after a change of the placement and every five minutes, not for each decision: a change of
// a cluster decides many placements.
func TestReadingsOfWorkloads(t *testing.T) {
	deployment := &unstructured.Unstructured{}
	must.Succeed(t, yaml.Unmarshal([]byte(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: web},
		spec: {template: {spec: {containers: [{name: c}]}}}}`), &deployment.Object))
	const spec = "{workload: {replicas: %d, ref: {kind: Deployment, name: web}}}"
	h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", fmt.Sprintf(spec, 1)), deployment)...)
	for _, step := range []struct {
		name         string
		wait         time.Duration
		newReplicas  int // 0 if the spec does not change
		reads        int
		requeueAfter time.Duration
	}{
		{"first decision", 0, 0, 1, 5 * time.Minute},
		{"a minute later", time.Minute, 0, 1, 4 * time.Minute},
		{"other replicas", time.Minute, 2, 2, 5 * time.Minute},
		{"four minutes later", 4 * time.Minute, 0, 2, time.Minute},
		{"five minutes later", time.Minute, 0, 3, 5 * time.Minute},
		{"the clock is set back", -time.Hour, 0, 4, 5 * time.Minute},
	} {
		h.now = h.now.Add(step.wait)
		if step.newReplicas > 0 {
			h.respecify("p", fmt.Sprintf(spec, step.newReplicas))
		}
		if result := h.settled("p"); h.workloadReads != step.reads || result.RequeueAfter != step.requeueAfter {
			t.Errorf("%s: %d reads, next decision after %s, want %d and %s", step.name, h.workloadReads, result.RequeueAfter,
				step.reads, step.requeueAfter)
		}
	}
	h.restart()
	h.settled("p")
	if got := h.workloadReads; got != 5 {
		t.Errorf("%d reads after a restart, want 5", got)
	}
}

// A placement whose expressions take long to evaluate is not decided before that, and
// no worker waits for it: it is queued again when its decision can be made.
func TestExpressionsAreEvaluatedAside(t *testing.T) {
	const claims = "managedCluster.status.clusterClaims"
	spec := `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["` +
		claims + ".all(a, " + claims + ".all(b, " + claims + `.all(c, a.name != '' || b == c)))"]}}}]`
	objects := fleetOf("a", "b", "c")
	for _, object := range objects {
		cluster := object.(*fleet.ManagedCluster)
		for i := range 30 {
			claim := clusterv1.ManagedClusterClaim{Name: fmt.Sprint("claim", i)}
			cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, claim)
		}
	}
	placement := newPlacement(t, "p", spec)
	h := newHub(t, AdoptAll, append(objects, placement)...)
	if result, err := h.reconcile("p"); err != nil || len(h.writes) != 0 || !result.IsZero() {
		t.Fatalf("writes %v, %+v, %v", h.writes, result, err)
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	must.Succeed(t, h.c.evaluateExpressions(t.Context(), q))
	request, _ := q.Get()
	if request.NamespacedName != keyOf("p") {
		t.Fatalf("queued %v", request)
	}
	h.settled("p")
	if got := h.chosen("p"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("chosen %v", got)
	}
}
