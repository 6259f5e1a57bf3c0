package integration

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
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/karpenter"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// startKarpenterCluster starts a cluster with a scheduler and Karpenter, and returns its log and the objects of a pool of nodes
// of 4 CPUs, which must be created.
func startKarpenterCluster(t *testing.T) (c *testCluster, log *program.Output, pool []*unstructured.Unstructured) {
	t.Helper()
	crds, err := karpenterSource(t).CRDs()
	if err != nil {
		t.Fatal(err)
	}
	c = startCluster(t, crds...)
	log = c.startKarpenter(t)
	c.startDefaultScheduler(t)
	if pool, err = karpenter.Pool("4", 0); err != nil {
		t.Fatal(err)
	}
	return c, log, pool
}

// karpenterProgram builds Karpenter with its simulated provider.
var karpenterProgram = builtOnce("karpenter", func(ctx context.Context, path string) error {
	source, err := karpenter.Find(ctx, ".")
	if err != nil {
		return err
	}
	return source.Build(ctx, path)
})

// startKarpenter runs Karpenter with its simulated provider.
func (c *testCluster) startKarpenter(t *testing.T) *program.Output {
	t.Helper()
	log := &program.Output{}
	process, err := karpenter.Start(karpenter.Options{
		Program: karpenterProgram(t), Kubeconfig: c.Kubeconfig, Namespace: systemNamespace, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Stop)
	return log
}

// nodes returns the names of the nodes of pool general.
func (c *testCluster) nodes(ctx context.Context) ([]string, error) {
	var list v1.NodeList
	err := c.client.List(ctx, &list, client.MatchingLabels{"pool": "general"})
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names, err
}

// scale scales a Deployment of pods of 1 CPU and 1Gi, waits until all run, and returns their nodes.
func (c *testCluster) scale(t *testing.T, log fmt.Stringer, replicas int32) []string {
	t.Helper()
	return c.scaleOf(t, log, "web", replicas)
}

// scaleOf is scale for the Deployment with a name.
func (c *testCluster) scaleOf(t *testing.T, log fmt.Stringer, name string, replicas int32) []string {
	t.Helper()
	labels := map[string]string{"app": name}
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{
				Containers: []v1.Container{{Name: "web", Image: "web", Resources: v1.ResourceRequirements{Requests: requests}}},
			}},
		},
	}
	patch, err := yaml.Marshal(map[string]any{"spec": map[string]any{"replicas": replicas}})
	if err == nil {
		patch, err = yaml.YAMLToJSON(patch)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.client.Create(t.Context(), deployment); err != nil {
		if err := c.client.Patch(t.Context(), deployment, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
	var nodes []string
	eventually.True(t, fmt.Sprintf("%d pods are not running", replicas), log, func(ctx context.Context) (bool, error) {
		var pods v1.PodList
		if err := c.client.List(ctx, &pods, client.MatchingLabels(labels)); err != nil {
			return false, err
		}
		nodes = nil
		for _, pod := range pods.Items {
			if pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
		return len(nodes) == int(replicas) && len(pods.Items) == int(replicas), nil
	})
	return nodes
}

// checkMirrorWithKarpenter checks that the next pods of a workload whose pods exclude each other from a node
// use existing nodes: its placeholders have nodes of their own.
func (c *testCluster) checkMirrorWithKarpenter(t *testing.T, log fmt.Stringer) {
	t.Helper()
	api := mirrored("api", "2", 1)
	api.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "general"}
	api.Spec.Template.Spec.Containers = runningPod("", "", "500m", "512Mi").Spec.Containers
	c.create(t, api)
	var policy v1alpha1.ResourceSlack
	eventually.TrueWithin(
		t,
		3*time.Minute,
		100*time.Millisecond,
		"the mirrors have no capacity",
		log,
		func(ctx context.Context) (bool, error) {
			if err := c.client.Get(ctx, client.ObjectKey{Name: "general"}, &policy); err != nil {
				return false, err
			}
			pods, err := c.runningNodes(ctx, "api")
			return err == nil && len(pods) == 1 && policy.Status.Mirrored == 2 &&
				meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionReady) &&
				meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionAccepted), err
		},
	)
	existing, err := c.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.client.Patch(t.Context(), api, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	eventually.True(t, "the pods of the mirrored workload are not running", log, func(ctx context.Context) (bool, error) {
		nodes, err = c.runningNodes(ctx, "api")
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
	if err := c.client.Delete(t.Context(), api, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	var pods v1.PodList
	if err := c.client.List(t.Context(), &pods, client.MatchingLabels{"app": "api"}); err != nil {
		t.Fatal(err)
	}
	// There is no garbage collector.
	var sets appsv1.ReplicaSetList
	if err := c.client.List(t.Context(), &sets, client.MatchingLabels{"app": "api"}); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		if err := c.client.Delete(t.Context(), &sets.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range pods.Items {
		if err := c.client.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// runningNodes returns the nodes of the running pods with a value of label app.
func (c *testCluster) runningNodes(ctx context.Context, app string) (nodes []string, err error) {
	var pods v1.PodList
	err = c.client.List(ctx, &pods, client.MatchingLabels{"app": app})
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
	t.Parallel()
	c, autoscaler, pool := startKarpenterCluster(t)
	for _, object := range pool {
		c.create(t, object)
	}
	c.scale(t, autoscaler, 6)
	controller := c.startController(t)
	before, err := c.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	// 100% of (6, 6Gi): six placeholders of (1, 1Gi).
	c.create(t, policyOf("general", "100%",
		func(s *v1alpha1.ResourceSlackSpec) { s.Pool.NodeSelector = map[string]string{"pool": "general"} }))
	c.awaitCondition(t, autoscaler, "general", v1alpha1.ConditionReady, "Held")
	with, err := c.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(with) <= len(before) {
		t.Errorf("nodes %v, want more than before the policy: %v", with, before)
	}

	// A burst of four fits the slack.
	for _, node := range c.scale(t, autoscaler, 10) {
		if !slices.Contains(with, node) {
			t.Errorf("a pod of the burst is on %s, a node added after the burst", node)
		}
	}
	policy := c.awaitCondition(t, autoscaler, "general", v1alpha1.ConditionReady, "Held")
	if policy.Status.Target.Cpu().Cmp(resource.MustParse("10")) < 0 {
		eventually.True(t, "the slack is not restored", autoscaler, func(ctx context.Context) (bool, error) {
			err := c.client.Get(ctx, client.ObjectKey{Name: "general"}, policy)
			return policy.Status.Target.Cpu().Cmp(resource.MustParse("10")) >= 0 &&
				policy.Status.Available.Cpu().Cmp(*policy.Status.Total.Cpu()) >= 0, err
		})
	}
	most, err := c.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	c.checkMirrorWithKarpenter(t, autoscaler)

	// Without load and rate only the biggest pod is covered, and nodes are removed. Karpenter does not remove
	// nodes that it has recently nominated for pods, and checks twice.
	c.scale(t, autoscaler, 1)
	if err := c.client.Get(t.Context(), client.ObjectKey{Name: "general"}, policy); err != nil {
		t.Fatal(err)
	}
	policy.Spec.MinRate = "0"
	if err := c.client.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	c.awaitBuffers(t, controller, map[string]string{"general-head": "1 x 1 1Gi"})
	var last []string
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = c.nodes(ctx)
		return len(last) <= len(before), err
	})
	if err != nil {
		t.Fatalf("unused nodes remain: %v\n%s", err, autoscaler)
	}
	// All objects of a deleted policy are deleted.
	if err := c.client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "objects of the policy remain", controller, func(ctx context.Context) (bool, error) {
		var templates v1.PodTemplateList
		err := c.client.List(ctx, &templates, client.InNamespace(systemNamespace))
		return len(templates.Items) == 0, err
	})
	t.Logf("nodes before the policy %d, with it %d, after the burst %d, at the end %d", len(before), len(with), len(most), len(last))
	controller.Stop(t)
}
