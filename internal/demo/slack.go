package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// SlackScenario is the scenario with an autoscaler: the same burst of pods
// arrives without slack and with it.
const SlackScenario = "slack"

// SlackShows says in a sentence what is to be seen.
const SlackShows = "pods of a burst start at once where slack is kept, and wait for nodes to boot where none is"

// What the results of the slack scenario are filed under in place of a profile:
// the scheduler's is the default one throughout.
const (
	withoutSlack = "without slack"
	withSlack    = "with slack"
)

// The nodes that a pod of a burst may go to.
const (
	newNode   = "a new node"
	nodeThere = "a node that was there"
)

// What the scenario is made of: pods of 1 CPU on nodes of 4, so that the web
// service fills two nodes and leaves nothing, and a burst fills another one.
const (
	policyName  = "general"
	webPods     = 8
	burstPods   = 4
	firstRate   = "50%"
	secondRate  = "25%"
	webName     = "web"
	burstName   = "burst"
	granularity = 4 // placeholders on an average node: of 1 CPU, like the pods
)

// SlackState is the cluster after a step of the slack scenario. Amounts are
// CPUs.
type SlackState struct {
	Step      string `json:"step"`
	Target    string `json:"target"`
	Available string `json:"available"`
	// Placeholders is how many the policy holds, Nodes how many nodes there are.
	Placeholders int64 `json:"placeholders"`
	Nodes        int   `json:"nodes"`
	// Seconds is how long the pod of a burst that waited longest did, where the
	// step is one.
	Seconds float64 `json:"seconds,omitempty"`
}

// slackRun is one run of the scenario.
type slackRun struct {
	*slackCluster
	timeline *timeline
	say      func(string)
	results  []Result
	// refilled is the state with the slack filled up again.
	refilled slackState
}

// tell says what comes next and why.
func (r *slackRun) tell(text string) {
	r.timeline.mark(text)
	r.say("scenario " + SlackScenario + ": " + text)
}

// play runs all steps.
func (r *slackRun) play(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.begin, r.burstWithout, r.keep, r.burstWith, r.refill, r.loadGoes, r.shrink, r.end} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note adds the result of a step.
func (r *slackRun) note(ctx context.Context, profile, step, want string, ok func(slackState) bool, slowest time.Duration) (slackState, error) {
	state, err := r.look(ctx)
	if err != nil {
		return state, err
	}
	r.results = append(r.results, Result{
		Scenario: SlackScenario, Profile: profile, Want: want, OK: ok(state),
		Slack: &SlackState{
			Step: step, Target: cpus(state.target), Available: cpus(state.available), Placeholders: state.placeholders, Nodes: len(state.nodes),
			Seconds: seconds(slowest),
		},
	})
	return state, nil
}

// begin lets the web service arrive in the empty cluster.
func (r *slackRun) begin(ctx context.Context) error {
	r.tell(fmt.Sprintf("%d web pods arrive in an empty cluster; the autoscaler makes nodes of %s CPUs, which take %s to boot", webPods, nodeCPU, nodeBootTime))
	if _, err := r.arrive(ctx, webName, webPods); err != nil {
		return err
	}
	_, err := r.note(ctx, withoutSlack, fmt.Sprintf("%d web pods run", webPods), "full nodes", func(s slackState) bool { return s.available == 0 }, 0)
	return err
}

// burst lets the burst arrive, each pod of which is to go to a node as wanted.
func (r *slackRun) burst(ctx context.Context, profile, want string) (slowest time.Duration, err error) {
	before, err := r.look(ctx)
	if err != nil {
		return 0, err
	}
	arrivals, err := r.arrive(ctx, burstName, burstPods)
	if err != nil {
		return 0, err
	}
	for _, a := range arrivals {
		there := slices.Contains(before.nodes, a.node)
		r.results = append(r.results, Result{
			Scenario: SlackScenario, Profile: profile, Pod: a.pod, Node: a.node, Want: want,
			// A pod that finds room does not wait for half as long as a node boots.
			OK:      there == (want == nodeThere) && there == (a.waited < nodeBootTime/2),
			Seconds: seconds(a.waited),
		})
		slowest = max(slowest, a.waited)
	}
	return slowest, nil
}

// burstWithout lets the burst arrive where no slack is kept, and go again.
func (r *slackRun) burstWithout(ctx context.Context) error {
	before, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.tell(fmt.Sprintf("a burst of %d pods arrives; no slack is kept, so they wait for a node", burstPods))
	slowest, err := r.burst(ctx, withoutSlack, newNode)
	if err != nil {
		return err
	}
	more := func(s slackState) bool { return len(s.nodes) > len(before.nodes) }
	if _, err := r.note(ctx, withoutSlack, fmt.Sprintf("a burst of %d pods", burstPods), "more nodes", more, slowest); err != nil {
		return err
	}
	r.tell(fmt.Sprintf("they had nodes after %.1f s; the burst goes, and so does its node", slowest.Seconds()))
	if err := r.remove(ctx, burstName); err != nil {
		return err
	}
	return r.until(ctx, "the nodes of the burst to go", func(s slackState) bool { return len(s.nodes) <= len(before.nodes) })
}

