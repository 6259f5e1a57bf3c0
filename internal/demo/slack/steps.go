package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// Scenario is the name of the scenario, in which the same burst of pods is created without slack and
// with slack.
const Scenario = "slack"

// Shows describes the scenario in one sentence.
const Shows = "with slack, the pods of a burst start at once; without slack, they wait for nodes to boot"

// Values of Result.Profile in this scenario. The scheduler profile is always the default one.
const (
	WithoutSlack = "without slack"
	WithSlack    = "with slack"
)

// Expected nodes of the pods of a burst.
const (
	newNode      = "a new node"
	existingNode = "an existing node"
)

// Workload and policy of the scenario. The pods request 1 CPU each and the nodes have 4 CPUs: the
// web service fills two nodes, a burst fills another one.
const (
	policyName  = "general"
	webPods     = 8
	webNodes    = 2
	burstPods   = 4
	webName     = "web"
	burstName   = "burst"
	granularity = 4 // placeholders per average node
)

// run is one run of the scenario.
type run struct {
	cluster
	progress func(string)
	results  []demo.Result
}

// runSteps runs all steps.
func (r *run) runSteps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.createWeb, r.burstWithoutSlack, r.createPolicy, r.burstWithSlack, r.awaitRefill, r.cleanUp,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addResult adds the result of a step, the state of the cluster. Amounts are CPUs.
func (r *run) addResult(ctx context.Context, profile, step, want string, ok func(state) bool) error {
	now, err := r.state(ctx)
	if err != nil {
		return err
	}
	r.results = append(r.results, demo.Result{
		Scenario: Scenario, Profile: profile, Object: step, Want: want, OK: ok(now),
		Got: fmt.Sprintf("target %s, available %s, %s, %s", format.Cores(now.target), format.Cores(now.available),
			format.Of(now.placeholders, "placeholder"), format.Of(len(now.nodes), "node")),
	})
	return nil
}

// createWeb creates the web service in the empty cluster.
func (r *run) createWeb(ctx context.Context) error {
	r.progress(fmt.Sprintf("creating %d web pods in an empty cluster; the autoscaler adds nodes of %s CPUs, which boot in %s",
		webPods, nodeCPU, nodeBootTime))
	if _, err := r.createPods(ctx, webName, webPods, nil); err != nil {
		return err
	}
	full := func(s state) bool { return s.available == 0 }
	return r.addResult(ctx, WithoutSlack, fmt.Sprintf("%d web pods run", webPods), "full nodes", full)
}

// burst creates the burst, whose pods are expected on a new or an existing node. It returns the
// longest time that a pod waited.
func (r *run) burst(ctx context.Context, profile, step, want string) (slowest time.Duration, err error) {
	before, err := r.state(ctx)
	if err != nil {
		return 0, err
	}
	arrivals, err := r.createPods(ctx, burstName, burstPods, nil)
	if err != nil {
		return 0, err
	}
	for _, a := range arrivals {
		exists := slices.Contains(before.nodes, a.node)
		r.results = append(r.results, demo.Result{
			Scenario: Scenario, Profile: profile, Object: a.pod, Got: a.node, Want: want,
			// A pod that fits an existing node waits less than half the boot time.
			OK:      exists == (want == existingNode) && exists == (a.waited < nodeBootTime/2),
			Seconds: demo.Seconds(a.waited),
		})
		slowest = max(slowest, a.waited)
	}
	ok, wantNodes := func(s state) bool { return len(s.nodes) == len(before.nodes) }, "no more nodes"
	if want == newNode {
		ok, wantNodes = func(s state) bool { return len(s.nodes) > len(before.nodes) }, "more nodes"
	}
	return slowest, r.addResult(ctx, profile, step, wantNodes, ok)
}

// burstWithoutSlack creates the burst without slack and deletes it.
func (r *run) burstWithoutSlack(ctx context.Context) error {
	r.progress(fmt.Sprintf("creating a burst of %d pods; without slack they wait for a new node", burstPods))
	slowest, err := r.burst(ctx, WithoutSlack, fmt.Sprintf("a burst of %d pods", burstPods), newNode)
	if err != nil {
		return err
	}
	r.progress(fmt.Sprintf("the pods were bound after %.1f s; deleting the burst, its node is removed, too", slowest.Seconds()))
	if err := r.deletePods(ctx, burstName); err != nil {
		return err
	}
	return r.awaitState(ctx, "the nodes of the burst to be removed", func(s state) bool { return len(s.nodes) <= webNodes })
}

