package slack

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Compute returns the plan of a policy for the current state of a cluster, as if no placeholders were
// held already. Workloads are the workloads that the policy mirrors. Defaults of the policy are
// applied. It returns an error if the policy is invalid.
func Compute(policy *v1alpha1.ResourceSlack, nodes []*v1.Node, pods []*v1.Pod, workloads []Workload, now time.Time) (Plan, error) {
	tracker, err := NewTracker(policy)
	if err != nil {
		return Plan{}, err
	}
	for _, node := range nodes {
		tracker.SetNode(node, now)
	}
	for _, pod := range pods {
		tracker.SetPod(pod)
	}
	tracker.SetWorkloads(workloads)
	return tracker.Next(now), nil
}

// Resume sets the groups that are held already, such as the groups before a restart of the
// controller. Groups with names that the tracker does not use are ignored.
func (t *Tracker) Resume(groups []Group) {
	var head []resources.Amounts
	var rest Placeholders
	for _, group := range groups {
		held := Placeholders{Requests: resources.CPUAndMemory(group.Requests), Count: group.Count}
		rate := t.policy.Name + rateSuffix
		switch name := group.Name; {
		case name == rate || strings.HasPrefix(name, rate+"-"): // of a domain
			rest = Placeholders{held.Requests, rest.Count + held.Count}
		case name == t.policy.Name+headSuffix || name == t.policy.Name+headSuffix+"2":
			head = append(head, held.Requests)
		default:
			t.resumeDevices(group)
			if !IsMirrorName(group.Name) {
				continue
			}
			t.mirrors[group.Name] = &mirrorCount{}
			t.mirrors[group.Name].Set(group.Count)
		}
	}
	if len(head) > 0 || rest.Count > 0 {
		t.planner.Resume(head, rest)
	}
}

// Next returns the plan at a time.
func (t *Tracker) Next(now time.Time) Plan {
	t.setTime(now)
	t.schedule.advance(now)
	pool, spread := t.ledger.Pool(), t.spread()
	if len(pool.Shapes) > 0 {
		t.lastNode = pool.Shapes[0]
	}
	if pool.Expected = t.lastNode; pool.Expected.IsZero() {
		pool.Expected = boundOf(t.policy.Spec.Pool.NodeShape).Amounts
	}
	if spread != nil {
		pool.Domains = len(spread.Domains)
	}
	changed := t.planner.isChanged(t.schedule.policy)
	planned := t.planner.Next(pool, t.schedule.policy, t.now)
	plan := planOf(t.policy.Name, planned)
	t.setCoolDown(&plan, planned.CoolDownEnd)
	if plan.NoNodes {
		plan.Reasons = []string{describeEmptyPool(t.policy.Spec.Pool)}
		if t.schedule.policy.Floor != (bound{}) {
			plan.Reasons = append(plan.Reasons,
				"the size of a node is not known: set spec.pool.nodeShape to hold the minimum before the first node")
		}
	}
	if !t.lastNode.IsZero() {
		plan.NodeShape = listOf(t.lastNode)
	}
	if pool.SparePods > 0 {
		plan.Reasons = append(plan.Reasons, fmt.Sprintf("free capacity includes %s with a negative priority: %s",
			format.Of(pool.SparePods, "pod"), pool.Spare))
	}
	plan.setSpread(spread, t.policy.Spec.Spread)
	if len(t.policy.Spec.Schedules) > 0 {
		plan.Schedule = t.schedule.status.DeepCopy()
		plan.Reasons = append(plan.Reasons, t.schedule.calendar.Warnings...)
	}
	if spec := &t.policy.Spec; spec.ProvisioningStrategy != "" && spec.Backend != v1alpha1.BackendCapacityBuffer {
		plan.Reasons = append(plan.Reasons, fmt.Sprintf("spec.provisioningStrategy has no effect with backend %s", spec.Backend))
	}
	t.addDevices(&plan, changed)
	t.addMirrors(&plan)
	return plan
}

// describeEmptyPool returns the reason of a plan for a pool without nodes.
func describeEmptyPool(pool v1alpha1.Pool) string {
	selector := "all nodes without taints"
	if len(pool.NodeSelector) > 0 {
		selector = labels.FormatLabels(pool.NodeSelector)
	}
	return fmt.Sprintf("spec.pool: no node matches (nodeSelector: %s; tolerations: %d): placeholders that are held remain",
		selector, len(pool.Tolerations))
}
