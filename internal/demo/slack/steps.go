package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
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
	*cluster
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

// addResult adds the result of a step.
func (r *run) addResult(ctx context.Context, profile, step, want string, ok func(state) bool, slowest time.Duration) error {
	now, err := r.state(ctx)
	if err != nil {
		return err
	}
	r.results = append(r.results, demo.Result{
		Scenario: Scenario, Profile: profile, Want: want, OK: ok(now),
		Slack: &demo.SlackStep{
			Step: step, Target: format.Cores(now.target), Available: format.Cores(now.available), Placeholders: now.placeholders,
			Nodes: len(now.nodes), Seconds: demo.Seconds(slowest),
		},
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
	return r.addResult(ctx, WithoutSlack, fmt.Sprintf("%d web pods run", webPods), "full nodes", full, 0)
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
			Scenario: Scenario, Profile: profile, Pod: a.pod, Node: a.node, Want: want,
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
	return slowest, r.addResult(ctx, profile, step, wantNodes, ok, slowest)
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
	return r.addResult(ctx, WithSlack, "the policy", "slack before it is needed", more, 0)
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
	return r.addResult(ctx, WithSlack, "the slack is refilled", "available >= target", filled, 0)
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