// createPolicy creates the policy and waits until its slack is available.
func (r *run) createPolicy(ctx context.Context) error {
	r.progress(fmt.Sprintf("creating a policy with a minimum of %d CPUs: the autoscaler adds nodes for it", burstPods))
	before, err := r.state(ctx)
	if err != nil {
		return err
	}
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: policyName}, Spec: v1alpha1.ResourceSlackSpec{
		MinRate: "0%", CoverBiggestPod: new(false), Granularity: new(int32(granularity)), Pool: v1alpha1.Pool{NodeSelector: poolLabels},
		Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("4")), Memory: new(resource.MustParse("8Gi"))},
	}}
	if err := r.API.Create(ctx, policy); err != nil {
		return err
	}
	if err := r.awaitState(ctx, "the slack to be available", isFilled); err != nil {
		return err
	}
	// The scheduler must know the new node before the burst is created.
	if err := r.Settle(ctx); err != nil {
		return err
	}
	more := func(s state) bool { return len(s.nodes) > len(before.nodes) && s.available >= s.target }
	return r.addResult(ctx, WithSlack, "the policy", "slack before it is needed", more)
}

// isFilled reports whether the target of the policy is available on the nodes, and the policy is Ready.
func isFilled(s state) bool {
	return s.policy != nil && s.target == burstPods*1000 && s.available >= s.target &&
		slices.ContainsFunc(s.policy.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.policy.Generation
		})
}

// burstWithSlack creates the same burst with slack.
func (r *run) burstWithSlack(ctx context.Context) error {
	r.progress(fmt.Sprintf("creating the same burst of %d pods; the nodes exist already", burstPods))
	slowest, err := r.burst(ctx, WithSlack, fmt.Sprintf("the same burst of %d pods", burstPods), existingNode)
	if err != nil {
		return err
	}
	r.progress(fmt.Sprintf("the pods were bound after %.2f s; they use the slack, and the autoscaler adds nodes to restore it",
		slowest.Seconds()))
	return nil
}

// awaitRefill waits until the slack that the burst used is available again.
func (r *run) awaitRefill(ctx context.Context) error {
	if err := r.awaitState(ctx, "the slack to be refilled", isFilled); err != nil {
		return err
	}
	filled := func(s state) bool { return s.available >= s.target }
	return r.addResult(ctx, WithSlack, "the slack is refilled", "available >= target", filled)
}

// cleanUp deletes the policy, waits until its placeholders are deleted, and deletes the pods.
func (r *run) cleanUp(ctx context.Context) error {
	if err := r.API.Delete(ctx, &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: policyName}}); err != nil {
		return err
	}
	err := r.Await(ctx, "the placeholders to be deleted", func(ctx context.Context) (bool, error) {
		var templates v1.PodTemplateList
		err := r.API.List(ctx, &templates, client.InNamespace(systemNamespace))
		return len(templates.Items) == 0, err
	})
	return errors.Join(err, r.deletePods(ctx, burstName), r.deletePods(ctx, webName))
}

// cluster is the cluster of the scenario, whose nodes an autoscaler adds and removes.
type cluster struct{ *demo.Cluster }

// state is the state of the cluster. Amounts are millicores.
type state struct {
	// target and placeholders are from the status of the policy.
	target, placeholders int64
	// available is the free capacity of the nodes. The policy's status has the same value up to a
	// second later.
	available int64
	nodes     []string
	// policy is nil before it is created.
	policy *v1alpha1.ResourceSlack
}

