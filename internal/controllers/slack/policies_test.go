package slack

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// listedPods is a cache that has only pods.
type listedPods struct {
	client.Client
	pods []v1.Pod
}

func (l *listedPods) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pods, ok := list.(*v1.PodList); ok {
		pods.Items = l.pods
	}
	return nil
}

// largeCluster has 5,000 nodes with 30 pods each. Each pool has an equal part of the nodes.
func largeCluster(pools int) (nodes []v1.Node, pods []v1.Pod) {
	for n := range int64(5000) {
		size := 1 + n%4
		node := v1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("node-", n), ResourceVersion: fmt.Sprint(n),
			Labels: map[string]string{"pool": fmt.Sprint("pool-", n%int64(pools)), "kubernetes.io/os": "linux"},
		}}
		node.Status.Allocatable = clustertest.List(16000*size, 65536*size)
		node.Status.Allocatable[v1.ResourcePods] = resource.MustParse("110")
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		nodes = append(nodes, node)
		for p := range int64(30) {
			pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d-%d", n, p)}}
			pod.Spec.NodeName = node.Name
			requests := clustertest.List(100+10*(p%50), 256+50*(p%20))
			pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}
			pods = append(pods, pod)
		}
	}
	return nodes, pods
}

// recordedQueue records the policies that are enqueued.
type recordedQueue struct {
	queue
	names []string
}

func (r *recordedQueue) AddAfter(item reconcile.Request, _ time.Duration) {
	r.names = append(r.names, item.Name)
}

// TestPodsOfPools checks that a pod changes the plans of the policy whose pool its node is in, and enqueues no other policy.
// Policies a and b have a node each, with pods of 1 CPU: two of the cache on node-a, and one that is created on node-b.
func TestPodsOfPools(t *testing.T) {
	pod := func(name, node string) v1.Pod {
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PodSpec{NodeName: node}}
		requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}
		return p
	}
	c := New(&listedPods{pods: []v1.Pod{pod("1", "node-a"), pod("2", "node-a")}}, nil, prometheus.NewRegistry(), "plimsoll-system", "")
	var nodes []v1.Node
	for _, pool := range []string{"a", "b"} {
		node := v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + pool, ResourceVersion: "1", Labels: map[string]string{"pool": pool}}}
		node.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("8Gi")}
		nodes = append(nodes, node)
	}
	base := func(pool string) string {
		policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: pool}}
		policy.Spec.MinRate, policy.Spec.Pool.NodeSelector = "50%", map[string]string{"pool": pool}
		tracker, err := c.trackerOf(t.Context(), policy)
		must.Succeed(t, err)
		var o observation
		c.plan(tracker, nodes, nil, &o)
		tracker.TakeChanged()
		return o.plan.Base.Cpu().String()
	}
	if a, b := base("a"), base("b"); a != "2" || b != "0" {
		t.Errorf("base of a %s and of b %s, want 2 and 0", a, b)
	}
	q, created := &recordedQueue{}, pod("3", "node-b")
	c.podHandler().Create(t.Context(), event.CreateEvent{Object: &created}, q)
	c.podHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: &created, ObjectNew: &created}, q)
	if a, b := base("a"), base("b"); a != "2" || b != "1" || fmt.Sprint(q.names) != "[b]" {
		t.Errorf("base of a %s and of b %s after %v, want 2 and 1 after [b]", a, b, q.names)
	}
	c.deleteTracker("b")
	c.podHandler().Delete(t.Context(), event.DeleteEvent{Object: &created}, q)
	if a, b := base("a"), base("b"); a != "2" || b != "0" || fmt.Sprint(q.names) != "[b]" {
		t.Errorf("base of a %s and of b %s after %v, want 2 and 0 after [b]", a, b, q.names)
	}
}

// TestOverlapIsStable checks that the policy that is named does not depend on the order in which a cache lists nodes, or the status
// would be written again and again: the pool of web overlaps another pool on each of its nodes.
func TestOverlapIsStable(t *testing.T) {
	c := New(&listedPods{}, nil, prometheus.NewRegistry(), "plimsoll-system", "")
	nodes := []v1.Node{*newNode("a", "web"), *newNode("b", "web")}
	nodes[0].Labels["zone"], nodes[1].Labels["zone"] = "1", "2"
	for zone, name := range map[string]string{"1": "first", "2": "second"} {
		policy := newPolicy(name, "web")
		policy.Spec.Pool.NodeSelector = map[string]string{"zone": zone}
		if _, err := c.trackerOf(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
	}
	tracker, err := c.trackerOf(t.Context(), newPolicy("web", "web"))
	must.Succeed(t, err)
	for range 2 {
		var o observation
		if c.plan(tracker, nodes, nil, &o); o.overlap != "first" {
			t.Errorf("nodes %s, %s: overlap %q, want first", nodes[0].Name, nodes[1].Name, o.overlap)
		}
		slices.Reverse(nodes)
	}
}

// TestNodeDeletedDuringPlan checks that a node that is deleted after a plan has begun is not in the pool: of the nodes a and b with
// 8 CPUs each, node a remains, whose pods leave 4 CPUs.
func TestNodeDeletedDuringPlan(t *testing.T) {
	var c *Controller
	deleted, isDeleted := newNode("b", "web"), false
	c = controllerOf(t, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.ResourceSlackList); ok && !isDeleted {
				isDeleted = true
				if err := api.Delete(ctx, deleted); err != nil {
					return err
				}
				c.nodeHandler().Delete(ctx, event.DeleteEvent{Object: deleted}, &recordedQueue{})
			}
			return api.List(ctx, list, options...)
		},
	}, append(webPool(), deleted, newPolicy("web", "web"))...)
	if got := reconcileOnce(t, c, "web").Status.Available.Cpu().String(); got != "4" || !isDeleted {
		t.Errorf("available: %s, want 4; deleted: %t", got, isDeleted)
	}
}

