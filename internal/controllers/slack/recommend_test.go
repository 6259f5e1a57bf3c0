package slack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// at sets the clock of a controller to a number of seconds after the begin of the recording.
func at(c *Controller, seconds int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = func() time.Time { return after(seconds).Time }
}

// deliver passes the event of a pod to the controller, as an informer does, and updates the pods of the fake API server.
func deliver(t *testing.T, c *Controller, pod *v1.Pod) {
	t.Helper()
	if err := c.client.Create(t.Context(), pod.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	c.podHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, &countingQueue{})
}

// recommended returns a policy that requests a recommendation.
func recommended(wait string) *v1alpha1.ResourceSlack {
	return newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) {
		s.Recommend = &v1alpha1.Recommend{Wait: wait}
		s.Default()
	})
}

// TestOutcome checks that the status and the metrics have the outcome, that a node with a price determines the price, and that the
// status is written once in five minutes while placeholders are held.
func TestOutcome(t *testing.T) {
	writes := 0
	objects := append(webPool(), newPolicy("web", "web"))
	objects[0].SetAnnotations(map[string]string{capacityv1alpha1.AnnotationPrice: "0.80"})
	c := controllerOf(t, interceptor.Funcs{
		SubResourcePatch: func(
			ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			writes++
			return c.SubResource(name).Patch(ctx, object, patch, options...)
		},
	}, objects...)
	at(c, 0)
	if got := reconcileOnce(t, c, "web").Status; got.Outcome != nil || writes != 1 {
		t.Fatalf("without pods: %+v, %d writes", got.Outcome, writes)
	}
	// Two placeholders of (1, 4Gi) on a node of (8, 32Gi): a quarter of 0.80, for half an hour.
	at(c, 1800)
	got := reconcileOnce(t, c, "web").Status.Outcome
	if got == nil || got.PlaceholderHours != "1" || got.Price != "0.1" {
		t.Fatalf("after half an hour: %+v", got)
	}
	deliver(t, c, scheduledPod("fast", "a", 1700, 1710))
	deliver(t, c, scheduledPod("slow", "a", 1700, 1790))
	writes = 0
	for seconds := 1801; seconds < 1800+300; seconds += 30 {
		at(c, seconds)
		got = reconcileOnce(t, c, "web").Status.Outcome
	}
	if got.Waited != 0 || writes > 1 { // the pods change the target once
		t.Errorf("within five minutes: %+v, %d writes", got, writes)
	}
	writes = 0
	at(c, 2100)
	got = reconcileOnce(t, c, "web").Status.Outcome
	if got.AtOnce != 1 || got.Waited != 1 || got.P99WaitSeconds != 90 || !got.To.Equal(new(after(2100))) || writes != 1 {
		t.Errorf("after five minutes: %+v, %d writes", got, writes)
	}
	const want = `# HELP plimsoll_slack_pod_wait_seconds [ALPHA] Time from the creation of a pod, or the removal of its last scheduling gate, to its node in the pool. Pods with more than 10 seconds waited in spite of slack.
# TYPE plimsoll_slack_pod_wait_seconds histogram
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="1"} 0
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="2"} 0
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="5"} 0
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="10"} 1
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="30"} 1
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="60"} 1
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="120"} 2
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="300"} 2
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="600"} 2
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="1800"} 2
plimsoll_slack_pod_wait_seconds_bucket{policy="web",le="+Inf"} 2
plimsoll_slack_pod_wait_seconds_sum{policy="web"} 100
plimsoll_slack_pod_wait_seconds_count{policy="web"} 2
`
	if err := testutil.CollectAndCompare(c.metrics.waits, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if held, price := testutil.ToFloat64(c.metrics.held), testutil.ToFloat64(c.metrics.price); held < 3600 || price < 0.1 || price > 0.2 {
		t.Errorf("metrics have %v placeholder seconds and a price of %v", held, price)
	}
}

// TestPoolPrice checks that nodes without a valid price do not count, and that no price is not a price of 0.
func TestPoolPrice(t *testing.T) {
	for text, want := range map[string]string{
		"": "NaN", "much": "NaN", "0": "NaN", "-1": "NaN", "NaN": "NaN", "Inf": "NaN",
		// A node of (8, 32Gi) for 0.80: (2, 4Gi) are a quarter of its CPU.
		"0.80": "0.2",
	} {
		var p poolPrice
		node := newNode("a", "web")
		p.add(node)
		node.Annotations = map[string]string{capacityv1alpha1.AnnotationPrice: text}
		p.add(node)
		if got := fmt.Sprint(p.of(list("2", "4Gi"))); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// conditionOf returns the condition Recommended of a policy.
func conditionOf(policy *v1alpha1.ResourceSlack) metav1.Condition {
	if c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionRecommended); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// await reconciles policy web until the condition Recommended has a reason.
func await(t *testing.T, c *Controller, reason string) (policy *v1alpha1.ResourceSlack) {
	t.Helper()
	eventually.True(t, "the reason is not "+reason, nil, func(context.Context) (bool, error) {
		policy = reconcileOnce(t, c, "web")
		return conditionOf(policy).Reason == reason, nil
	})
	return policy
}

// TestRecommendation checks the conditions up to a recommendation, which pods that fill a node of 8 CPUs at 3600 s require, that it
// is not repeated for six hours, and that a policy with another goal has another one.
func TestRecommendation(t *testing.T) {
	node := newNode("a", "web")
	node.Annotations = map[string]string{capacityv1alpha1.AnnotationPrice: "0.80"}
	c := controllerOf(t, interceptor.Funcs{}, node, recommended("p99=5s"))
	c.RecommendAfter = 2 * time.Hour
	at(c, 0)
	first := reconcileOnce(t, c, "web")
	const short = "the recorded pods begin at 2026-03-02T08:00:00Z: a recommendation requires 2h0m0s, until 2026-03-02T10:00:00Z, " +
		"or 50000 pods"
	if got := conditionOf(first); got.Reason != "HistoryTooShort" || got.Status != metav1.ConditionUnknown || got.Message != short {
		t.Errorf("at the begin: %+v", got)
	}
	at(c, 3000)
	if got := reconcileOnce(t, c, "web"); got.ResourceVersion != first.ResourceVersion {
		t.Errorf("the status changes while the history grows: %+v", got.Status)
	}
	at(c, 7200)
	if got := conditionOf(reconcileOnce(t, c, "web")); got.Reason != "NoPods" {
		t.Errorf("without pods: %+v", got)
	}
	for i := range 30 {
		deliver(t, c, scheduledPod(fmt.Sprint("burst-", i), "a", 3600+60*i, 3600+60*i+90))
	}
	policy := await(t, c, "Reached")
	r := policy.Status.Recommendation
	if r == nil || !r.Reached || r.Pods != 30 || r.WaitSeconds > 5 || r.Goal.Wait != "p99=5s" || *r.Goal.BootSeconds != 120 ||
		!r.From.Equal(new(after(0))) || !r.To.Equal(new(after(7200))) || r.Price == "" || r.NodeHours == "0" {
		t.Fatalf("recommendation %+v", r)
	}
	if r.MinRate == "0%" && r.Minimum == nil && r.Schedules == nil {
		t.Errorf("pods that need new nodes need no slack: %+v", r)
	}
	if policy.Spec.MinRate != "50%" || policy.Spec.Minimum != nil || policy.Generation != first.Generation {
		t.Errorf("the spec changed: %+v", policy.Spec)
	}
	at(c, 7200+6*3600-1)
	if got := reconcileOnce(t, c, "web"); c.isSearching || !got.Status.Recommendation.To.Equal(&r.To) {
		t.Error("a search within six hours")
	}
	at(c, 7200+6*3600)
	eventually.True(t, "no search after six hours", nil, func(context.Context) (bool, error) {
		return reconcileOnce(t, c, "web").Status.Recommendation.To.After(r.To.Time), nil
	})
	policy = reconcileOnce(t, c, "web")
	policy.Spec.Recommend.Wait = "p50=10m"
	update(t, c, policy)
	if got := conditionOf(reconcileOnce(t, c, "web")); got.Reason != v1alpha1.ReasonSearching || got.Status != metav1.ConditionUnknown {
		t.Errorf("while the search for another goal runs: %+v", got)
	}
	eventually.True(t, "no search for another goal", nil, func(context.Context) (bool, error) {
		return reconcileOnce(t, c, "web").Status.Recommendation.Goal.Wait == "p50=10m", nil
	})
	policy = await(t, c, "Reached")
	r = policy.Status.Recommendation
	if r.MinRate != "0%" || r.Minimum != nil || !strings.Contains(conditionOf(policy).Message, "no slack is needed") {
		t.Errorf("for p50=10m: %+v, %+v", r, conditionOf(policy))
	}
	policy.Spec.Pool.NodeSelector["pool"] = "other"
	update(t, c, policy)
	if policy = reconcileOnce(t, c, "web"); policy.Status.Recommendation != nil || conditionOf(policy).Reason != "HistoryTooShort" {
		t.Errorf("for another pool: %+v, %+v", policy.Status.Recommendation, conditionOf(policy))
	}
	policy.Spec.Recommend = nil
	update(t, c, policy)
	if policy = reconcileOnce(t, c, "web"); policy.Status.Recommendation != nil || conditionOf(policy).Type != "" {
		t.Errorf("without spec.recommend: %+v", policy.Status)
	}
}

// TestInvalidGoal checks that an invalid goal is reported with field, value and what is allowed, and that placeholders and the last
// recommendation remain.
func TestInvalidGoal(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), recommended("p99=5s"))...)
	policy := reconcileOnce(t, c, "web")
	policy.Status.Recommendation = &v1alpha1.Recommendation{MinRate: "7%", NodeHours: "1"}
	if err := c.client.Status().Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	policy.Spec.Recommend.Wait = "p0=5s"
	update(t, c, policy)
	policy = reconcileOnce(t, c, "web")
	ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != "InvalidPolicy" ||
		!strings.Contains(ready.Message, `spec.recommend.wait: Invalid value: "p0=5s": must be a percentile`) ||
		len(managed(t, c)) != 4 ||
		policy.Status.Recommendation.MinRate != "7%" {
		t.Errorf("condition %+v, objects %v, recommendation %+v", ready, managed(t, c), policy.Status.Recommendation)
	}
}