// state returns the present state.
func (c cluster) state(ctx context.Context) (state, error) {
	var out state
	nodes, pods, err := c.State(ctx)
	if err != nil {
		return out, err
	}
	for i := range nodes {
		node := &nodes[i]
		out.nodes = append(out.nodes, node.Name)
		if node.Spec.Unschedulable {
			continue // about to be removed
		}
		out.available += allocatable(node).CPU
		for k := range pods {
			if pods[k].Spec.NodeName == node.Name && !resources.IsFinished(&pods[k]) {
				out.available -= recording.PodAmounts(&pods[k]).CPU
			}
		}
	}
	policy := &v1alpha1.ResourceSlack{}
	if err := c.API.Get(ctx, client.ObjectKey{Name: policyName}, policy); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	out.policy, out.placeholders = policy, policy.Status.Placeholders
	out.target = policy.Status.Target.Cpu().MilliValue()
	return out, nil
}

// awaitState waits until a condition on the state is true.
func (c cluster) awaitState(ctx context.Context, what string, condition func(state) bool) error {
	return c.Await(ctx, what, func(ctx context.Context) (bool, error) {
		now, err := c.state(ctx)
		return err == nil && condition(now), err
	})
}

// podSpec is the spec of all pods.
var podSpec = demo.Pod{Request: "1", Limit: "1", MemoryRequest: "2Gi", MemoryLimit: "2Gi"}.Object(demo.DefaultProfile).Spec

// deploy creates a deployment of pods with a node selector.
func (c cluster) deploy(ctx context.Context, name string, replicas int32, selector map[string]string) error {
	labels := map[string]string{"app": name}
	spec := podSpec.DeepCopy()
	spec.NodeSelector = selector
	_, err := c.Client.AppsV1().Deployments(demo.Namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *spec},
		},
	}, metav1.CreateOptions{})
	return err
}

// deletePods deletes a deployment and its pods. It scales the deployment down first, because the
// control plane has no garbage collector.
func (c cluster) deletePods(ctx context.Context, name string) error {
	apps, selector := c.Client.AppsV1(), metav1.ListOptions{LabelSelector: "app=" + name}
	none := []byte(`{"spec":{"replicas":0}}`)
	if _, err := apps.Deployments(demo.Namespace).Patch(ctx, name, types.MergePatchType, none, metav1.PatchOptions{}); err != nil {
		return err
	}
	err := c.Await(ctx, "the pods of "+name+" to be deleted", func(ctx context.Context) (bool, error) {
		pods, err := c.Client.CoreV1().Pods(demo.Namespace).List(ctx, selector)
		return err == nil && len(pods.Items) == 0, err
	})
	if err != nil {
		return err
	}
	if err := apps.Deployments(demo.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return apps.ReplicaSets(demo.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, selector)
}

// boundPod is a pod of a deployment, its node, and the time from its creation to its binding.
type boundPod struct {
	pod, node string
	waited    time.Duration
}

// createPods creates a deployment with a node selector and waits until its pods are bound. The times are
// when this process observed the changes, because API timestamps are in seconds.
func (c cluster) createPods(ctx context.Context, name string, replicas int32, selector map[string]string) ([]boundPod, error) {
	ctx, cancel := context.WithTimeout(ctx, demo.Timeout)
	defer cancel()
	events, err := c.Client.CoreV1().Pods(demo.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	if err := c.deploy(ctx, name, replicas, selector); err != nil {
		return nil, err
	}
	created := map[string]time.Time{}
	var out []boundPod
	for event := range events.ResultChan() {
		pod, isPod := event.Object.(*v1.Pod)
		if !isPod {
			break // an error
		}
		if _, known := created[pod.Name]; !known {
			created[pod.Name] = time.Now()
		}
		if pod.Spec.NodeName != "" && !slices.ContainsFunc(out, func(p boundPod) bool { return p.pod == pod.Name }) {
			out = append(out, boundPod{pod.Name, pod.Spec.NodeName, time.Since(created[pod.Name])})
		}
		if len(out) == int(replicas) {
			slices.SortFunc(out, func(a, b boundPod) int { return strings.Compare(a.pod, b.pod) })
			return out, nil
		}
	}
	err = cmp.Or(context.Cause(ctx), errors.New("the watch ended"))
	return nil, fmt.Errorf("waiting for the pods of %s: %d of %d are bound: %w", name, len(out), replicas, err)
}
