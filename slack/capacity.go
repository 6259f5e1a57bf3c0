package slack

import (
	"cmp"
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

// poolTotals is the input of a plan. Only the ledger's own totals have devices.
type poolTotals struct {
	// Requested is the sum of the requests of all pods, without daemon pods and pods with devices.
	Requested resources.Amounts
	// Allocatable is the sum over the usable nodes, Free the part that their pods leave free on nodes that do
	// not boot, and Nodes the number of usable nodes. Matching is the number of all nodes of the pool.
	Allocatable, Free resources.Amounts
	Nodes, Matching   int
	// Spare is the sum of the requests of pods that only reserve capacity, and SparePods their number.
	Spare     resources.Amounts
	SparePods int
	// Domains is the number of domains over which placeholders are spread. The ledger does not know it.
	Domains int
	// MaxPodRequests is the highest request of any pod for each resource. LargestByCPU and
	// LargestByMemory are the requests of the pod with the highest request of that resource; the
	// other resource breaks ties. All are zero if there are no pods.
	MaxPodRequests, LargestByCPU, LargestByMemory resources.Amounts
	// Shapes are the capacities of usable nodes after daemon pods, without shapes that another shape
	// exceeds in all resources, in a fixed order.
	Shapes []resources.Amounts
	// Expected is the capacity of the nodes that the pool will have if it has none, zero if it is not known.
	Expected resources.Amounts
}

// averageNode returns the allocatable resources of the average node, or else of the node that the pool will have.
func (p *poolTotals) averageNode() resources.Amounts {
	if p.Nodes == 0 {
		return p.Expected
	}
	return p.Allocatable.DivideUp(int64(p.Nodes))
}

// maximalShapes returns the shapes that no other shape exceeds in all resources, by descending CPU.
// Amounts that fit any shape fit one of these.
func maximalShapes(shapes []resources.Amounts) []resources.Amounts {
	slices.SortFunc(shapes, func(a, b resources.Amounts) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory))
	})
	// CPU does not increase from one shape to the next: a shape is maximal if it has more memory than
	// all shapes before it.
	maximal, memory := shapes[:0], int64(-1)
	for _, shape := range shapes {
		if shape.Memory > memory {
			maximal, memory = append(maximal, shape), shape.Memory
		}
	}
	return maximal
}

// fitsAny reports whether one of the shapes has enough of all resources.
func fitsAny(a resources.Amounts, shapes []resources.Amounts) bool {
	return slices.ContainsFunc(shapes, a.FitsIn)
}
