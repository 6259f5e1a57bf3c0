// Package slack keeps spare capacity for the next pods in the form of placeholders, which an
// autoscaler treats like pending pods. It computes plans from the nodes, pods and policies of a
// cluster, and the placeholder pods or API objects of a plan.
//
// Autoscalers that are built from source use a Loop. Controllers use a Tracker, and the Backend of
// the policy.
package slack

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Tracker tracks the pool of one policy, one change of a node or pod at a time, and computes its
// plans. Pods are set for all trackers of its cluster. It is not safe for concurrent use.
type Tracker struct {
	*Cluster
	policy    *v1alpha1.ResourceSlack
	schedule  activeSchedule
	ledger    *poolLedger
	planner   planner
	workloads []Workload
	// mirrors are the numbers of placeholders that mirror workloads, by group name.
	mirrors map[string]*mirrorCount
	// lastNode is the capacity, after daemon pods, of a node that the pool had last, zero if it is not known.
	lastNode resources.Amounts
	// domains are the domains of spec.spread that the pool had last, nil if they are not known.
	domains *Spread
	// devices are the placeholders for pods with devices.
	devices map[resources.ExtendedAmounts]*heldDevices
	// start is the time of the first plan. now is the time of the last plan in seconds, by which cool-downs are measured, and jump
	// what must be added for the time of the wall clock.
	start     time.Time
	now, jump int64
}

// mirrorCount is the number of placeholders of one workload.
type mirrorCount struct {
	damped[int64]
	// annotation is the workload's annotation. A changed annotation takes effect at once.
	annotation string
}

// heldDevices are the placeholders for pods with equal devices. As long as they cover the wanted size and it has not drifted, their
// size stays the same, because an autoscaler drops placeholders for a moment when their template changes. Their number grows at once
// and shrinks after a cool-down.
type heldDevices struct {
	size  resources.Amounts
	count damped[int64]
}

// NewTracker returns a tracker of an empty pool of its own cluster. It returns an error if the policy is invalid.
func NewTracker(policy *v1alpha1.ResourceSlack) (*Tracker, error) {
	return NewCluster(policy.Spec.Pool.Devices...).NewTracker(policy)
}

// NewTracker returns a tracker whose nodes must be set. The pods of the cluster are known. It returns an error if the policy is
// invalid.
func (c *Cluster) NewTracker(policy *v1alpha1.ResourceSlack) (*Tracker, error) {
	t := &Tracker{
		Cluster: c, ledger: c.newPool(), mirrors: map[string]*mirrorCount{}, devices: map[resources.ExtendedAmounts]*heldDevices{},
	}
	return t, t.SetPolicy(policy)
}

// Close removes the tracker from its cluster.
func (t *Tracker) Close() {
	for _, a := range t.ledger.members {
		a.pools = slices.DeleteFunc(a.pools, func(pool *poolLedger) bool { return pool == t.ledger })
	}
}

// TakeChanged reports whether nodes or pods of the pool have changed since the last call. Policies with mirrors always report
// a change: other pods may use the nodes for the mirrors.
func (t *Tracker) TakeChanged() bool {
	isChanged := t.ledger.isChanged || len(t.mirrors) > 0
	t.ledger.isChanged = false
	return isChanged
}

// SetPolicy replaces the policy. If its pool changed, all nodes must be set again. A policy whose devices changed requires a new
// tracker. If the policy is invalid, SetPolicy returns an error and the previous policy remains.
func (t *Tracker) SetPolicy(policy *v1alpha1.ResourceSlack) error {
	policy = policy.DeepCopy()
	policy.Spec.Default()
	schedule, err := newSchedule(policy)
	if err == nil {
		t.policy, t.schedule = policy, schedule
	}
	return err
}

// Policy returns the policy with its defaults.
func (t *Tracker) Policy() *v1alpha1.ResourceSlack { return t.policy }

// SetNode adds or updates a node as it is at a time. It reports whether the node is in the pool.
func (t *Tracker) SetNode(node *v1.Node, now time.Time) bool {
	inPool := InPool(node, t.policy.Spec.Pool)
	if !inPool && !t.mayMirror() && node.ResourceVersion != "" && t.ledger.members[node.Name] == nil {
		if a := t.ledger.accounts[node.Name]; a != nil && a.node != nil && a.node.ResourceVersion == node.ResourceVersion {
			return false // unchanged, and plans without mirrors do not use it
		}
	}
	t.ledger.SetNode(node, inPool, observeNode(node, t.ledger.devices, now))
	return inPool
}

