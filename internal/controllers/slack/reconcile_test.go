package slack

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func list(cpu, memory string) v1.ResourceList {
	return clustertest.Amounts("cpu", cpu, "memory", memory)
}

// newNode returns a ready node of 8 CPUs and 32Gi in a pool.
func newNode(name, pool string) *v1.Node {
	allocatable := list("8", "32Gi")
	allocatable[v1.ResourcePods] = resource.MustParse("110")
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}},
		Status:     v1.NodeStatus{Allocatable: allocatable, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}
}

// newPod returns a running pod of 1 CPU and 4Gi on a node.
func newPod(name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list("1",
			"4Gi")}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
}

// newPolicy returns a policy of 50% for a pool.
func newPolicy(name, pool string, changes ...func(*v1alpha1.ResourceSlackSpec)) *v1alpha1.ResourceSlack {
	policy := &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, UID: "uid"},
		Spec:       v1alpha1.ResourceSlackSpec{MinRate: "50%", Pool: v1alpha1.Pool{NodeSelector: map[string]string{"pool": pool}}},
	}
	policy.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{}
	policy.Spec.Default()
	for _, change := range changes {
		change(&policy.Spec)
	}
	return policy
}

// webPool returns a node with four pods of 1 CPU and 4Gi: 50% of the requests is (2, 8Gi), in two placeholders
// of (1, 4Gi), one of them for the biggest pod.
func webPool() []client.Object {
	objects := []client.Object{newNode("a", "web")}
	for i := range 4 {
		objects = append(objects, newPod(fmt.Sprint("web-", i), "a"))
	}
	return objects
}

// newMirrored returns a Deployment of 1 CPU and 4Gi with the annotation.
func newMirrored(name, annotation string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Annotations: map[string]string{v1alpha1.AnnotationSlack: annotation}},
		Spec: appsv1.DeploymentSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list("1", "4Gi")}}},
		}}},
	}
}

// reconcileOnce reconciles a policy and returns it.
func reconcileOnce(t *testing.T, c *Controller, name string) *v1alpha1.ResourceSlack {
	t.Helper()
	key := client.ObjectKey{Name: name}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.ResourceSlack{}
	must.Succeed(t, c.client.Get(t.Context(), key, policy))
	return policy
}

// managed returns the managed objects as "Kind namespace/name", in order.
func managed(t *testing.T, c *Controller) (names []string) {
	t.Helper()
	for _, backend := range slack.Backends() {
		if c.namespaceOf(backend) == "" {
			continue
		}
		for _, kind := range backend.Kinds {
			objects, err := c.list(t.Context(), backend, kind, client.HasLabels{slack.PlaceholderLabel})
			must.Succeed(t, err)
			for _, object := range objects {
				names = append(names, fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName()))
			}
		}
	}
	slices.Sort(names)
	return names
}

// conditionsOf returns the conditions of a policy as "Type=Status Reason", in order.
func conditionsOf(policy *v1alpha1.ResourceSlack) (all []string) {
	for _, c := range policy.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(all)
	return all
}

// webObjects are the objects of policy web.
var webObjects = []string{
	"CapacityBuffer plimsoll-system/web-head", "CapacityBuffer plimsoll-system/web-rate",
	"PodTemplate plimsoll-system/web-head", "PodTemplate plimsoll-system/web-rate",
}