// configMapOf gives a controller a fake ConfigMap, which it reads.
func configMapOf(t *testing.T, c *Controller, clients *kubefake.Clientset) {
	t.Helper()
	c.configMap = kube.Saved{ConfigMaps: clients.CoreV1().ConfigMaps(testNamespace), Name: HistoryConfigMap}
	if err := c.readSaved(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestRecordsSurviveRestart checks that a new controller continues the history of the previous one: pods count once, pods that
// were deleted in between ended, and a policy with another pool begins again.
func TestRecordsSurviveRestart(t *testing.T) {
	clients := kubefake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: HistoryConfigMap}})
	first := controllerOf(t, interceptor.Funcs{}, newNode("a", "web"), newNode("b", "other"), newPolicy("web", "web"))
	configMapOf(t, first, clients)
	at(first, 0)
	reconcileOnce(t, first, "web")
	at(first, 60)
	for _, pod := range []*v1.Pod{
		scheduledPod("stays", "a", 10, 11), scheduledPod("leaves", "a", 20, 21), ended(scheduledPod("finished", "a", 30, 31), 40),
	} {
		deliver(t, first, pod)
	}
	at(first, 100)
	if err := first.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests := len(clients.Actions())
	if err := first.save(t.Context()); err != nil || len(clients.Actions()) != requests {
		t.Errorf("a save without a change: %v, %v", err, clients.Actions()[requests:])
	}
	if err := first.client.Delete(t.Context(), newPod("leaves", "a")); err != nil {
		t.Fatal(err)
	}
	if err := first.client.Create(t.Context(), scheduledPod("new", "a", 150, 151)); err != nil {
		t.Fatal(err)
	}

	// The first attempt fails, because a pod cannot be read: the saved records remain.
	isBroken := true
	faults := interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
	) error {
		if _, isPod := object.(*v1.Pod); isPod && isBroken {
			return errors.New("the cache is not ready")
		}
		return c.Get(ctx, key, object, options...)
	}}
	broken := interceptor.NewClient(first.client.(client.WithWatch), faults)
	second := New(broken, events.NewFakeRecorder(100), prometheus.NewRegistry(), testNamespace, podNamespace)
	configMapOf(t, second, clients)
	at(second, 200)
	if _, err := second.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}}); err == nil {
		t.Error("no error although a pod cannot be read")
	}
	isBroken = false
	policy := reconcileOnce(t, second, "web")
	r := second.trackers["web"].recorder
	var got []string
	for _, p := range r.history(after(200).Time).Pods {
		got = append(got, fmt.Sprint(p.Arrival, "+", min(p.Duration, 999)))
	}
	// The pod that was deleted ended when it was last saved.
	if want := "[10+999 20+79 30+9 150+999]"; fmt.Sprint(got) != want || r.from != secondsOf(recorded) {
		t.Errorf("arrivals and durations %v, want %s; from %d", got, want, r.from)
	}
	if o := r.outcome(after(200).Time); o.AtOnce != 4 || o.Waited != 0 {
		t.Errorf("outcome %+v", o)
	}
	text, err := testutil.CollectAndFormat(second.metrics.waits, expfmt.TypeTextPlain, "plimsoll_slack_pod_wait_seconds")
	if err != nil || !strings.Contains(string(text), `plimsoll_slack_pod_wait_seconds_count{policy="web"} 1`) {
		t.Errorf("want one wait, of the new pod: %v\n%s", err, text)
	}
	policy.Spec.Pool.NodeSelector = map[string]string{"pool": "other"}
	update(t, second, policy)
	reconcileOnce(t, second, "web")
	if r := second.trackers["web"].recorder; len(r.records) != 0 || r.from != secondsOf(after(200).Time) {
		t.Errorf("another pool has %d records from %d", len(r.records), r.from)
	}
	// Data of a policy that no longer exists is deleted.
	if err := second.client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	second.trackers["web"].recorder.changed = true
	if err := second.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	object, err := second.configMap.Get(t.Context())
	if err != nil || len(object.BinaryData) != 0 {
		t.Errorf("data of a deleted policy: %v, %v", object, err)
	}
}