// keep makes the policy.
func (r *slackRun) keep(ctx context.Context) error {
	before, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.tell(fmt.Sprintf("a ResourceSlack policy: keep %s of what the pods request to spare", firstRate))
	err = r.api.Create(ctx, &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: v1alpha1.ResourceSlackSpec{
			MinRate: firstRate, Granularity: new(int32(granularity)), Pool: v1alpha1.Pool{NodeSelector: poolLabels},
		},
	})
	if err != nil {
		return err
	}
	if err := r.until(ctx, "the slack to be there", r.filled(webPods, firstRate)); err != nil {
		return err
	}
	// The burst must not come before the scheduler knows of the node.
	if err := r.settle(ctx); err != nil {
		return err
	}
	more := func(s slackState) bool { return len(s.nodes) > len(before.nodes) && s.available >= s.target }
	_, err = r.note(ctx, withSlack, "policy of "+firstRate, "room before it is needed", more, 0)
	return err
}

// filled is that a rate of so many pods of 1 CPU is the target, and the nodes
// have it to spare, as the controller sees it.
func (r *slackRun) filled(pods int64, rate string) func(slackState) bool {
	millionths, err := v1alpha1.ParseRate(rate)
	target := pods * millionths / 1000
	return func(s slackState) bool {
		return err == nil && s.policy != nil && s.target == target && s.available >= target &&
			slices.ContainsFunc(s.policy.Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.policy.Generation
			})
	}
}

// burstWith lets the same burst arrive where slack is kept.
func (r *slackRun) burstWith(ctx context.Context) error {
	before, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.tell(fmt.Sprintf("the same burst of %d pods; the nodes are there before it", burstPods))
	slowest, err := r.burst(ctx, withSlack, nodeThere)
	if err != nil {
		return err
	}
	same := func(s slackState) bool { return len(s.nodes) == len(before.nodes) }
	if _, err := r.note(ctx, withSlack, fmt.Sprintf("the same burst of %d pods", burstPods), "no more nodes", same, slowest); err != nil {
		return err
	}
	r.tell(fmt.Sprintf("they had nodes after %.2f s; real pods have taken the slack, the autoscaler makes it anew", slowest.Seconds()))
	return nil
}

// refill waits until the slack that the burst has taken is there again.
func (r *slackRun) refill(ctx context.Context) (err error) {
	if err := r.until(ctx, "the slack to be refilled", r.filled(webPods+burstPods, firstRate)); err != nil {
		return err
	}
	r.refilled, err = r.note(ctx, withSlack, "the slack is refilled", "available >= target", func(s slackState) bool { return s.available >= s.target }, 0)
	return err
}

// loadGoes lets the burst go: the target falls, the placeholders stay, on fewer
// nodes.
func (r *slackRun) loadGoes(ctx context.Context) error {
	r.tell("the burst goes, and a node; the target falls at once, the placeholders stay for ten minutes in case it comes back")
	if err := r.remove(ctx, burstName); err != nil {
		return err
	}
	filled, fewer := r.filled(webPods, firstRate), func(s slackState) bool { return len(s.nodes) < len(r.refilled.nodes) }
	if err := r.until(ctx, "the target to fall and a node to go", func(s slackState) bool { return filled(s) && fewer(s) }); err != nil {
		return err
	}
	kept := func(s slackState) bool { return s.placeholders == r.refilled.placeholders && fewer(s) }
	_, err := r.note(ctx, withSlack, "the burst is gone", "as many placeholders, fewer nodes", kept, 0)
	return err
}

// shrink makes the policy a smaller one, which takes effect at once.
func (r *slackRun) shrink(ctx context.Context) error {
	r.tell(fmt.Sprintf("a smaller policy, %s, takes effect at once: placeholders go, and the node that only they kept", secondRate))
	policy := &v1alpha1.ResourceSlack{}
	if err := r.api.Get(ctx, client.ObjectKey{Name: policyName}, policy); err != nil {
		return err
	}
	before := policy.DeepCopy()
	policy.Spec.MinRate = secondRate
	if err := r.api.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
		return err
	}
	filled := r.filled(webPods, secondRate)
	// Two nodes for the web service, one for its slack.
	err := r.until(ctx, "the nodes to go", func(s slackState) bool {
		return filled(s) && s.placeholders < r.refilled.placeholders && len(s.nodes) <= webPods/burstPods+1
	})
	if err != nil {
		return err
	}
	fewer := func(s slackState) bool { return len(s.nodes) < len(r.refilled.nodes) && s.available >= s.target }
	_, err = r.note(ctx, withSlack, "policy of "+secondRate, "fewer nodes, available >= target", fewer, 0)
	return err
}

// end removes the policy, and sees that nothing is left of it; then everything
// else.
func (r *slackRun) end(ctx context.Context) error {
	r.timeline.end()
	if err := r.api.Delete(ctx, &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: policyName}}); err != nil {
		return err
	}
	err := r.await(ctx, "the placeholders to go", func(ctx context.Context) (bool, error) {
		var templates v1.PodTemplateList
		err := r.api.List(ctx, &templates, client.InNamespace(reserve))
		return len(templates.Items) == 0, err
	})
	return errors.Join(err, r.remove(ctx, webName), r.autoscaler.empty(ctx))
}

// cpus writes millicores as CPUs.
func cpus(milli int64) string { return resource.NewMilliQuantity(milli, resource.DecimalSI).String() }

// seconds rounds a duration to milliseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// Summary says in a line what the result is.
func (r Result) Summary() string {
	switch {
	case r.Fleet != nil:
		return r.Fleet.summary()
	case r.Slack == nil:
		return r.Pod + " -> " + r.Node
	}
	s := r.Slack
	parts := []string{"target " + s.Target, "available " + s.Available, fmt.Sprintf("%d placeholders", s.Placeholders), fmt.Sprintf("%d nodes", s.Nodes)}
	if s.Seconds > 0 {
		parts = append(parts, fmt.Sprintf("slowest pod %.2f s", s.Seconds))
	}
	return strings.Join(parts, ", ")
}
