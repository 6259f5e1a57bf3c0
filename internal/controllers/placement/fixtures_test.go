package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// hub is a fake API server with optional faults, and a controller that uses it.
type hub struct {
	*testing.T
	client client.WithWatch
	c      *Controller
	adopt  Adopt
	now    time.Time
	events *events.FakeRecorder
	// writes are the attempted writes, such as "update p-decision-1". fail, if set, returns
	// the error of a write. wrote, if set, is called after each successful write.
	writes []string
	fail   func(write string) error
	wrote  func()
	// ocmCRDs is set for a hub with the CRDs of Open Cluster Management, which does not serve creationVersion.
	ocmCRDs bool
	// dropInitialStatus is set for a hub whose creationVersion has a subresource status.
	dropInitialStatus bool
	// drop, if set, removes fields that the hub does not store from a written object.
	drop func(client.Object)
	// listFails and liveFails are the errors of listing PlacementDecisions and of reads that
	// bypass the cache.
	listFails, liveFails error
	// workloadReads is the number of reads of objects that workloads refer to.
	workloadReads int
}

// newHub returns a hub with the set web bound to namespace ns.
func newHub(t *testing.T, adopt Adopt, objects ...client.Object) *hub {
	t.Helper()
	h := &hub{T: t, adopt: adopt, now: time.Unix(1_795_239_886, 0)}
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	binding.Spec.ClusterSet = "web"
	// try records a write and, unless fail returns an error, executes it.
	try := func(verb string, object client.Object, write func() error) error {
		text := verb + " " + object.GetName()
		h.writes = append(h.writes, text)
		if h.fail != nil {
			if err := h.fail(text); err != nil {
				return err
			}
		}
		err := write()
		if err == nil && h.wrote != nil {
			h.wrote()
		}
		return err
	}
	h.client = fake.NewClientBuilder().WithScheme(kube.SchemeWith(fleet.InstallHub)).WithObjects(append(objects, set, binding)...).
		WithStatusSubresource(&v1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}).
		WithIndex(
			&clusterv1beta1.PlacementDecision{},
			placementIndex,
			func(o client.Object) []string {
				return []string{o.GetLabels()[clusterv1beta1.PlacementLabel]}
			},
		).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if untyped, ok := object.(*unstructured.Unstructured); ok {
					if h.ocmCRDs {
						return &meta.NoKindMatchError{GroupKind: creationKind.GroupKind(), SearchedVersions: []string{creationVersion}}
					}
					return try("create", object, func() error { return h.createComplete(ctx, c, untyped) })
				}
				return try("create", object, func() error { return c.Create(ctx, object, options...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				return try("delete", object, func() error { return c.Delete(ctx, object, options...) })
			},
			SubResourceUpdate: func(
				ctx context.Context, c client.Client, sub string, object client.Object,
				options ...client.SubResourceUpdateOption,
			) error {
				return try("update", object, func() error {
					if h.drop == nil {
						return c.SubResource(sub).Update(ctx, object, options...)
					}
					// The object keeps the dropped fields, as with a real client.
					stored := object.DeepCopyObject().(client.Object)
					h.drop(stored)
					err := c.SubResource(sub).Update(ctx, stored, options...)
					object.SetResourceVersion(stored.GetResourceVersion())
					return err
				})
			},
			SubResourcePatch: func(
				ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
				options ...client.SubResourcePatchOption,
			) error {
				return try("status", object, func() error {
					err := c.SubResource(sub).Patch(ctx, object, patch, options...)
					if err == nil && h.drop != nil {
						h.drop(object)
						err = c.SubResource(sub).Update(ctx, object)
					}
					return err
				})
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, decisions := list.(*clusterv1beta1.PlacementDecisionList); decisions && h.listFails != nil {
					return h.listFails
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
	h.restart()
	return h
}

// createComplete creates an object of creationVersion, which has no subresource status.
func (h *hub) createComplete(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	if object.GroupVersionKind() != creationKind {
		return fmt.Errorf("created %s, want %s", object.GroupVersionKind(), creationKind)
	}
	typed := &clusterv1beta1.PlacementDecision{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return err
	}
	typed.TypeMeta = metav1.TypeMeta{}
	decisions := typed.Status.Decisions
	if err := c.Create(ctx, typed); err != nil {
		return err
	}
	if h.dropInitialStatus {
		object.SetResourceVersion(typed.ResourceVersion)
		delete(object.Object, "status")
		return nil
	}
	typed.Status.Decisions = decisions
	if h.drop != nil {
		h.drop(typed)
	}
	if err := c.SubResource("status").Update(ctx, typed); err != nil {
		return err
	}
	object.SetResourceVersion(typed.ResourceVersion)
	return nil
}

// live reads from the API server, bypassing the cache.
type live struct {
	client.Reader
	h *hub
}

func (l live) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*unstructured.Unstructured); ok {
		l.h.workloadReads++
	}
	if l.h.liveFails != nil {
		return l.h.liveFails
	}
	return l.Reader.Get(ctx, key, object, options...)
}

// restart replaces the controller by a new one without state.
func (h *hub) restart() {
	h.events = events.NewFakeRecorder(100)
	h.c = New(h.client, live{h.client, h}, h.events, prometheus.NewRegistry(), h.adopt)
	h.c.now = func() time.Time { return h.now }
}

// reconcile reconciles a placement of namespace ns.
func (h *hub) reconcile(name string) (reconcile.Result, error) {
	h.Helper()
	h.writes = nil
	return h.c.Reconcile(h.Context(), reconcile.Request{NamespacedName: keyOf(name)})
}

// reconciled reconciles a placement and returns the result.
func (h *hub) reconciled(name string) reconcile.Result {
	h.Helper()
	result, err := h.reconcile(name)
	must.Succeed(h, err)
	return result
}

// observe passes a change of a cluster to the controller, and returns the affected placements.
func (h *hub) observe(cluster string) []types.NamespacedName {
	h.Helper()
	keys, err := h.c.read(h.Context(), managed(cluster))
	must.Succeed(h, err)
	return keys
}

// settled reconciles a placement until nothing is written, and returns the last result.
func (h *hub) settled(name string) reconcile.Result {
	h.Helper()
	for range 10 {
		result := h.reconciled(name)
		if len(h.writes) == 0 {
			return result
		}
	}
	h.Fatal("still writing after 10 reconciliations")
	return reconcile.Result{}
}

// status returns the status of a placement, and the status and reason of a condition.
func (h *hub) status(name, condition string) (clusterv1beta1.PlacementStatus, string) {
	h.Helper()
	object := &v1beta1.Placement{}
	must.Succeed(h, h.client.Get(h.Context(), keyOf(name), object))
	if c := meta.FindStatusCondition(object.Status.Conditions, condition); c != nil {
		return object.Status, string(c.Status) + " " + c.Reason
	}
	return object.Status, ""
}

// slices returns the PlacementDecisions of a placement as text, such as
// "p-decision-1 0 canary: a b".
func (h *hub) slices(name string) (out []string) {
	h.Helper()
	var list clusterv1beta1.PlacementDecisionList
	must.Succeed(h, h.client.List(context.Background(), &list, client.MatchingLabels{clusterv1beta1.PlacementLabel: name}))
	for i := range list.Items {
		object := &list.Items[i]
		var names []string
		for _, d := range object.Status.Decisions {
			names = append(names, d.ClusterName)
		}
		head := strings.TrimSpace(
			fmt.Sprintf("%s %s %s", object.Name, object.Labels[clusterv1beta1.DecisionGroupIndexLabel],
				object.Labels[clusterv1beta1.DecisionGroupNameLabel]),
		)
		out = append(out, head+": "+strings.Join(names, " "))
	}
	return out
}

// chosen returns the selected clusters of a placement, sorted.
func (h *hub) chosen(name string) (clusters []string) {
	for _, s := range h.slices(name) {
		_, names, _ := strings.Cut(s, ":")
		clusters = append(clusters, strings.Fields(names)...)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// change reads an object, modifies it and updates it in the API server.
func (h *hub) change(object client.Object, modify func()) {
	h.Helper()
	must.Succeed(h, h.client.Get(h.Context(), client.ObjectKeyFromObject(object), object))
	modify()
	must.Succeed(h, h.client.Update(h.Context(), object))
}

// respecify replaces the spec of a placement.
func (h *hub) respecify(name, spec string) {
	h.Helper()
	object := newPlacement(h.T, name, "{}")
	h.change(object, func() {
		object.Spec = newPlacement(h.T, name, spec).Spec
		object.Generation++ // as the API server does
	})
}

// relabel replaces the labels of a cluster and passes it to the controller.
func (h *hub) relabel(name, key, value string) {
	h.Helper()
	object := managed(name)
	h.change(object, func() { object.Labels = map[string]string{key: value} })
	h.observe(name)
}

func managed(name string) *fleet.ManagedCluster {
	return &fleet.ManagedCluster{ManagedCluster: clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// fleetOf returns clusters with the given names.
func fleetOf(names ...string) (out []client.Object) {
	for _, name := range names {
		out = append(out, managed(name))
	}
	return out
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// newPlacement returns a placement in namespace ns with a spec in YAML.
func newPlacement(t *testing.T, name, spec string) *v1beta1.Placement {
	t.Helper()
	object := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1}}
	must.Succeed(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec))
	return object
}

// decisionOf returns a PlacementDecision of a placement.
func decisionOf(placement, name string, clusters ...string) *clusterv1beta1.PlacementDecision {
	object := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name,
		Labels: map[string]string{
			clusterv1beta1.PlacementLabel:          placement,
			clusterv1beta1.DecisionGroupIndexLabel: "0",
			clusterv1beta1.DecisionGroupNameLabel:  "",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.Kind, Name: placement, UID: types.UID(
				placement,
			), Controller: new(true),
		}},
	}}
	for _, c := range clusters {
		object.Status.Decisions = append(object.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return object
}