// mayMirror reports whether the policy may have mirrors, which use nodes outside of the pool.
func (t *Tracker) mayMirror() bool { return t.policy.Spec.Mirrors.NamespaceSelector != nil }

// HasNode reports whether the tracker has a node that is in the pool.
func (t *Tracker) HasNode(name string) bool { return t.ledger.members[name] != nil }

// SetPod adds or updates a pod for all trackers of the cluster.
func (c *Cluster) SetPod(pod *v1.Pod) { c.setPod(resources.Name(pod), observePod(pod, c.devices)) }

// DeletePod removes a pod for all trackers of the cluster.
func (c *Cluster) DeletePod(pod *v1.Pod) { c.deletePod(resources.Name(pod)) }

// SetWorkloads sets the workloads that the policy mirrors. GoverningPolicy selects the policy of a
// workload.
func (t *Tracker) SetWorkloads(workloads []Workload) { t.workloads = workloads }

// ResumePool sets the capacity of a node, and the domains, that the pool had last: Plan.NodeShape and the domains of Plan.Spread before a
// restart of the controller.
func (t *Tracker) ResumePool(shape v1.ResourceList, domains []string) {
	t.lastNode = resources.CPUAndMemory(shape)
	if spread := t.policy.Spec.Spread; spread != nil {
		t.domains = &Spread{TopologyKey: spread.TopologyKey, Domains: domains}
	}
}

// setTime sets the time of a plan. It advances as the monotonic clock does if times have one: a wall clock that jumps neither ends
// nor extends a cool-down. jump is a number of minutes.
func (t *Tracker) setTime(now time.Time) {
	if t.start.IsZero() {
		t.start = now
	}
	t.now = t.start.Unix() + int64(now.Sub(t.start)/time.Second)
	t.jump = (now.Unix() - t.now) / 60 * 60
}

// wallTime returns the end of a cool-down in the form of timestamps in the API.
func (t *Tracker) wallTime(end int64) string {
	return time.Unix(end+t.jump, 0).UTC().Format(time.RFC3339)
}

// setCoolDown adds a reason to a plan for placeholders that are held until the end of a cool-down; 0 is no cool-down.
func (t *Tracker) setCoolDown(p *Plan, end int64) {
	if end == 0 || p.CoolDown {
		return
	}
	p.CoolDown = true
	p.Reasons = append(p.Reasons, fmt.Sprintf("placeholders that are no longer required are removed at %s, "+
		"unless they are required again before", t.wallTime(end)))
}

// Free returns the capacity that the pods of the pool's usable nodes leave free.
func (t *Tracker) Free() v1.ResourceList { return listOf(t.ledger.Pool().Free) }

// coolDown is the number of seconds for which a value remains held after a lower value was wanted.
const coolDown = 600

// damped is a value that increases at once, and decreases to the highest value that was wanted in the last coolDown
// seconds. The zero value holds the zero value of T, and is ready to use.
type damped[T any] struct {
	// candidates are the values that may be held, in descending order: at most one for each Next of the last coolDown
	// seconds. The first is held.
	candidates []candidate[T]
}

// candidate is a value, and the time in seconds since which no higher value was wanted.
type candidate[T any] struct {
	value T
	since int64
}

// Current returns the value that is held.
func (d *damped[T]) Current() (current T) {
	if len(d.candidates) > 0 {
		current = d.candidates[0].value
	}
	return current
}

// Set sets the value and ends a cool-down.
func (d *damped[T]) Set(value T) { d.candidates = []candidate[T]{{value: value}} }

// Next returns the value that is held at a time in seconds, given the wanted value, and the time at which it
// decreases if no higher value is wanted until then, 0 if it is the wanted value. exceeds reports whether a value
// may be held in place of a lower one.
func (d *damped[T]) Next(wanted T, now int64, exceeds func(held, wanted T) bool) (current T, coolDownEnd int64) {
	since, n := now, len(d.candidates)
	for ; n > 0 && !exceeds(d.candidates[n-1].value, wanted); n-- {
		since = d.candidates[n-1].since
	}
	d.candidates = append(d.candidates[:n], candidate[T]{wanted, since})
	for len(d.candidates) > 1 && (now-d.candidates[1].since >= coolDown || !exceeds(d.candidates[0].value, wanted)) {
		d.candidates = d.candidates[1:]
	}
	if len(d.candidates) > 1 {
		coolDownEnd = d.candidates[1].since + coolDown
	}
	return d.Current(), coolDownEnd
}

// isMore reports whether a held number is higher than the wanted number.
func isMore(held, wanted int64) bool { return held > wanted }
