//go:build foreign

package servers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/karpenter"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// startKarpenterCluster starts a cluster with a scheduler and Karpenter, and returns its log and the objects of a pool of nodes
// of 4 CPUs, which must be created.
func startKarpenterCluster(t *testing.T) (c *testcluster.Cluster, log *program.Output, pool []*unstructured.Unstructured) {
	t.Helper()
	crds, err := testcluster.KarpenterSource(t).CRDs()
	must.Succeed(t, err)
	c = testcluster.Start(t, crds...)
	log = startKarpenter(t, c)
	c.StartDefaultScheduler(t)
	if pool, err = karpenter.Pool("4", 0); err != nil {
		t.Fatal(err)
	}
	return c, log, pool
}

// startKarpenter runs Karpenter with its simulated provider.
func startKarpenter(t *testing.T, c *testcluster.Cluster) *program.Output {
	t.Helper()
	log := &program.Output{}
	process, err := karpenter.Start(karpenter.Options{
		Program:    program.Build(t, "karpenter", "test/karpenter", "sigs.k8s.io/karpenter/kwok"),
		Kubeconfig: c.Kubeconfig,
		Namespace:  testcluster.SystemNamespace,
		Log:        log,
	})
	must.Succeed(t, err)
	t.Cleanup(process.Stop)
	return log
}

// nodes returns the names of the nodes of pool general.
func nodes(ctx context.Context, c *testcluster.Cluster) ([]string, error) {
	var list v1.NodeList
	err := c.Client.List(ctx, &list, client.MatchingLabels{"pool": "general"})
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names, err
}

