package slack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/slackpolicy"
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

// Recommended begins the name of the step that recommends the policy.
const Recommended = "recommended: "

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

// scheduleLead is the time from setting the clock of the controller to the change of the schedule.
const scheduleLead = 3 * time.Second

// run is one run of the scenario.
type run struct {
	*cluster
	progress func(string)
	results  []demo.Result
	// recommended is the policy, whose schedule applies from begin to end.
	recommended *v1alpha1.ResourceSlack
	begin, end  time.Time
}

// runSteps runs all steps.
func (r *run) runSteps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.createWeb, r.burstWithoutSlack, r.recommend, r.createPolicy, r.startSchedule, r.burstWithSlack, r.awaitRefill, r.endSchedule,
		r.cleanUp,
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

// recommend searches the cheapest policy with which the pods of such bursts have a node at once: in a day in which they arrive every
// ten minutes of eight hours, beginning with the next full hour.
func (r *run) recommend(ctx context.Context) error {
	const hour, period = 3600, 600
	r.begin = time.Now().UTC().Add(2 * time.Minute).Truncate(time.Hour).Add(time.Hour)
	r.end = r.begin.Add(8 * time.Hour)
	r.progress(
		fmt.Sprintf("the search of plimsoll recommend finds the cheapest policy without waits for a day in which such a burst arrives "+
			"every %d minutes from %s to %s UTC", period/60, clockTime(r.begin), clockTime(r.end)),
	)
	web := slackpolicy.Pod{Arrival: -1, Duration: math.MaxInt64, Requests: recording.PodAmounts(&v1.Pod{Spec: podSpec})}
	h := &slackpolicy.History{Start: r.begin.Add(-8 * time.Hour), Seconds: 24 * hour, Pods: slices.Repeat([]slackpolicy.Pod{web}, webPods)}
	for burst := web; ; {
		burst.Arrival, burst.Duration = max(8*hour, burst.Arrival)+period, period/2
		if burst.Arrival >= 16*hour {
			break
		}
		h.Pods = append(h.Pods, slices.Repeat([]slackpolicy.Pod{burst}, burstPods)...)
	}
	spec := v1alpha1.ResourceSlackSpec{
		MinRate: "0%", CoverBiggestPod: new(false), Granularity: new(int32(granularity)), Pool: v1alpha1.Pool{NodeSelector: poolLabels},
	}
	node := slackpolicy.NodeType{
		Allocatable: shape, Boot: int64(nodeBootTime / time.Second), Cost: 1, Max: standInMaxNodes,
		Loop: autoscaler.Loop{Interval: 1, Idle: standInIdleSeconds, Utilization: standInUtilization},
	}
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: policyName}, Spec: spec}
	found, err := slackpolicy.Search(ctx, h, node, slackpolicy.Goal{Percent: 99, Wait: nodeBootTime / 2, Policy: policy})
	if err != nil {
		return err
	}
	if found.Best == nil || len(found.Best.Policy.Spec.Schedules) == 0 {
		return fmt.Errorf("no policy with a schedule is recommended: %+v", found.Best)
	}
	r.recommended = found.Best.Policy
	minimum := r.recommended.Spec.Schedules[0].Minimum
	step := fmt.Sprintf("%s%s CPU %s from %s to %s UTC", Recommended, format.Cores(minimum.CPU.MilliValue()),
		format.Bytes(minimum.Memory.Value()), clockTime(r.begin), clockTime(r.end))
	r.progress(fmt.Sprintf("%s: %.0f node-hours a day, without slack %.0f", step, found.Best.Cost, found.None.Cost))
	return r.addResult(ctx, WithSlack, step, "a schedule", func(state) bool { return true }, 0)
}

// clockTime returns the hour and minute of a time.
func clockTime(t time.Time) string { return t.Format("15:04") }

// createPolicy creates the recommended policy, whose schedule does not apply yet.
func (r *run) createPolicy(ctx context.Context) error {
	r.progress("creating the recommended policy; its schedule starts at " + clockTime(r.begin) + " UTC")
	if err := r.API.Create(ctx, r.recommended.DeepCopy()); err != nil {
		return err
	}
	waits := func(s state) bool {
		return r.isFilled(0)(s) && s.policy.Status.Schedule != nil && s.policy.Status.Schedule.NextChange.Time.Equal(r.begin)
	}
	if err := r.awaitState(ctx, "the policy to wait for its schedule", waits); err != nil {
		return err
	}
	none := func(s state) bool { return s.placeholders == 0 && s.available == 0 }
	return r.addResult(ctx, WithSlack, "the policy before its schedule", "no placeholders", none, 0)
}