// TestSharesOfConfigMap checks that a policy whose records do not fit its share, and saved data above the share of a policy that is
// invalid, do not keep the records of another policy from being saved. Policy web has one share in 2,000: 460 bytes.
func TestSharesOfConfigMap(t *testing.T) {
	objects := append(webPool(), newPolicy("web", "web"), newPolicy("other", "other"))
	for i := range 1998 {
		objects = append(objects, newPolicy(fmt.Sprint("invalid-", i), "web", func(s *v1alpha1.ResourceSlackSpec) { s.MinRate = "much" }))
	}
	c := controllerOf(t, interceptor.Funcs{}, objects...)
	clients := kubefake.NewClientset(&v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: HistoryConfigMap},
		BinaryData: map[string][]byte{"invalid-0.json.gz": make([]byte, 461), "invalid-1.json.gz": make([]byte, 460)},
	})
	configMapOf(t, c, clients)
	at(c, 0)
	reconcileOnce(t, c, "web")
	reconcileOnce(t, c, "other")
	deliver(t, c, scheduledPod("new", "a", 10, 11))
	for hour := range int64(25) { // digits that cannot be compressed
		held := heldHour{Hour: hour, Placeholders: math.Sqrt(float64(hour + 2)), Priced: math.Sqrt(float64(hour + 99)), Price: math.Pi}
		c.trackers["other"].recorder.Hours = append(c.trackers["other"].recorder.Hours, held)
	}
	if err := c.save(t.Context()); err == nil || !strings.Contains(err.Error(), "policy other: records without pods need ") {
		t.Errorf("error %v", err)
	}
	object, err := c.configMap.Get(t.Context())
	if err != nil || len(object.BinaryData) != 2 || len(object.BinaryData["invalid-1.json.gz"]) != 460 {
		t.Fatalf("data of %v, %v", slices.Collect(maps.Keys(object.BinaryData)), err)
	}
	if r, err := decode(object.BinaryData["web.json.gz"], newPolicy("web", "web").Spec.Pool); err != nil || len(r.records) != 1 {
		t.Errorf("records %+v, error %v", r, err)
	}
}

