package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// answer sets the status of a buffer, as an autoscaler does.
func answer(t *testing.T, c *Controller, name string, status map[string]any) {
	t.Helper()
	buffer := &unstructured.Unstructured{}
	buffer.SetGroupVersionKind(slack.CapacityBufferKind)
	must.Succeed(t, c.client.Get(t.Context(), client.ObjectKey{Namespace: testNamespace, Name: name}, buffer))
	buffer.Object["status"] = status
	must.Succeed(t, c.client.Update(t.Context(), buffer))
}

// statusOf returns a status with conditions of the form "Type=Status message".
func statusOf(replicas int64, conditions ...string) map[string]any {
	var list []any
	for _, condition := range conditions {
		name, rest, _ := strings.Cut(condition, "=")
		status, message, _ := strings.Cut(rest, " ")
		list = append(list, map[string]any{"type": name, "status": status, "message": message})
	}
	return map[string]any{"replicas": replicas, "conditions": list}
}

// TestAccepted checks the conditions Accepted and Ready for the reports of an autoscaler about the two buffers
// of policy web, each of one placeholder.
func TestAccepted(t *testing.T) {
	good := statusOf(1, "ReadyForProvisioning=True ready", "Provisioning=True")
	for name, tc := range map[string]struct {
		head, rate map[string]any
		accepted   string
		ready      string
		message    string
	}{
		"no answers":        {nil, nil, "Unknown NotAnswered", "True Held", "no autoscaler has reported on 2 of 2 buffers"},
		"both are accepted": {good, good, "True Accepted", "True Held", "takes 2 buffers into account in full"},
		"added, but refused": {
			statusOf(1, "ReadyForProvisioning=False violates PodSecurity", "Provisioning=True"), good, "False Refused", "False Refused",
			"the autoscaler refuses CapacityBuffer plimsoll-system/web-head: violates PodSecurity",
		},
		"limited by a quota": {
			good, statusOf(0, "ReadyForProvisioning=True", "LimitedByQuotas=True limited from 1 to 0 due to quotas: small"),
			"False Limited", "False Limited",
			"the autoscaler limits CapacityBuffer plimsoll-system/web-rate: limited from 1 to 0 due to quotas: small",
		},
		"one limited, one refused": {
			statusOf(0, "ReadyForProvisioning=True", "LimitedByQuotas=True limited"), statusOf(0, "ReadyForProvisioning=False no"),
			"False Refused", "False Refused",
			"the autoscaler refuses CapacityBuffer plimsoll-system/web-rate: no; CapacityBuffer plimsoll-system/web-head: limited",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
			reconcileOnce(t, c, "web")
			for buffer, status := range map[string]map[string]any{"web-head": tc.head, "web-rate": tc.rate} {
				if status != nil {
					answer(t, c, buffer, runtime.DeepCopyJSON(status))
				}
			}
			policy := reconcileOnce(t, c, "web")
			want := []string{"Accepted=" + tc.accepted, "Feasible=True Planned", "Provisioned=True Available", "Ready=" + tc.ready}
			if diff := cmp.Diff(want, conditionsOf(policy)); diff != "" {
				t.Errorf("conditions: -want +got:\n%s", diff)
			}
			accepted := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAccepted)
			if !strings.Contains(accepted.Message, tc.message) {
				t.Errorf("message %q, want %q", accepted.Message, tc.message)
			}
			warned := false
			for recorded := c.recorder.(*events.FakeRecorder).Events; len(recorded) > 0; {
				warned = strings.Contains(<-recorded, "Warning "+strings.TrimPrefix(tc.accepted, "False ")) || warned
			}
			if warned != strings.HasPrefix(tc.accepted, "False") {
				t.Errorf("warning event %t for condition Accepted=%s", warned, tc.accepted)
			}
		})
	}
}

