// Package slack keeps spare capacity for the next pods in the form of placeholders, which an
// autoscaler treats like pending pods. It computes plans from the nodes, pods and policies of a
// cluster, and the placeholder pods or API objects of a plan.
//
// Autoscalers that are built from source use a Loop. Controllers use a Tracker, and the Backend of
// the policy.
package slack

import (
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Tracker tracks the pool of one policy, one change of a node or pod at a time, and computes its
// plans. It is not safe for concurrent use.
type Tracker struct {
	policy *v1alpha1.ResourceSlack
	// algoPolicy is policy in the terms of the planner, while schedule applies.
	algoPolicy ratePolicy
	schedule   *activeSchedule
	ledger     *poolLedger
	planner    planner
	nodes      map[string]*v1.Node
	workloads  []Workload
	// mirrors are the numbers of placeholders that mirror workloads, by group name.
	mirrors map[string]*mirrorCount
	// devices are the placeholders for pods with devices.
	devices map[deviceShape]*heldDevices
	// start is the time of the first plan.
	start time.Time
}

// mirrorCount is the number of placeholders of one workload.
type mirrorCount struct {
	damped[int64]
	// annotation is the workload's annotation. A changed annotation takes effect at once.
	annotation string
}

// NewTracker returns a tracker of an empty pool of its own cluster. It returns an error if the policy is invalid.
func NewTracker(policy *v1alpha1.ResourceSlack) (*Tracker, error) {
	return NewCluster(policy.Spec.Pool.Devices...).NewTracker(policy)
}

// NewTracker returns a tracker whose nodes must be set. The pods of the cluster are known. It returns an error if the policy is
// invalid.
func (c *Cluster) NewTracker(policy *v1alpha1.ResourceSlack) (*Tracker, error) {
	t := &Tracker{
		ledger: c.newPool(), nodes: c.nodes, mirrors: map[string]*mirrorCount{}, devices: map[deviceShape]*heldDevices{},
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
	algoPolicy, err := policyOf(policy)
	if err != nil {
		return err
	}
	t.policy, t.algoPolicy, t.schedule = policy, algoPolicy, nil
	if len(policy.Spec.Schedules) > 0 {
		calendar, _ := policy.Spec.Calendar() // valid
		t.schedule = &activeSchedule{calendar: calendar}
	}
	return nil
}

// Policy returns the policy with its defaults.
func (t *Tracker) Policy() *v1alpha1.ResourceSlack { return t.policy }

// SetNode adds or updates a node as it is at a time. It reports whether the node is in the pool.
func (t *Tracker) SetNode(node *v1.Node, now time.Time) bool {
	inPool := InPool(node, t.policy.Spec.Pool)
	if !inPool && !t.mayMirror() && node.ResourceVersion != "" && t.ledger.members[node.Name] == nil {
		if a := t.ledger.accounts[node.Name]; a != nil && a.version == node.ResourceVersion {
			return false // unchanged, and plans without mirrors do not use it
		}
	}
	t.ledger.SetNode(node.Name, observeNode(node, inPool, t.ledger.devices, now))
	t.ledger.account(node.Name).version = node.ResourceVersion
	t.nodes[node.Name] = node
	return inPool
}

// mayMirror reports whether the policy may have mirrors, which use nodes outside of the pool.
func (t *Tracker) mayMirror() bool { return t.policy.Spec.Mirrors.NamespaceSelector != nil }

// HasNode reports whether the tracker has a node that is in the pool.
func (t *Tracker) HasNode(name string) bool { return t.ledger.members[name] != nil }

// PodNames returns the namespaces and names of the pods on nodes of the pool, in no order.
func (t *Tracker) PodNames() (names []string) {
	for _, a := range t.ledger.members {
		names = append(names, a.pods...)
	}
	return names
}

// NodeType returns the most common type of the usable nodes of the pool, the smaller one of equally common types, for an
// autoscaler with the defaults of Cluster Autoscaler whose nodes boot within a number of seconds and cost 1 per hour. It returns
// false if the pool has no such nodes.
func (t *Tracker) NodeType(boot int64) (node NodeType, ok bool) {
	node = NodeType{
		Boot:        boot,
		Interval:    ScanInterval,
		Idle:        UnneededTime,
		AfterAdd:    DelayAfterAdd,
		Utilization: Threshold,
		Cost:        1,
		Max:         math.MaxInt32,
	}
	var shape resources.Amounts
	most := 0
	for s, n := range t.ledger.nodeShapes {
		if n > most || n == most && s.Less(shape) {
			shape, most = s, n
		}
	}
	for _, a := range t.ledger.members {
		if a.Usable && a.Allocatable.Subtract(a.daemons) == shape {
			daemons := 0
			for _, id := range a.pods {
				if t.ledger.pods[id].Daemon {
					daemons++
				}
			}
			node.Slots = max(node.Slots, a.Slots-int64(daemons))
		}
	}
	node.MilliCPU, node.Memory = shape[resources.CPU], shape[resources.Memory]
	return node, node.MilliCPU > 0 && node.Memory > 0
}

// DeleteNode removes a node.
func (t *Tracker) DeleteNode(name string) { t.ledger.DeleteNode(name) }

// SetPod adds or updates a pod.
func (t *Tracker) SetPod(pod *v1.Pod) { t.ledger.SetPod(pod) }

// DeletePod removes a pod.
func (t *Tracker) DeletePod(pod *v1.Pod) { t.ledger.DeletePod(pod) }

// SetPod adds or updates a pod for all trackers of the cluster.
func (c *Cluster) SetPod(pod *v1.Pod) { c.setPod(resources.Name(pod), observePod(pod, c.devices)) }

// DeletePod removes a pod for all trackers of the cluster.
func (c *Cluster) DeletePod(pod *v1.Pod) { c.deletePod(resources.Name(pod)) }

// SetWorkloads sets the workloads that the policy mirrors. GoverningPolicy selects the policy of a
// workload.
func (t *Tracker) SetWorkloads(workloads []Workload) { t.workloads = workloads }

// Resume sets the groups that are held already, such as the groups before a restart of the
// controller. Groups with names that the tracker does not use are ignored.
func (t *Tracker) Resume(groups []Group) {
	var head []resources.Amounts
	var rest sizeGroup
	for _, group := range groups {
		held := sizeGroup{Size: resources.CPUAndMemory(group.Requests), Count: group.Count}
		switch group.Name {
		case t.policy.Name + rateSuffix:
			rest = held
		case t.policy.Name + headSuffix, t.policy.Name + headSuffix + "2":
			head = append(head, held.Size)
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

// seconds returns a time in seconds, by which cool-downs are measured. It advances as the monotonic clock does
// if times have one: a wall clock that jumps neither ends nor extends a cool-down. Adding jump, which is a number
// of minutes, gives the time of the wall clock.
func (t *Tracker) seconds(now time.Time) (seconds, jump int64) {
	if t.start.IsZero() {
		t.start = now
	}
	seconds = t.start.Unix() + int64(now.Sub(t.start)/time.Second)
	return seconds, (now.Unix() - seconds) / 60 * 60
}

// Next returns the plan at a time.
func (t *Tracker) Next(now time.Time) Plan {
	seconds, jump := t.seconds(now)
	if t.schedule != nil && t.schedule.advance(&t.policy.Spec, now) {
		t.algoPolicy = t.schedule.policy
	}
	pool, spread := t.ledger.Pool(), t.spread()
	if spread != nil {
		pool.Domains = len(spread.Domains)
	}
	changed := t.planner.isChanged(t.algoPolicy)
	planned := t.planner.Next(pool, t.algoPolicy, seconds)
	if planned.CoolDownEnd != 0 {
		planned.CoolDownEnd += jump
	}
	plan := planOf(t.policy.Name, planned)
	if plan.NoNodes {
		plan.Reasons = []string{describeEmptyPool(t.policy.Spec.Pool)}
	}
	plan.setSpread(spread, t.policy.Spec.Spread)
	if t.schedule != nil {
		plan.Schedule = t.schedule.status.DeepCopy()
		plan.Reasons = append(plan.Reasons, t.schedule.calendar.Overlaps...)
	}
	t.addDevices(&plan, changed, seconds, jump)
	t.addMirrors(&plan, seconds, jump)
	return plan
}

// describeEmptyPool returns the reason of a plan for a pool without nodes.
func describeEmptyPool(pool v1alpha1.Pool) string {
	selector := "all nodes except control-plane nodes"
	if len(pool.NodeSelector) > 0 {
		selector = labels.FormatLabels(pool.NodeSelector)
	}
	return fmt.Sprintf("spec.pool: no node matches (nodeSelector: %s; tolerations: %d): placeholders that are held remain",
		selector, len(pool.Tolerations))
}

// Free returns the capacity that the pods of the pool's usable nodes leave free.
func (t *Tracker) Free() v1.ResourceList { return listOf(t.ledger.Pool().Free) }

// Capacity is the capacity that the pods of a tracker's nodes leave at one time. It does not change with
// the tracker, and is safe for concurrent use.
type Capacity struct {
	nodes   map[string]*v1.Node
	free    []freeCapacity
	devices []string
}

// Capacity returns the present capacity: of the pool or, if the policy may have mirrors, of the cluster.
func (t *Tracker) Capacity() *Capacity {
	c := &Capacity{nodes: map[string]*v1.Node{}, free: t.ledger.Capacities(t.mayMirror()), devices: t.policy.Spec.Pool.Devices}
	for i := range c.free {
		c.nodes[c.free[i].name] = t.nodes[c.free[i].name]
	}
	return c
}

// maxComparisons is the number of comparisons of pods with terms of anti-affinity that Placeable makes for
// the mirrors of one namespace: about a second.
const maxComparisons = 20_000_000

// Placeable returns a lower bound of how many of a plan's placeholders fit the nodes: the order in
// which it places placeholders is not always optimal. It considers CPU, memory, the maximum number
// of pods, node selectors, taints, and the required anti-affinity of mirrors to each other and to
// pods. Pods must include all pods in the namespaces of AntiAffinityNamespaces. Mirrors do not count
// if there are too many pods to compare with the anti-affinity of the mirrors of their namespace.
func (c *Capacity) Placeable(plan Plan, pods []*v1.Pod) int64 {
	demands := make([]demand, 0, len(plan.Groups))
	exclusions, tooMany := c.exclusionsOf(plan, pods)
	// Place the placeholders that mirror workloads first: they may have fewer nodes to choose from.
	for _, mirrors := range []bool{true, false} {
		for i := range plan.Groups {
			group := &plan.Groups[i]
			if (group.Mirror != nil) != mirrors || tooMany[group.Mirror] {
				continue
			}
			d := demand{
				sizeGroup: sizeGroup{Size: resources.CPUAndMemory(group.Requests), Count: group.Count},
				Devices:   devicesOf(group.Requests, c.devices),
			}
			switch {
			case mirrors:
				c.constrain(&d, group, exclusions)
				demands = appendMirror(demands, d, group)
			case group.Device != "":
				demands = append(demands, d)
			default:
				demands = append(demands, plan.Spread.demands(c, d)...)
			}
		}
	}
	return placeAll(c.free, demands)
}

// appendMirror appends the demand of the placeholders of a group that mirrors a workload. If the groups of the workload have several
// pods, all of its placeholders are one demand for whole groups.
func appendMirror(demands []demand, d demand, group *Group) []demand {
	shapes := group.Mirror.Shapes
	if len(shapes) == 1 && shapes[0].Pods == 1 {
		return append(demands, d)
	}
	groups := d.Count / shapes[group.Shape].Pods
	d.Count = shapes[group.Shape].Pods
	if group.Shape == 0 {
		return append(demands, demand{sizeGroup: sizeGroup{Count: groups}, Group: []demand{d}})
	}
	last := &demands[len(demands)-1]
	last.Group = append(last.Group, d)
	return demands
}

// exclusionsOf returns the required anti-affinity of the mirrors of a plan that have any, and the mirrors
// for which maxComparisons is not enough.
func (c *Capacity) exclusionsOf(plan Plan, pods []*v1.Pod) (exclusions map[*Group]antiAffinity, tooMany map[*Workload]bool) {
	exclusions, tooMany = map[*Group]antiAffinity{}, map[*Workload]bool{}
	index := indexPods(pods)
	comparisons := map[string]int{}
	for i := range plan.Groups {
		w := plan.Groups[i].Mirror
		anti := newAntiAffinity(&plan.Groups[i])
		if len(anti) == 0 {
			continue
		}
		if comparisons[w.Namespace] += anti.comparisons(index); comparisons[w.Namespace] > maxComparisons {
			tooMany[w] = true
			continue
		}
		anti.addPods(index, c.nodes)
		exclusions[&plan.Groups[i]] = anti
	}
	return exclusions, tooMany
}

// constrain sets the nodes on which the placeholders of a group may be.
func (c *Capacity) constrain(demand *demand, group *Group, exclusions map[*Group]antiAffinity) {
	matches := nodeMatches(group.template())
	anti := exclusions[group]
	demand.Allowed = func(name string) bool {
		node := c.nodes[name]
		return node != nil && matches(node) && anti.permits(node)
	}
	if len(exclusions) == 0 {
		return
	}
	demand.Assigned = func(name string) {
		for _, other := range exclusions {
			other.add(group.Mirror.Namespace, group.template().Labels, c.nodes[name])
		}
	}
}