// TestReconcile checks the objects, the status, the metrics and the events of a policy whose slack is
// available.
func TestReconcile(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	policy := reconcileOnce(t, c, "web")
	if diff := cmp.Diff(webObjects, managed(t, c)); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Accepted=Unknown NotAnswered", "Feasible=True Planned", "Provisioned=True Available", "Ready=True Held"},
		conditionsOf(policy)); diff != "" {
		t.Errorf("conditions: -want +got:\n%s", diff)
	}
	s := policy.Status
	// base 4 x (1, 4Gi), target 50% of the base, free 8 - 4 CPUs.
	got := fmt.Sprint(
		s.Base.Cpu(), s.Target.Cpu(), s.Total.Cpu(), s.Available.Cpu(), s.Requests.Cpu(), s.Placeholders, s.Mirrored, s.Placed,
	)
	if want := "4 2 2 4 1 2 0 2"; got != want {
		t.Errorf("base, target, total, available and requests in CPUs, placeholders, mirrored and placed: %s, want %s", got, want)
	}
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	const message = "target 2 CPU and 8Gi memory: 2 placeholders request 2 CPU and 8Gi memory, " +
		"2 fit, 4 CPU and 16Gi memory are free"
	if ready.Message != message {
		t.Errorf("message %q, want %q", ready.Message, message)
	}
	if got := testutil.ToFloat64(c.metrics.amounts.WithLabelValues("web", "available", "cpu")); got != 4 {
		t.Errorf("available CPU in metrics: %v, want 4", got)
	}
	if got := testutil.ToFloat64(c.metrics.placeholders.WithLabelValues("web", "rate")); got != 1 {
		t.Errorf("placeholders of the rate in metrics: %v, want 1", got)
	}
	recorder := c.recorder.(*events.FakeRecorder)
	if got := len(recorder.Events); got != 3 {
		t.Errorf("%d events, want one per condition", got)
	}
	for len(recorder.Events) > 0 {
		if event := <-recorder.Events; !strings.HasPrefix(event, "Normal ") {
			t.Errorf("event %q, want type Normal", event)
		}
	}
	// A second reconciliation changes nothing.
	writes := testutil.ToFloat64(c.metrics.writes.WithLabelValues("CapacityBuffer", "apply"))
	reconcileOnce(t, c, "web")
	if got := testutil.ToFloat64(c.metrics.writes.WithLabelValues("CapacityBuffer", "apply")); got != writes || writes != 2 {
		t.Errorf("%v writes of buffers after the first reconciliation, %v after the second, want 2 and 2", writes, got)
	}
	if len(recorder.Events) != 0 {
		t.Errorf("event %q without a change", <-recorder.Events)
	}
}

// TestObserve checks the objects that a plan is computed from.
func TestObserve(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		policy  *v1alpha1.ResourceSlack
		others  []string // policies that are reconciled first

		conditions []string
		message    string // part of the message of condition Ready
	}{
		"the pods fill the pool": {
			append(webPool(), newPod("x-1", "a"), newPod("x-2", "a"), newPod("x-3", "a"), newPod("x-4", "a")), newPolicy("web", "web"), nil,
			[]string{"Accepted=Unknown NotAnswered", "Feasible=True Planned", "Provisioned=False Provisioning", "Ready=False Provisioning"},
			"4 placeholders request 4 CPU and 16Gi memory, 0 fit, 0 CPU and 0 memory are free, on one node at most 0 CPU and 0 memory",
		},
		"no pods": {
			[]client.Object{newNode("a", "web")},
			newPolicy("web", "web"), nil,
			[]string{"Accepted=True NothingWanted", "Feasible=True Planned", "Provisioned=True NothingWanted", "Ready=True Held"},
			"0 placeholders",
		},
		"two policies select a node": {
			append(webPool(), newPolicy("other", "web")), newPolicy("web", "web"),
			[]string{"other"},
			[]string{"Accepted=Unknown NotAnswered", "Feasible=True Planned", "Provisioned=True Available", "Ready=False PoolsOverlap"},
			"policy other selects nodes of the same pool",
		},
		"an invalid policy": {
			webPool(), newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) { s.MinRate = "much" }), nil,
			[]string{"Feasible=False InvalidPolicy", "Ready=False InvalidPolicy"},
			"spec.minRate",
		},
		"a valid annotation": {
			append(webPool(), newMirrored("api", "1")), newPolicy("web", "web"), nil,
			[]string{
				"Accepted=Unknown NotAnswered", "Feasible=True Planned", "MirrorsFeasible=True Planned", "Provisioned=True Available",
				"Ready=True Held",
			},
			"3 placeholders",
		},
		"an object of the name exists": {
			append(webPool(), &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "web-head", Namespace: testNamespace}}),
			newPolicy("web", "web"), nil,
			[]string{"Accepted=Unknown NotAnswered", "Feasible=True Planned", "Provisioned=True Available", "Ready=False NameTaken"},
			"PodTemplate plimsoll-system/web-head exists, is not managed by Plimsoll",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := controllerOf(t, interceptor.Funcs{}, append(tc.objects, tc.policy)...)
			for _, other := range tc.others {
				reconcileOnce(t, c, other)
			}
			policy := reconcileOnce(t, c, tc.policy.Name)
			if diff := cmp.Diff(tc.conditions, conditionsOf(policy)); diff != "" {
				t.Errorf("conditions: -want +got:\n%s", diff)
			}
			if ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady); ready == nil ||
				!strings.Contains(ready.Message, tc.message) {
				t.Errorf("condition Ready %v, want message %q", ready, tc.message)
			}
		})
	}
}