// TestNotPlaced checks that slack is not ready if the autoscaler has no capacity for an accepted buffer, although its placeholders fit by
// the plan: while its event is valid, and not older than the time since which all fit, or while its condition says so.
func TestNotPlaced(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const message = "pod didn't trigger scale-up: 2 max node group size reached, 1 Insufficient cpu, 1 Insufficient cpu"
	accepted := statusOf(1, "ReadyForProvisioning=True", "Provisioning=True")
	for name, tc := range map[string]struct {
		status map[string]any
		buffer string
		count  int32
		at     time.Duration
		want   string
	}{
		"just now":        {accepted, "web-rate", 1, 0, "NotPlaced"},
		"no longer":       {accepted, "web-rate", 1, -time.Minute, "Held"},
		"seldom repeated": {accepted, "web-rate", 30, -5 * time.Minute, "NotPlaced"},
		"before it fit":   {accepted, "web-rate", 30, -5*time.Minute - 31*time.Second, "Held"},
		"another buffer":  {accepted, "web", 1, 0, "Held"},
		"not accepted":    {nil, "web-rate", 1, 0, "Held"},
		"the condition": {
			statusOf(1, "ReadyForProvisioning=True", "Provisioning=False 1/1 required new capacity"), "web", 1, 0, "NotPlaced",
		},
		"the condition of a moment ago": {
			statusOf(1, "ReadyForProvisioning=True", "Provisioning=False 1/1 required new capacity"), "web", 1, 5 * time.Minute, "Held",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
			policy := reconcileOnce(t, c, "web")
			meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProvisioned).LastTransitionTime = metav1.NewTime(
				noon.Add(-5*time.Minute - 30*time.Second),
			)
			must.Succeed(t, c.client.Status().Update(t.Context(), policy))
			c.now = func() time.Time { return noon }
			if tc.at > 0 { // all placeholders fit for less than a minute
				c.now = func() time.Time { return noon.Add(-5 * time.Minute) }
			}
			answer(t, c, "web-head", runtime.DeepCopyJSON(accepted))
			answer(t, c, "web-rate", runtime.DeepCopyJSON(tc.status))
			reconcileOnce(t, c, "web")
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1.Event{
				InvolvedObject: v1.ObjectReference{Namespace: testNamespace, Name: tc.buffer}, Message: message,
				Reason: slack.NotTriggered, Count: tc.count,
				Source: v1.EventSource{Component: "cluster-autoscaler"}, LastTimestamp: metav1.NewTime(noon.Add(tc.at)),
			})
			must.Succeed(t, err)
			q, event := &countingQueue{}, &unstructured.Unstructured{Object: content}
			handleChange(t, c.eventHandler(), nil, event, q)
			if len(q.added) != map[bool]int{true: 1}[tc.buffer == "web-rate"] {
				t.Errorf("enqueued %v", q.added)
			}
			ready := meta.FindStatusCondition(reconcileOnce(t, c, "web").Status.Conditions, v1alpha1.ConditionReady)
			if ready.Reason != tc.want || tc.buffer == "web-rate" && tc.want == "NotPlaced" && !strings.Contains(ready.Message,
				"plimsoll-system/web-rate: pod didn't trigger scale-up: 1 Insufficient cpu, 2 max node group size reached") {
				t.Errorf("condition %+v, want %s", ready, tc.want)
			}
			if handleChange(t, c.eventHandler(), event, nil, q); len(c.refusals) != 0 {
				t.Errorf("refusals %v after the event was deleted", c.refusals)
			}
		})
	}
}