// checkMirrorWithKarpenter checks that the next pods of a workload whose pods exclude each other from a node
// use existing nodes: its placeholders have nodes of their own.
func checkMirrorWithKarpenter(t *testing.T, c *testcluster.Cluster, log fmt.Stringer) {
	t.Helper()
	api := testcluster.Mirrored("api", "2", 1)
	api.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "general"}
	api.Spec.Template.Spec.Containers = testcluster.RunningPod("", "", "500m", "512Mi").Spec.Containers
	c.Create(t, api)
	var policy v1alpha1.ResourceSlack
	eventually.TrueWithin(
		t,
		3*time.Minute,
		100*time.Millisecond,
		"the mirrors have no capacity",
		log,
		func(ctx context.Context) (bool, error) {
			if err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, &policy); err != nil {
				return false, err
			}
			pods, err := runningNodes(ctx, c, "api")
			return err == nil && len(pods) == 1 && policy.Status.Mirrored == 2 &&
				meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionReady) &&
				meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionAccepted), err
		},
	)
	existing, err := nodes(t.Context(), c)
	must.Succeed(t, err)
	must.Succeed(t, c.Client.Patch(t.Context(), api, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))))
	var nodes []string
	eventually.True(t, "the pods of the mirrored workload are not running", log, func(ctx context.Context) (bool, error) {
		nodes, err = runningNodes(ctx, c, "api")
		return len(nodes) == 3, err
	})
	for _, node := range nodes {
		if !slices.Contains(existing, node) {
			t.Errorf("a pod of the mirrored workload is on %s, a node added after it was created; nodes before: %v", node, existing)
		}
	}
	if slices.Sort(nodes); len(slices.Compact(nodes)) != 3 {
		t.Errorf("pods of the mirrored workload are on nodes %v, want three different ones", nodes)
	}
	must.Succeed(t, c.Client.Delete(t.Context(), api, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	var pods v1.PodList
	must.Succeed(t, c.Client.List(t.Context(), &pods, client.MatchingLabels{"app": "api"}))
	// There is no garbage collector.
	var sets appsv1.ReplicaSetList
	must.Succeed(t, c.Client.List(t.Context(), &sets, client.MatchingLabels{"app": "api"}))
	for i := range sets.Items {
		must.Succeed(t, c.Client.Delete(t.Context(), &sets.Items[i]))
	}
	for i := range pods.Items {
		if err := c.Client.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// runningNodes returns the nodes of the running pods with a value of label app.
func runningNodes(ctx context.Context, c *testcluster.Cluster, app string) (nodes []string, err error) {
	var pods v1.PodList
	err = c.Client.List(ctx, &pods, client.MatchingLabels{"app": app})
	for _, pod := range pods.Items {
		if pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	return nodes, err
}

// TestSlackWithKarpenter checks slack with Karpenter: a policy adds nodes, a burst of pods that fits the
// slack uses existing nodes, the slack is restored, placeholders that mirror a workload keep nodes for it,
// and the nodes are removed with the slack.
func TestSlackWithKarpenter(t *testing.T) {
	c, autoscaler, pool := startKarpenterCluster(t)
	for _, object := range pool {
		c.Create(t, object)
	}
	c.Scale(t, autoscaler, "web", 6)
	controller := c.StartController(t)
	before, err := nodes(t.Context(), c)
	must.Succeed(t, err)

	// 100% of (6, 6Gi): six placeholders of (1, 1Gi).
	c.Create(t, testcluster.PolicyOf("general", "100%",
		func(s *v1alpha1.ResourceSlackSpec) { s.Pool.NodeSelector = map[string]string{"pool": "general"} }))
	c.AwaitCondition(t, autoscaler, "general", v1alpha1.ConditionReady, "Held")
	with, err := nodes(t.Context(), c)
	must.Succeed(t, err)
	if len(with) <= len(before) {
		t.Errorf("nodes %v, want more than before the policy: %v", with, before)
	}

	// A burst of four fits the slack.
	for _, node := range c.Scale(t, autoscaler, "web", 10) {
		if !slices.Contains(with, node) {
			t.Errorf("a pod of the burst is on %s, a node added after the burst", node)
		}
	}
	policy := c.AwaitCondition(t, autoscaler, "general", v1alpha1.ConditionReady, "Held")
	if policy.Status.Target.Cpu().Cmp(resource.MustParse("10")) < 0 {
		eventually.True(t, "the slack is not restored", autoscaler, func(ctx context.Context) (bool, error) {
			err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, policy)
			return policy.Status.Target.Cpu().Cmp(resource.MustParse("10")) >= 0 &&
				policy.Status.Available.Cpu().Cmp(*policy.Status.Total.Cpu()) >= 0, err
		})
	}
	most, err := nodes(t.Context(), c)
	must.Succeed(t, err)

	checkMirrorWithKarpenter(t, c, autoscaler)

	// Without load and rate only the biggest pod is covered, and nodes are removed. Karpenter does not remove
	// nodes that it has recently nominated for pods, and checks twice.
	c.Scale(t, autoscaler, "web", 1)
	unchanged := policy.DeepCopy()
	policy.Spec.MinRate = "0"
	must.Succeed(t, c.Client.Patch(t.Context(), policy, client.MergeFrom(unchanged))) // the controller writes the status meanwhile
	c.AwaitBuffers(t, controller, map[string]string{"general-head": "1 x 1 1Gi"})
	var last []string
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = nodes(ctx, c)
		return len(last) <= len(before), err
	})
	if err != nil {
		t.Fatalf("unused nodes remain: %v\n%s", err, autoscaler)
	}
	// All objects of a deleted policy are deleted.
	must.Succeed(t, c.Client.Delete(t.Context(), policy))
	eventually.True(t, "objects of the policy remain", controller, func(ctx context.Context) (bool, error) {
		var templates v1.PodTemplateList
		err := c.Client.List(ctx, &templates, client.InNamespace(testcluster.SystemNamespace))
		return len(templates.Items) == 0, err
	})
	t.Logf("nodes before the policy %d, with it %d, after the burst %d, at the end %d", len(before), len(with), len(most), len(last))
	controller.Stop(t)
}