// TestMirrorsCondition checks that an invalid annotation, and a number above the maximum, are reported in a condition of
// their own, which ends with the last such workload. The metric of the rate remains 1.
func TestMirrorsCondition(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"), newMirrored("api", "lots"),
		newMirrored("big", "9999"))...)
	policy := reconcileOnce(t, c, "web")
	found := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionMirrorsFeasible)
	for _, want := range []string{
		`Deployment shop/api: annotation plimsoll.dev/slack: invalid value "lots"`,
		"Deployment shop/big requires 9999 placeholders, spec.mirrors.maxPerWorkload permits 100",
	} {
		if found == nil || found.Status != metav1.ConditionFalse || !strings.Contains(found.Message, want) {
			t.Errorf("condition %+v, want %q", found, want)
		}
	}
	if got := testutil.ToFloat64(c.metrics.feasible.WithLabelValues("web")); got != 1 {
		t.Errorf("metric feasible is %v, want 1", got)
	}
	for _, name := range []string{"api", "big"} {
		must.Succeed(t, c.client.Delete(t.Context(), newMirrored(name, "")))
	}
	policy = reconcileOnce(t, c, "web")
	if meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionMirrorsFeasible) != nil {
		t.Errorf("without workloads: %v", conditionsOf(policy))
	}
}

// TestUnavailableBackend checks the condition if the API server does not serve CapacityBuffers, or no longer.
func TestUnavailableBackend(t *testing.T) {
	for _, missing := range []error{
		&meta.NoKindMatchError{GroupKind: slack.CapacityBufferKind.GroupKind()},
		apierrors.NewGenericServerResponse(http.StatusNotFound, "list", v1.Resource("capacitybuffers"), "", "404 page not found", 0, true),
	} {
		expectUnavailable(t, missing)
	}
}