// TestMirrorsThatLack checks that what the mirrors of a workload lack is in other conditions than Ready, and that Ready still tells what
// the placeholders of the rate lack.
func TestMirrorsThatLack(t *testing.T) {
	good := statusOf(1, "ReadyForProvisioning=True", "Provisioning=True")
	unplaced := statusOf(1, "ReadyForProvisioning=True", "Provisioning=False 1/1 required new capacity")
	for name, tc := range map[string]struct {
		cpu, buffer string // the request of the workload, and the buffer with the status, "" for the mirror's
		status      map[string]any
		want        []string
	}{
		"fits no node": {"1000", "", good, []string{"MirrorsFeasible=True Planned", "Provisioned=False Provisioning", "Ready=True Held"}},
		"refused":      {"1", "", statusOf(0, "ReadyForProvisioning=False no"), []string{"Accepted=False Refused", "Ready=True Held"}},
		"not placed":   {"1", "", unplaced, []string{"MirrorsFeasible=False NotPlaced", "Provisioned=True Available", "Ready=True Held"}},
		"the rate is not placed": {
			"1000", "web-rate", unplaced,
			[]string{"MirrorsFeasible=True Planned", "Provisioned=False Provisioning", "Ready=False NotPlaced"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			workload := newMirrored("api", "1")
			workload.Namespace = testNamespace
			workload.Spec.Template.Spec.Containers[0].Resources.Requests = list(tc.cpu, "4Gi")
			c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"), workload)...)
			reconcileOnce(t, c, "web")
			for _, object := range managed(t, c) {
				buffer, isBuffer := strings.CutPrefix(object, "CapacityBuffer "+testNamespace+"/")
				switch {
				case !isBuffer:
				case buffer == tc.buffer || tc.buffer == "" && slack.IsMirrorName(buffer):
					answer(t, c, buffer, runtime.DeepCopyJSON(tc.status))
				default:
					answer(t, c, buffer, runtime.DeepCopyJSON(good))
				}
			}
			c.now = func() time.Time { return time.Now().Add(2 * staleTime) }
			got := conditionsOf(reconcileOnce(t, c, "web"))
			for _, want := range tc.want {
				if !slices.Contains(got, want) {
					t.Errorf("conditions %v, want %s", got, want)
				}
			}
		})
	}
}

// TestCopyOfTemplate checks that the copy that Cluster Autoscaler made of the template of a deleted buffer is deleted before
// the buffer is created again, and that other templates with such a name are not.
func TestCopyOfTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		owner *metav1.OwnerReference
		gone  bool
	}{
		"of a deleted buffer": {&metav1.OwnerReference{Kind: "CapacityBuffer", Name: "web-head", UID: "old", Controller: new(true)}, true},
		"of another buffer":   {&metav1.OwnerReference{Kind: "CapacityBuffer", Name: "web", UID: "old", Controller: new(true)}, false},
		"of another kind":     {&metav1.OwnerReference{Kind: "Deployment", Name: "web-head", UID: "old", Controller: new(true)}, false},
		"not controlled":      {&metav1.OwnerReference{Kind: "CapacityBuffer", Name: "web-head", UID: "old"}, false},
		"without an owner":    {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			copied := &v1.PodTemplate{
				ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "capacitybuffer-web-head-pod-template", UID: "copy"},
			}
			if tc.owner != nil {
				copied.OwnerReferences = []metav1.OwnerReference{*tc.owner}
			}
			exists := func(c client.Reader) bool {
				return c.Get(t.Context(), client.ObjectKeyFromObject(copied), &v1.PodTemplate{}) == nil
			}
			c := controllerOf(t, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
					if o, ok := object.(interface{ GetKind() string }); ok && o.GetKind() == "CapacityBuffer" && exists(c) == tc.gone {
						t.Errorf("the copy exists when a buffer is applied: %t", !tc.gone)
					}
					return c.Apply(ctx, object, options...)
				},
			}, append(webPool(), newPolicy("web", "web"), copied)...)
			reconcileOnce(t, c, "web")
			if exists(c.client) == tc.gone {
				t.Errorf("the copy exists: %t", !tc.gone)
			}
			// The copy of an existing buffer remains.
			_ = c.client.Delete(t.Context(), copied)
			copied.ResourceVersion = ""
			must.Succeed(t, c.client.Create(t.Context(), copied))
			if reconcileOnce(t, c, "web"); !exists(c.client) {
				t.Error("the copy of an existing buffer is deleted")
			}
		})
	}
}

// TestDisabledBackend checks that placeholder pods require a namespace of their own: without one, nothing is
// written or deleted, and the condition says what to set. With one, condition Accepted, which is of buffers, is removed.
func TestDisabledBackend(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	c.podNamespace = ""
	policy := reconcileOnce(t, c, "web")
	policy.Spec.Backend = v1alpha1.BackendDeployment
	update(t, c, policy)
	ready := meta.FindStatusCondition(reconcileOnce(t, c, "web").Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != "BackendDisabled" || !strings.Contains(ready.Message, "set --placeholder-namespace of plimsoll-controller") {
		t.Errorf("condition %+v", ready)
	}
	if diff := cmp.Diff(webObjects, managed(t, c)); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	c.podNamespace = podNamespace
	if got := reconcileOnce(t, c, "web"); meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionAccepted) != nil {
		t.Errorf("conditions %v", conditionsOf(got))
	}
}