// TestSchedulingGates checks that a wait begins when the last scheduling gate of a pod is removed, also if the node of the pod is known
// later and after a restart. The pod is created at 10 s, its gates are removed at 300 s, and it gets a node at 305 s.
func TestSchedulingGates(t *testing.T) {
	clients := kubefake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: HistoryConfigMap}})
	c := controllerOf(t, interceptor.Funcs{}, newNode("a", "web"), newPolicy("web", "web"))
	configMapOf(t, c, clients)
	at(c, 0)
	reconcileOnce(t, c, "web")
	pod := scheduledPod("gated", "a", 10, 305)
	waiting := scheduledPod("gated", "", 10, 0)
	waiting.Status.Conditions = nil
	gated := waiting.DeepCopy()
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}}
	for _, step := range []struct {
		at  int
		pod *v1.Pod
	}{{10, gated}, {200, gated}, {300, waiting}, {301, waiting}, {305, pod}, {306, pod}} {
		at(c, step.at)
		if step.pod == pod {
			_ = c.client.Delete(t.Context(), waiting)
		}
		deliver(t, c, step.pod)
	}
	at(c, 400)
	if o := c.trackers["web"].recorder.outcome(c.now()); o == nil || o.AtOnce != 1 || o.LongestWaitSeconds != 5 {
		t.Errorf("outcome %+v, want one pod that waited 5 s", o)
	}
	if err := c.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := New(c.client, events.NewFakeRecorder(100), prometheus.NewRegistry(), testNamespace, podNamespace)
	configMapOf(t, second, clients)
	at(second, 500)
	reconcileOnce(t, second, "web")
	r := second.trackers["web"].recorder
	if h := r.history(after(500).Time); len(h.Pods) != 1 || h.Pods[0].Arrival != 300 || h.Pods[0].Duration != math.MaxInt64 {
		t.Errorf("history after a restart: %+v", h)
	}
	c.podHandler().Delete(t.Context(), event.DeleteEvent{Object: pod}, &countingQueue{})
	if len(c.ungated) != 0 {
		t.Errorf("%d pods are kept after their deletion", len(c.ungated))
	}
}