func expectUnavailable(t *testing.T, missing error) {
	t.Helper()
	isBuffer := func(object client.Object) bool {
		return object.GetObjectKind().GroupVersionKind() == slack.CapacityBufferKind
	}
	c := controllerOf(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if isBuffer(object) {
				return missing
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Kind == "CapacityBufferList" {
				return missing
			}
			return c.List(ctx, list, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if o, ok := object.(interface{ GetKind() string }); ok && o.GetKind() == slack.CapacityBufferKind.Kind {
				return missing
			}
			return c.Apply(ctx, object, options...)
		},
	}, append(webPool(), newPolicy("web", "web"))...)
	ready := meta.FindStatusCondition(reconcileOnce(t, c, "web").Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != "CapacityBufferMissing" || !strings.Contains(ready.Message, "set backend: Deployment") {
		t.Errorf("condition Ready %v", ready)
	}
}

// TestPrune checks which objects remain when the plan of a policy changes.
func TestPrune(t *testing.T) {
	mirror := newMirrored("api", "2")
	workload, ok := slack.WorkloadOf(mirror)
	if !ok {
		t.Fatal("the Deployment is not mirrored")
	}
	plan, err := slack.Compute(newPolicy("web", "web"), nil, nil, []slack.Workload{workload}, time.Now())
	if err != nil || len(plan.Groups) != 1 {
		t.Fatalf("groups %v, error %v", plan.Groups, err)
	}
	mirrorName := plan.Groups[0].Name
	mirrorObjects := []string{"CapacityBuffer shop/" + mirrorName, "PodTemplate shop/" + mirrorName}
	for name, tc := range map[string]struct {
		change func(t *testing.T, c *Controller, policy *v1alpha1.ResourceSlack)
		want   []string
	}{
		"nothing changed": {func(*testing.T, *Controller, *v1alpha1.ResourceSlack) {}, append(slices.Clone(webObjects), mirrorObjects...)},
		"rate 0 without the biggest pod": {
			func(t *testing.T, c *Controller, policy *v1alpha1.ResourceSlack) {
				policy.Spec.MinRate, policy.Spec.CoverBiggestPod = "0", new(false)
				update(t, c, policy)
			},
			mirrorObjects,
		},
		"another backend": {
			func(t *testing.T, c *Controller, policy *v1alpha1.ResourceSlack) {
				policy.Spec.Backend = v1alpha1.BackendDeployment
				update(t, c, policy)
			},
			[]string{"Deployment placeholders/" + mirrorName, "Deployment placeholders/web-head", "Deployment placeholders/web-rate"},
		},
		"objects of others": {
			func(t *testing.T, c *Controller, _ *v1alpha1.ResourceSlack) {
				for _, template := range []*v1.PodTemplate{
					{ObjectMeta: metav1.ObjectMeta{Name: "web-rate2", Namespace: "shop", Labels: map[string]string{slack.PlaceholderLabel: "web"}}},
					{ObjectMeta: metav1.ObjectMeta{Name: "unlabeled", Namespace: testNamespace}},
				} {
					must.Succeed(t, c.client.Create(t.Context(), template))
				}
			},
			append(slices.Clone(webObjects), mirrorObjects...),
		},
		"an outdated object": {
			func(t *testing.T, c *Controller, _ *v1alpha1.ResourceSlack) {
				outdated := template("web")
				outdated.Name = "web-head2"
				must.Succeed(t, c.client.Create(t.Context(), outdated))
			},
			append(slices.Clone(webObjects), mirrorObjects...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"), newMirrored("api", "2"))...)
			policy := reconcileOnce(t, c, "web")
			tc.change(t, c, policy)
			reconcileOnce(t, c, "web")
			want := slices.Sorted(slices.Values(tc.want))
			if diff := cmp.Diff(want, managed(t, c)); diff != "" {
				t.Errorf("objects: -want +got:\n%s", diff)
			}
			if name != "objects of others" {
				return
			}
			for _, key := range []client.ObjectKey{{Namespace: "shop", Name: "web-rate2"}, {Namespace: testNamespace, Name: "unlabeled"}} {
				if err := c.client.Get(t.Context(), key, &v1.PodTemplate{}); err != nil {
					t.Errorf("%s was deleted: %v", key, err)
				}
			}
		})
	}
}

// update updates a policy, with a new generation.
func update(t *testing.T, c *Controller, policy *v1alpha1.ResourceSlack) {
	t.Helper()
	policy.Generation++
	must.Succeed(t, c.client.Update(t.Context(), policy))
}

// TestDeletedPolicy checks the only condition of a policy that has lost its placeholders and is not yet gone, and that its objects, tracker
// and metrics are deleted.
func TestDeletedPolicy(t *testing.T) {
	policy := newPolicy("web", "web")
	policy.Finalizers = []string{"example.com/other"}
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), policy)...)
	must.Succeed(t, c.client.Delete(t.Context(), reconcileOnce(t, c, "web")))
	first := reconcileOnce(t, c, "web")
	if diff := cmp.Diff([]string{"Ready=False Deleted"}, conditionsOf(first)); diff != "" {
		t.Errorf("conditions: -want +got:\n%s", diff)
	}
	if second := reconcileOnce(t, c, "web"); second.ResourceVersion != first.ResourceVersion {
		t.Error("the status is written again")
	}
	first.Finalizers = nil
	must.Succeed(t, c.client.Update(t.Context(), first))
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(policy)}); err != nil {
		t.Fatal(err)
	}
	if objects := managed(t, c); len(objects) > 0 || len(c.trackers) > 0 {
		t.Errorf("objects %v, %d trackers", objects, len(c.trackers))
	}
	if n := testutil.CollectAndCount(c.metrics.amounts); n > 0 {
		t.Errorf("%d series of a deleted policy", n)
	}
}