// TestBufferHandler checks that a changed status of a buffer enqueues its policy, as does a new buffer of a policy that was deleted while
// no controller was running, and that metadata and the controller's own new buffers do not.
func TestBufferHandler(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	reconcileOnce(t, c, "web")
	buffer := func(policy string, replicas int64) *unstructured.Unstructured {
		object := &unstructured.Unstructured{
			Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{"replicas": replicas}},
		}
		object.SetLabels(map[string]string{slack.PlaceholderLabel: policy})
		return object
	}
	for name, tc := range map[string]struct {
		before, after *unstructured.Unstructured
		want          int
	}{
		"a new buffer":        {nil, buffer("web", 1), 0},
		"left behind":         {nil, buffer("gone", 1), 1},
		"without a policy":    {nil, buffer("", 1), 0},
		"a changed status":    {buffer("web", 1), buffer("web", 2), 1},
		"no change":           {buffer("web", 1), buffer("web", 1), 0},
		"of a deleted policy": {buffer("gone", 1), buffer("gone", 2), 0},
		"deleted":             {buffer("web", 1), nil, 1},
	} {
		q := &countingQueue{}
		handleChange(t, c.bufferHandler(), tc.before, tc.after, q)
		if len(q.added) != tc.want {
			t.Errorf("%s: enqueued %v, want %d", name, q.added, tc.want)
		}
	}
}

// TestPlaceholderWorkloads checks that a workload of placeholder pods that another client changes or deletes enqueues
// its policy, so that it is not missing until the next resync, as does the workload of a policy that was deleted while no controller was
// running.
func TestPlaceholderWorkloads(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	reconcileOnce(t, c, "web")
	deployment := func(namespace, policy string, generation int64) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web-rate", Generation: generation, Labels: map[string]string{slack.PlaceholderLabel: policy},
		}}
	}
	for name, tc := range map[string]struct {
		before, after *appsv1.Deployment
		want          int
	}{
		"deleted":                      {deployment(podNamespace, "web", 1), nil, 1},
		"changed":                      {deployment(podNamespace, "web", 1), deployment(podNamespace, "web", 2), 1},
		"without the label":            {deployment(podNamespace, "web", 1), deployment(podNamespace, "", 1), 1},
		"a changed status":             {deployment(podNamespace, "web", 1), deployment(podNamespace, "web", 1), 0},
		"of a deleted policy":          {deployment(podNamespace, "gone", 1), nil, 0},
		"in the namespace of a tenant": {deployment("tenant", "web", 1), nil, 0},
		"new":                          {nil, deployment(podNamespace, "web", 1), 0},
		"left behind":                  {nil, deployment(podNamespace, "gone", 1), 1},
		"of a tenant":                  {nil, deployment("tenant", "gone", 1), 0},
	} {
		q := &countingQueue{}
		handleChange(t, c.workloadHandler(), tc.before, tc.after, q)
		if len(q.added) != tc.want {
			t.Errorf("%s: enqueued %v, want %d", name, q.added, tc.want)
		}
	}
}

// handleChange passes the change of an object to a handler: before is nil if the object is created, after if it is deleted.
func handleChange[O interface {
	client.Object
	comparable
}](t *testing.T, h handler.EventHandler, before, after O, q queue) {
	t.Helper()
	var none O
	switch none {
	case before:
		h.Create(t.Context(), event.CreateEvent{Object: after}, q)
	case after:
		h.Delete(t.Context(), event.DeleteEvent{Object: before}, q)
	default:
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
	}
}

// countingQueue records the requests that are enqueued.
type countingQueue struct {
	queue
	added []reconcile.Request
}

func (q *countingQueue) AddAfter(request reconcile.Request, _ time.Duration) {
	q.added = append(q.added, request)
}

