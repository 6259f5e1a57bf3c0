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
	burstPods   = 4
	firstRate   = "50%"
	secondRate  = "25%"
	webName     = "web"
	burstName   = "burst"
	granularity = 4 // placeholders per average node, so that they request 1 CPU like the pods
)

// run is one run of the scenario.
type run struct {
	*cluster
	progress func(string)
	results  []demo.Result
	// refilled is the state when the slack that the burst used is available again.
	refilled state
}

// runSteps runs all steps.
func (r *run) runSteps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.createWeb, r.burstWithoutSlack, r.createPolicy, r.burstWithSlack, r.awaitRefill, r.deleteBurst, r.shrinkPolicy, r.cleanUp,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addResult adds the result of a step and returns the present state.
func (r *run) addResult(ctx context.Context, profile, step, want string, ok func(state) bool, slowest time.Duration) (state, error) {
	now, err := r.state(ctx)
	if err != nil {
		return now, err
	}
	r.results = append(r.results, demo.Result{
		Scenario: Scenario, Profile: profile, Want: want, OK: ok(now),
		Slack: &demo.SlackStep{
			Step: step, Target: cpus(now.target), Available: cpus(now.available), Placeholders: now.placeholders, Nodes: len(now.nodes),
			Seconds: demo.Seconds(slowest),
		},
	})
	return now, nil
}

// createWeb creates the web service in the empty cluster.
func (r *run) createWeb(ctx context.Context) error {
	r.progress(fmt.Sprintf("creating %d web pods in an empty cluster; the autoscaler adds nodes of %s CPUs, which boot in %s",
		webPods, nodeCPU, nodeBootTime))
	if _, err := r.createPods(ctx, webName, webPods, nil); err != nil {
		return err
	}
	full := func(s state) bool { return s.available == 0 }
	_, err := r.addResult(ctx, WithoutSlack, fmt.Sprintf("%d web pods run", webPods), "full nodes", full, 0)
	return err
}

// burst creates the burst, whose pods are expected on a new or an existing node. It returns the
// longest time that a pod waited.
func (r *run) burst(ctx context.Context, profile, want string) (slowest time.Duration, err error) {
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
	return slowest, nil
}

// burstWithoutSlack creates the burst without slack and deletes it.
func (r *run) burstWithoutSlack(ctx context.Context) error {
	before, err := r.state(ctx)
	if err != nil {
		return err
	}
	r.progress(fmt.Sprintf("creating a burst of %d pods; without slack they wait for a new node", burstPods))
	slowest, err := r.burst(ctx, WithoutSlack, newNode)
	if err != nil {
		return err
	}
	more := func(s state) bool { return len(s.nodes) > len(before.nodes) }
	if _, err := r.addResult(ctx, WithoutSlack, fmt.Sprintf("a burst of %d pods", burstPods), "more nodes", more, slowest); err != nil {
		return err
	}
	r.progress(fmt.Sprintf("the pods were bound after %.1f s; deleting the burst, its node is removed, too", slowest.Seconds()))
	if err := r.deletePods(ctx, burstName); err != nil {
		return err
	}
	return r.awaitState(ctx, "the nodes of the burst to be removed", func(s state) bool { return len(s.nodes) <= len(before.nodes) })
}

// createPolicy creates the policy.
func (r *run) createPolicy(ctx context.Context) error {
	before, err := r.state(ctx)
	if err != nil {
		return err
	}
	r.progress(fmt.Sprintf("creating a ResourceSlack policy that keeps slack of %s of the requests", firstRate))
	err = r.api.Create(ctx, &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: v1alpha1.ResourceSlackSpec{
			MinRate: firstRate, Granularity: new(int32(granularity)), Pool: v1alpha1.Pool{NodeSelector: poolLabels},
		},
	})
	if err != nil {
		return err
	}
	if err := r.awaitState(ctx, "the slack to be available", r.isFilled(webPods, firstRate)); err != nil {
		return err
	}
	// The scheduler must know the new node before the burst is created.
	if err := r.Settle(ctx); err != nil {
		return err
	}
	more := func(s state) bool { return len(s.nodes) > len(before.nodes) && s.available >= s.target }
	_, err = r.addResult(ctx, WithSlack, "policy of "+firstRate, "slack before it is needed", more, 0)
	return err
}