// TestRestart checks that a new controller resumes from existing objects: placeholders that are no
// longer needed remain until the end of the cool-down.
func TestRestart(t *testing.T) {
	first := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	reconcileOnce(t, first, "web")
	for i := range 2 {
		must.Succeed(t, first.client.Delete(t.Context(), newPod(fmt.Sprint("web-", i), "a")))
	}
	// Two pods remain: 50% is (1, 4Gi), the placeholder for the biggest pod.
	second := New(first.client, events.NewFakeRecorder(100), prometheus.NewRegistry(), testNamespace, podNamespace)
	now := time.Now()
	second.now = func() time.Time { return now }
	for _, step := range []struct {
		after        time.Duration
		placeholders int64
	}{{0, 2}, {9 * time.Minute, 2}, {10 * time.Minute, 1}} {
		second.now = func() time.Time { return now.Add(step.after) }
		if got := reconcileOnce(t, second, "web").Status.Placeholders; got != step.placeholders {
			t.Errorf("after %s: %d placeholders, want %d", step.after, got, step.placeholders)
		}
	}
}

// TestMinimumWithoutNodes checks that a minimum is held when the pool has lost its last node, also by a controller that starts then, and
// that a changed selector, which may be a typo, keeps the objects.
func TestMinimumWithoutNodes(t *testing.T) {
	first := controllerOf(t, interceptor.Funcs{}, newNode("a", "web"), newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) {
		s.MinRate, s.Minimum = "0", &v1alpha1.Amount{CPU: new(resource.MustParse("3"))}
	}))
	reconcileOnce(t, first, "web")
	must.Succeed(t, first.client.Delete(t.Context(), newNode("a", "web")))
	second := New(first.client, events.NewFakeRecorder(100), prometheus.NewRegistry(), testNamespace, podNamespace)
	policy := reconcileOnce(t, second, "web")
	ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	if policy.Status.Placeholders != 2 || ready.Reason != reasonProvisioning || policy.Status.NodeShape.Cpu().String() != "8" {
		t.Errorf("%d placeholders, condition %+v, node %v", policy.Status.Placeholders, ready, policy.Status.NodeShape)
	}
	before := contents(t, second)
	policy.Spec.Pool.NodeSelector["pool"] = "typo"
	update(t, second, policy)
	policy = reconcileOnce(t, second, "web")
	ready = meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != reasonPoolEmpty || !strings.Contains(ready.Message, "set spec.pool.nodeShape to hold the minimum") {
		t.Errorf("condition %+v", ready)
	}
	if diff := cmp.Diff(before, contents(t, second)); diff != "" || len(before) != 2 {
		t.Errorf("objects after a change of the selector: -before +after:\n%s", diff)
	}
}

// TestApplyWritesMissingFields checks that a changed field is written again, and that fields of other
// clients remain.
func TestApplyWritesMissingFields(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	reconcileOnce(t, c, "web")
	buffer := &unstructured.Unstructured{}
	buffer.SetGroupVersionKind(slack.CapacityBufferKind)
	key := client.ObjectKey{Namespace: testNamespace, Name: "web-rate"}
	must.Succeed(t, c.client.Get(t.Context(), key, buffer))
	buffer.Object["spec"].(map[string]any)["replicas"] = int64(99)
	buffer.SetAnnotations(map[string]string{"example.com/note": "kept"})
	must.Succeed(t, c.client.Update(t.Context(), buffer))
	reconcileOnce(t, c, "web")
	must.Succeed(t, c.client.Get(t.Context(), key, buffer))
	if replicas, _, _ := unstructured.NestedInt64(buffer.Object, "spec", "replicas"); replicas != 1 ||
		buffer.GetAnnotations()["example.com/note"] != "kept" {
		t.Errorf("replicas %d, annotations %v; want 1 and the annotation", replicas, buffer.GetAnnotations())
	}
}

// TestJoinReasons checks that a message has at most five reasons.
func TestJoinReasons(t *testing.T) {
	for want, reasons := range map[string][]string{
		"":                          nil,
		"a; b":                      {"a", "b"},
		"a; b; c; d; e; and 2 more": {"a", "b", "c", "d", "e", "f", "g"},
	} {
		if got := joinReasons(reasons); got != want {
			t.Errorf("joinReasons(%v) = %q, want %q", reasons, got, want)
		}
	}
}