// startSchedule lets the schedule start.
func (r *run) startSchedule(ctx context.Context) error {
	before, err := r.state(ctx)
	if err != nil {
		return err
	}
	minimum := r.recommended.Spec.Schedules[0].Minimum
	if err := r.setClock(ctx, r.begin, minimum); err != nil {
		return err
	}
	if err := r.awaitState(ctx, "the slack to be available", r.isFilled(minimum.CPU.MilliValue())); err != nil {
		return err
	}
	// The scheduler must know the new node before the burst is created.
	if err := r.Settle(ctx); err != nil {
		return err
	}
	more := func(s state) bool { return len(s.nodes) > len(before.nodes) && s.available >= s.target }
	return r.addResult(ctx, WithSlack, "the schedule starts", "slack before it is needed", more, 0)
}

// setClock sets the clock of the controller to a few seconds before a change of the schedule, and changes an annotation of
// the policy, so that the controller reads its clock. The clock of the controller of an external cluster cannot be set: its policy
// gets the minimum after the change in place of the schedule.
func (r *run) setClock(ctx context.Context, change time.Time, minimum *v1alpha1.Amount) error {
	policy := &v1alpha1.ResourceSlack{}
	if err := r.API.Get(ctx, client.ObjectKey{Name: policyName}, policy); err != nil {
		return err
	}
	before := policy.DeepCopy()
	if r.ahead == nil {
		policy.Spec.Minimum, policy.Spec.Schedules = minimum, nil
		return r.API.Patch(ctx, policy, client.MergeFrom(before))
	}
	shown := change.Add(-scheduleLead)
	r.progress(fmt.Sprintf("setting the clock of the controller to %s UTC; the schedule changes in %s",
		shown.Format(time.TimeOnly), scheduleLead))
	r.ahead.Store(int64(time.Until(shown)))
	policy.Annotations = map[string]string{"demo.plimsoll.dev/clock": shown.Format(time.RFC3339)}
	return r.API.Patch(ctx, policy, client.MergeFrom(before))
}

// isFilled returns a condition on the state: the policy has this target in millicores, it is available on the nodes, and the
// policy is Ready.
func (r *run) isFilled(target int64) func(state) bool {
	return func(s state) bool {
		return s.policy != nil && s.target == target && s.available >= target &&
			slices.ContainsFunc(s.policy.Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.policy.Generation
			})
	}
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
	target := r.recommended.Spec.Schedules[0].Minimum.CPU.MilliValue()
	if err := r.awaitState(ctx, "the slack to be refilled", r.isFilled(target)); err != nil {
		return err
	}
	filled := func(s state) bool { return s.available >= s.target }
	return r.addResult(ctx, WithSlack, "the slack is refilled", "available >= target", filled, 0)
}

// endSchedule deletes the burst and lets the schedule end: the placeholders and their nodes are removed.
func (r *run) endSchedule(ctx context.Context) error {
	r.progress("deleting the burst; the schedule ends at " + clockTime(r.end) + " UTC: placeholders and their nodes are removed at once")
	if err := r.deletePods(ctx, burstName); err != nil {
		return err
	}
	if err := r.setClock(ctx, r.end, nil); err != nil {
		return err
	}
	none, filled := func(s state) bool { return s.placeholders == 0 && len(s.nodes) <= webNodes }, r.isFilled(0)
	if err := r.awaitState(ctx, "the nodes to be removed", func(s state) bool { return filled(s) && none(s) }); err != nil {
		return err
	}
	return r.addResult(ctx, WithSlack, "the schedule ends", "no placeholders, nodes of the web pods only", none, 0)
}

// cleanUp deletes the policy, waits until its placeholders are deleted, and deletes the web service
// and the nodes.
func (r *run) cleanUp(ctx context.Context) error {
	if r.ahead != nil {
		r.ahead.Store(0)
	}
	if err := r.API.Delete(ctx, &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: policyName}}); err != nil {
		return err
	}
	err := r.await(ctx, "the placeholders to be deleted", func(ctx context.Context) (bool, error) {
		var templates v1.PodTemplateList
		err := r.API.List(ctx, &templates, client.InNamespace(systemNamespace))
		return len(templates.Items) == 0, err
	})
	return errors.Join(err, r.deletePods(ctx, webName), r.autoscaler.deleteNodes(ctx))
}
