package slack

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Capacity is the capacity that the pods of a tracker's nodes leave at one time. It does not change with
// the tracker, and is safe for concurrent use.
type Capacity struct {
	nodes   []nodeCapacity
	devices []string
}

// Capacity returns the present capacity: of the pool or, if the policy may have mirrors, of the cluster.
func (t *Tracker) Capacity() *Capacity {
	return &Capacity{nodes: t.ledger.capacities(t.mayMirror()), devices: t.policy.Spec.Pool.Devices}
}

// byName returns the nodes by name.
func (c *Capacity) byName() map[string]*nodeCapacity {
	nodes := make(map[string]*nodeCapacity, len(c.nodes))
	for i := range c.nodes {
		nodes[c.nodes[i].node.Name] = &c.nodes[i]
	}
	return nodes
}

// LargestFree returns the largest amounts of CPU and memory that are free on a usable node, after Placeable if it was called.
func (c *Capacity) LargestFree() (largest resources.Amounts) {
	for i := range c.nodes {
		if n := &c.nodes[i]; n.Usable && !n.Booting {
			largest = largest.Max(resources.Amounts{CPU: n.Free.CPU, Memory: n.Free.Memory})
		}
	}
	return largest
}

// maxComparisons is the number of comparisons of pods with terms of anti-affinity that are made for
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
	// Place the placeholders that mirror workloads first, then the placeholders of domains: they may have fewer nodes to choose from.
	for i := range slices.Backward(plan.Groups) {
		if group := &plan.Groups[i]; !tooMany[group.Mirror] {
			demands = append(demands, c.demandOf(group, exclusions))
		}
	}
	return placeAll(c.nodes, demands)
}

// exclusionsOf returns the required anti-affinity of the mirrors of a plan that have any, and the mirrors
// for which maxComparisons is not enough.
func (c *Capacity) exclusionsOf(plan Plan, pods []*v1.Pod) (exclusions map[*Group]antiAffinity, tooMany map[*Workload]bool) {
	exclusions, tooMany = map[*Group]antiAffinity{}, map[*Workload]bool{}
	var index podIndex
	var nodes map[string]*nodeCapacity
	comparisons := map[string]int{}
	for i := range plan.Groups {
		w := plan.Groups[i].Mirror
		anti := newAntiAffinity(&plan.Groups[i])
		if len(anti) == 0 {
			continue
		}
		if index == nil {
			index, nodes = indexPods(pods), c.byName()
		}
		if comparisons[w.Namespace] += anti.comparisons(index); comparisons[w.Namespace] > maxComparisons {
			tooMany[w] = true
			continue
		}
		anti.addPods(index, nodes)
		exclusions[&plan.Groups[i]] = anti
	}
	return exclusions, tooMany
}

// demandOf returns the demand for the placeholders of a group, given the anti-affinity of all groups. Placeholders of the rate may be
// on the nodes of the pool.
func (c *Capacity) demandOf(group *Group, exclusions map[*Group]antiAffinity) demand {
	d := demand{
		Placeholders: Placeholders{Requests: amountsOf(group.Requests, c.devices), Count: group.Count},
		Allowed: func(node *nodeCapacity) bool {
			return node.InPool && (group.NodeSelector == nil || includes(node.node.Labels, group.NodeSelector))
		},
	}
	d.Requests.Pods = 1
	if group.Mirror == nil {
		return d
	}
	matches, anti := NodeMatches(&group.Mirror.Template.Spec), exclusions[group]
	d.Allowed = func(node *nodeCapacity) bool { return matches(node.node) && anti.permits(node.node) }
	if len(exclusions) > 0 {
		d.Assigned = func(node *nodeCapacity) {
			for _, other := range exclusions {
				other.add(group.Mirror.Namespace, group.Mirror.Template.Labels, node.node)
			}
		}
	}
	return d
}

// capacities returns the capacity left on each node of the pool, or of the cluster, by name. It does not change with the ledger.
func (l *poolLedger) capacities(all bool) []nodeCapacity {
	accounts := l.members
	if all {
		accounts = l.accounts
	}
	nodes := make([]nodeCapacity, 0, len(accounts))
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		if a := accounts[name]; a.node != nil {
			free := a.free()
			free.Pods = a.Slots - int64(len(a.pods))
			nodes = append(nodes, nodeCapacity{a.node, l.members[name] != nil, a.Usable, a.Booting, free})
		}
	}
	return nodes
}