// TestFailuresAreSeparate checks that an object that the API server refuses affects its own group only, and
// is reported: the objects of the rate are written first, then the objects of other workloads.
func TestFailuresAreSeparate(t *testing.T) {
	quota := apierrors.NewForbidden(v1.Resource("podtemplates"), "x", errors.New("exceeded quota: count/podtemplates"))
	webhook := apierrors.NewInternalError(errors.New(`failed calling webhook "deny.example.com"`))
	noReason := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTeapot, Message: "denied without a reason"}}
	for name, tc := range map[string]struct {
		err    error
		reason string
		retry  bool
	}{
		"a quota":                   {quota, "WriteFailed", false},
		"a webhook":                 {webhook, "WriteFailed", true},
		"a refusal with no reason":  {noReason, "WriteFailed", false},
		"a namespace being deleted": {apierrors.NewNotFound(v1.Resource("namespaces"), "tenant"), "WriteFailed", false},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := true
			bad := newMirrored("aaa", "2") // the first by name
			bad.Namespace = "tenant"
			c := controllerOf(t, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
					if o, ok := object.(interface{ GetNamespace() string }); refuse && ok && o.GetNamespace() == "tenant" {
						return tc.err
					}
					return c.Apply(ctx, object, options...)
				},
			}, append(webPool(), newPolicy("web", "web"), bad, newMirrored("api", "1"))...)
			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}})
			if err != nil || (result.RequeueAfter == retryPeriod) != tc.retry {
				t.Fatalf("result %v, error %v, want retry %t", result, err, tc.retry)
			}
			policy := &v1alpha1.ResourceSlack{}
			must.Succeed(t, c.client.Get(t.Context(), client.ObjectKey{Name: "web"}, policy))
			objects := managed(t, c)
			for _, want := range webObjects {
				if !slices.Contains(objects, want) {
					t.Errorf("%s is missing in %v", want, objects)
				}
			}
			if got := strings.Join(objects, " "); !strings.Contains(got, "CapacityBuffer shop/api-deployment-") ||
				strings.Contains(got, "tenant/") {
				t.Errorf("objects %v, want those of api and not those of tenant", objects)
			}
			mirrors := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionMirrorsFeasible)
			if mirrors.Status != metav1.ConditionFalse || mirrors.Reason != tc.reason ||
				!strings.Contains(mirrors.Message, "applying PodTemplate tenant/aaa-deployment-") || policy.Status.Placeholders != 5 {
				t.Errorf("condition %v, status %+v", mirrors, policy.Status)
			}
			refuse = false
			if got := conditionsOf(reconcileOnce(t, c, "web")); !slices.Contains(got, "Ready=False Provisioning") &&
				!slices.Contains(got, "Ready=True Held") {
				t.Errorf("after the cause has ended: %v", got)
			}
		})
	}
}

// TestUnreachableServer checks that a connection error, of a read or of a write, ends a plan without a changed status.
func TestUnreachableServer(t *testing.T) {
	for _, failing := range []string{"read", "write"} {
		broken := true
		refused := func(request string) error {
			if broken && request == failing {
				return errors.New("connection refused")
			}
			return nil
		}
		c := controllerOf(t, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, pods := list.(*v1.PodList); pods && refused("read") != nil {
					return refused("read")
				}
				return c.List(ctx, list, options...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if err := refused("write"); err != nil {
					return err
				}
				return c.Apply(ctx, object, options...)
			},
		}, append(webPool(), newPolicy("web", "web"))...)
		key := client.ObjectKey{Name: "web"}
		_, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		policy := &v1alpha1.ResourceSlack{}
		must.Succeed(t, c.client.Get(t.Context(), key, policy))
		if err == nil || !strings.Contains(err.Error(), "connection refused") || len(policy.Status.Conditions) > 0 {
			t.Errorf("%s: error %v, conditions %v", failing, err, policy.Status.Conditions)
		}
		broken = false
		if got := conditionsOf(reconcileOnce(t, c, "web")); !slices.Contains(got, "Ready=True Held") {
			t.Errorf("%s: conditions %v", failing, got)
		}
	}
}