// TestClustersOfDevices checks that the pods of the cluster are counted once for each list of devices that a policy uses, and no longer
// when the last policy with the list has another list or is deleted, and never for an invalid policy.
func TestClustersOfDevices(t *testing.T) {
	withDevices := func(devices ...string) func(*v1alpha1.ResourceSlackSpec) {
		return func(s *v1alpha1.ResourceSlackSpec) { s.Pool.Devices = devices }
	}
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("a", "web"), newPolicy("b", "web", withDevices("example.com/x")),
		newPolicy("c", "web", withDevices("example.com/x")))...)
	policies := map[string]*v1alpha1.ResourceSlack{}
	for _, name := range []string{"a", "b", "c"} {
		policies[name] = reconcileOnce(t, c, name)
	}
	for _, step := range []struct{ policy, device, rate, want string }{
		{"b", "example.com/y", "50%", " example.com/x example.com/y"},
		{"c", "example.com/z", "much", " example.com/x example.com/y"}, // invalid: the tracker remains
		{"c", "example.com/y", "50%", " example.com/y"},
		{"b", "", "", " example.com/y"},
		{"c", "", "", ""},
	} {
		policy := policies[step.policy]
		if step.device == "" {
			must.Succeed(t, c.client.Delete(t.Context(), policy))
			if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(policy)}); err != nil {
				t.Fatal(err)
			}
		} else {
			policy.Spec.MinRate, policy.Spec.Pool.Devices = step.rate, []string{step.device}
			update(t, c, policy)
			policies[step.policy] = reconcileOnce(t, c, step.policy)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(c.clusters)), " "); got != step.want {
			t.Errorf("after %+v: clusters of %q", step, got)
		}
	}
}

// TestPolicyIsCreatedAgain checks that a policy that was deleted and created again between two reconciliations has its new spec: its
// generation is 1 again, and only its UID differs. Its placeholders have the new policy as their owner: the garbage collector deletes
// objects of the old one.
func TestPolicyIsCreatedAgain(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), newPolicy("web", "web"))...)
	must.Succeed(t, c.client.Delete(t.Context(), reconcileOnce(t, c, "web")))
	again := newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) { s.MinRate = "100%" })
	again.UID = "again"
	must.Succeed(t, c.client.Create(t.Context(), again))
	if got := reconcileOnce(t, c, "web").Status; got.Placeholders != 4 {
		t.Errorf("%d placeholders, want 4 for 100%%", got.Placeholders)
	}
	objects, err := c.existing(t.Context(), "web")
	if err != nil || len(objects) != 4 {
		t.Fatalf("%d objects, error %v", len(objects), err)
	}
	for i := range objects {
		if owner := metav1.GetControllerOf(&objects[i]); owner == nil || owner.UID != "again" {
			t.Errorf("%s %s has the owner %v", objects[i].GetKind(), objects[i].GetName(), owner)
		}
	}
}

// BenchmarkPolicies measures what the controller does for all policies of a large cluster, without the API server: the number of
// policies is the environment variable POLICIES, or else 200.
func BenchmarkPolicies(b *testing.B) {
	policies := 200
	if n, err := strconv.Atoi(os.Getenv("POLICIES")); err == nil {
		policies = n
	}
	nodes, pods := largeCluster(policies)
	plan := func(b *testing.B) *Controller {
		c := New(&listedPods{pods: pods}, nil, prometheus.NewRegistry(), "plimsoll-system", "")
		for i := range policies {
			policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("policy-", i)}}
			policy.Spec.MinRate, policy.Spec.Pool.NodeSelector = "10%", map[string]string{"pool": fmt.Sprint("pool-", i)}
			t, err := c.trackerOf(b.Context(), policy)
			must.Succeed(b, err)
			var o observation
			if c.plan(t, nodes, nil, &o); len(o.plan.Groups) == 0 || o.overlap != "" {
				b.Fatalf("plan %+v, overlap %q", o.plan, o.overlap)
			}
		}
		return c
	}
	b.Run("from scratch", func(b *testing.B) {
		var c *Controller
		before := measure.Heap()
		for b.Loop() {
			c = plan(b)
		}
		b.ReportMetric(float64(measure.Heap()-before)/1e6, "MB")
		runtime.KeepAlive(c)
	})
	b.Run("pod created and deleted", func(b *testing.B) {
		c := plan(b)
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		pod := pods[7].DeepCopy()
		pod.Name = "new"
		for b.Loop() {
			c.podHandler().Create(b.Context(), event.CreateEvent{Object: pod}, q)
			c.podHandler().Delete(b.Context(), event.DeleteEvent{Object: pod}, q)
		}
	})
}