// TestPodCreatedAgain checks that the record of a pod ends if it was deleted, and a pod of the same name created, while the watch of
// pods was interrupted: then there is one event, an update.
func TestPodCreatedAgain(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	at(c, 0)
	reconcileOnce(t, c, "web")
	before, again := scheduledPod("db-0", "a", 5, 6), scheduledPod("db-0", "a", 50, 51)
	again.UID = "again"
	deliver(t, c, before)
	at(c, 60)
	c.podHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: again}, &countingQueue{})
	h := c.trackers["web"].recorder.history(after(60).Time)
	if len(h.Pods) != 2 || h.Pods[0].Duration != 54 || h.Pods[1].Duration != math.MaxInt64 {
		t.Errorf("history %+v, want a pod that ran from 6 s to 60 s, and one that runs", h.Pods)
	}
}

// TestHistoryCannotBeRead checks that slack works without the ConfigMap and with invalid data, and waits while the API server
// fails.
func TestHistoryCannotBeRead(t *testing.T) {
	group := v1.Resource("configmaps")
	for name, tc := range map[string]struct {
		errs []error // of the first requests
		data map[string][]byte
	}{
		"not found":   {errs: []error{apierrors.NewNotFound(group, HistoryConfigMap)}},
		"forbidden":   {errs: []error{apierrors.NewForbidden(group, HistoryConfigMap, errors.New("no"))}},
		"unavailable": {errs: []error{apierrors.NewServiceUnavailable("starting"), errors.New("connection refused")}},
		"empty":       {},
		"invalid":     {data: map[string][]byte{"web.json.gz": []byte("hello")}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
			clients := kubefake.NewClientset()
			errs := tc.errs
			clients.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				if len(errs) == 0 {
					return true, &v1.ConfigMap{BinaryData: tc.data}, nil
				}
				err := errs[0]
				errs = errs[1:]
				return true, nil, err
			})
			configMapOf(t, c, clients)
			reconcileOnce(t, c, "web")
			if r := c.trackers["web"].recorder; len(errs) != 0 || r.ended != 0 {
				t.Errorf("%s: %d errors left, recorder %+v", name, len(errs), r)
			}
		})
	}
}