// TestEmptyPoolKeepsPlaceholders checks that the objects of the rate remain for as long as no node is in the
// pool, and that mirrors follow their workload.
func TestEmptyPoolKeepsPlaceholders(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"), newMirrored("api", "1"))...)
	policy := reconcileOnce(t, c, "web")
	policy.Spec.Pool.NodeSelector["pool"] = "typo"
	update(t, c, policy)
	must.Succeed(t, c.client.Delete(t.Context(), newMirrored("api", "1")))
	for _, later := range []time.Duration{0, 10 * time.Minute, time.Hour} {
		now := time.Now().Add(later)
		c.now = func() time.Time { return now }
		got := reconcileOnce(t, c, "web")
		if diff := cmp.Diff(webObjects, managed(t, c)); diff != "" {
			t.Errorf("after %s: objects: -want +got:\n%s", later, diff)
		}
		if conditions := conditionsOf(got); !slices.Contains(conditions, "Feasible=Unknown PoolEmpty") ||
			!slices.Contains(conditions, "Ready=False PoolEmpty") || got.Status.Placeholders != 2 {
			t.Errorf("after %s: conditions %v, %d placeholders", later, conditions, got.Status.Placeholders)
		}
	}
}

// TestCoolDownIsTheReason checks the condition Feasible while more placeholders are held than required.
func TestCoolDownIsTheReason(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	reconcileOnce(t, c, "web")
	for i := range 3 {
		c.eachTracker(func(tracker *policyTracker) { tracker.DeletePod(newPod(fmt.Sprint("web-", i), "a")) })
	}
	feasible := meta.FindStatusCondition(reconcileOnce(t, c, "web").Status.Conditions, v1alpha1.ConditionFeasible)
	if feasible.Status != metav1.ConditionTrue || feasible.Reason != "CoolDown" ||
		!strings.Contains(feasible.Message, "no longer required are removed at 20") {
		t.Errorf("condition %+v", feasible)
	}
}

// TestMirrorsExcludeEachOther checks that required anti-affinity, to each other and to the pods of the
// workload, counts in the number of placeholders that fit.
func TestMirrorsExcludeEachOther(t *testing.T) {
	labels := map[string]string{"app": "api"}
	mirrored := newMirrored("api", "2")
	mirrored.Spec.Template.Labels = labels
	mirrored.Spec.Template.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: v1.LabelHostname,
		}},
	}}
	policy := newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) { s.MinRate, s.CoverBiggestPod = "0", new(false) })
	objects := []client.Object{policy, mirrored}
	for _, name := range []string{"a", "b"} {
		node := newNode(name, "web")
		node.Labels[v1.LabelHostname] = name
		objects = append(objects, node)
	}
	c := controllerOf(t, interceptor.Funcs{}, objects...)
	if got := reconcileOnce(t, c, "web").Status; got.Placeholders != 2 || got.Placed != 2 {
		t.Errorf("%d of %d placeholders fit, want 2 of 2", got.Placed, got.Placeholders)
	}
	pod := newPod("api-1", "a")
	pod.Labels = labels
	must.Succeed(t, c.client.Create(t.Context(), pod))
	if got := reconcileOnce(t, c, "web").Status; got.Placeholders != 2 || got.Placed != 1 {
		t.Errorf("with a pod of the workload on node a: %d of %d placeholders fit, want 1 of 2", got.Placed, got.Placeholders)
	}
}

// TestNamespacesAreSelected checks that the labels of namespaces determine which workloads are mirrored.
func TestNamespacesAreSelected(t *testing.T) {
	policy := newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) {
		s.Mirrors.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	})
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), policy, namespace, newMirrored("api", "1"))...)
	if got := reconcileOnce(t, c, "web").Status.Mirrored; got != 0 {
		t.Errorf("%d mirrors in a namespace without the label, want 0", got)
	}
	namespace.Labels = map[string]string{"team": "a"}
	must.Succeed(t, c.client.Update(t.Context(), namespace))
	if got := reconcileOnce(t, c, "web").Status.Mirrored; got != 1 {
		t.Errorf("%d mirrors in a namespace with the label, want 1", got)
	}
}