// isFilled returns a condition on the state: the target is this rate of the requests of so many pods
// of 1 CPU, it is available on the nodes, and the policy is Ready.
func (r *run) isFilled(pods int64, rate string) func(state) bool {
	millionths, err := v1alpha1.ParseRate(rate)
	target := pods * millionths / 1000
	return func(s state) bool {
		return err == nil && s.policy != nil && s.target == target && s.available >= target &&
			slices.ContainsFunc(s.policy.Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.policy.Generation
			})
	}
}

// burstWithSlack creates the same burst with slack.
func (r *run) burstWithSlack(ctx context.Context) error {
	before, err := r.state(ctx)
	if err != nil {
		return err
	}
	r.progress(fmt.Sprintf("creating the same burst of %d pods; the nodes exist already", burstPods))
	slowest, err := r.burst(ctx, WithSlack, existingNode)
	if err != nil {
		return err
	}
	same := func(s state) bool { return len(s.nodes) == len(before.nodes) }
	r.progress(fmt.Sprintf("the pods were bound after %.2f s; they use the slack, and the autoscaler adds nodes to restore it",
		slowest.Seconds()))
	_, err = r.addResult(ctx, WithSlack, fmt.Sprintf("the same burst of %d pods", burstPods), "no more nodes", same, slowest)
	return err
}

// awaitRefill waits until the slack that the burst used is available again.
func (r *run) awaitRefill(ctx context.Context) (err error) {
	if err := r.awaitState(ctx, "the slack to be refilled", r.isFilled(webPods+burstPods, firstRate)); err != nil {
		return err
	}
	filled := func(s state) bool { return s.available >= s.target }
	r.refilled, err = r.addResult(ctx, WithSlack, "the slack is refilled", "available >= target", filled, 0)
	return err
}

// deleteBurst deletes the burst: the target falls, the placeholders stay, on fewer nodes.
func (r *run) deleteBurst(ctx context.Context) error {
	r.progress("deleting the burst; a node is removed and the target falls at once, the placeholders stay for the scale-down delay of " +
		"ten minutes")
	if err := r.deletePods(ctx, burstName); err != nil {
		return err
	}
	filled, fewer := r.isFilled(webPods, firstRate), func(s state) bool { return len(s.nodes) < len(r.refilled.nodes) }
	err := r.awaitState(ctx, "the target to fall and a node to be removed", func(s state) bool { return filled(s) && fewer(s) })
	if err != nil {
		return err
	}
	kept := func(s state) bool { return s.placeholders == r.refilled.placeholders && fewer(s) }
	_, err = r.addResult(ctx, WithSlack, "the burst is deleted", "as many placeholders, fewer nodes", kept, 0)
	return err
}

// shrinkPolicy lowers the rate of the policy, which takes effect at once.
func (r *run) shrinkPolicy(ctx context.Context) error {
	r.progress("lowering the rate of the policy to " + secondRate +
		", which takes effect at once: placeholders and their node are removed")
	policy := &v1alpha1.ResourceSlack{}
	if err := r.api.Get(ctx, client.ObjectKey{Name: policyName}, policy); err != nil {
		return err
	}
	before := policy.DeepCopy()
	policy.Spec.MinRate = secondRate
	if err := r.api.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
		return err
	}
	filled := r.isFilled(webPods, secondRate)
	// Two nodes for the web service, one for its slack.
	err := r.awaitState(ctx, "the nodes to be removed", func(s state) bool {
		return filled(s) && s.placeholders < r.refilled.placeholders && len(s.nodes) <= webPods/burstPods+1
	})
	if err != nil {
		return err
	}
	fewer := func(s state) bool { return len(s.nodes) < len(r.refilled.nodes) && s.available >= s.target }
	_, err = r.addResult(ctx, WithSlack, "policy of "+secondRate, "fewer nodes, available >= target", fewer, 0)
	return err
}

// cleanUp deletes the policy, waits until its placeholders are deleted, and deletes the web service
// and the nodes.
func (r *run) cleanUp(ctx context.Context) error {
	if err := r.api.Delete(ctx, &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: policyName}}); err != nil {
		return err
	}
	err := r.await(ctx, "the placeholders to be deleted", func(ctx context.Context) (bool, error) {
		var templates v1.PodTemplateList
		err := r.api.List(ctx, &templates, client.InNamespace(systemNamespace))
		return len(templates.Items) == 0, err
	})
	return errors.Join(err, r.deletePods(ctx, webName), r.autoscaler.deleteNodes(ctx))
}

// cpus returns millicores as CPUs.
func cpus(milli int64) string { return resource.NewMilliQuantity(milli, resource.DecimalSI).String() }
