package slack

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// nodeCapacity is the capacity left on each node while one iteration assigns placeholders.
type nodeCapacity struct {
	tracker *Tracker
	pods    []*v1.Pod
	// index is filled when a placeholder has anti-affinity.
	index podIndex
	// free is filled as nodes are used. others, the free amounts of all resources, is filled when a
	// placeholder requests more than CPU and memory.
	free   map[string]*freeCapacity
	others map[string]v1.ResourceList
}

func newNodeCapacity(tracker *Tracker, pods []*v1.Pod) *nodeCapacity {
	return &nodeCapacity{tracker: tracker, pods: pods, free: map[string]*freeCapacity{}}
}

// assigner returns a function that assigns one placeholder of a group to a node and reports whether
// the node permits and fits it.
func (c *nodeCapacity) assigner(group *Group) func(placeholder *v1.Pod, node string) bool {
	size := resources.CPUAndMemory(group.Requests)
	if group.Mirror == nil {
		return func(_ *v1.Pod, name string) bool {
			free := c.of(name)
			return free.InPool && free.Assign(size)
		}
	}
	matches := nodeMatches(group.Mirror)
	anti := newAntiAffinity(group.Mirror)
	if len(anti.terms) > 0 {
		if c.index == nil {
			c.index = indexPods(c.pods)
		}
		anti.addPods(c.index, c.tracker.nodes)
	}
	return func(placeholder *v1.Pod, name string) bool {
		node := c.tracker.nodes[name]
		if node == nil || !matches(node) || !anti.permits(node) || !c.hasOthers(name, group.Requests) || !c.of(name).Assign(size) {
			return false
		}
		anti.add(placeholder.Namespace, placeholder.Labels, node)
		c.assignOthers(name, group.Requests)
		return true
	}
}

// of returns the capacity left on a node.
func (c *nodeCapacity) of(name string) *freeCapacity {
	if c.free[name] == nil {
		c.free[name] = new(c.tracker.ledger.NodeCapacity(name))
	}
	return c.free[name]
}

// isOther reports whether a request is one for a resource other than CPU and memory.
func isOther(name v1.ResourceName, requests v1.ResourceList) bool {
	quantity := requests[name]
	return name != v1.ResourceCPU && name != v1.ResourceMemory && quantity.Sign() > 0
}

// hasOthers reports whether a node has enough of all requested resources other than CPU and memory.
func (c *nodeCapacity) hasOthers(node string, requests v1.ResourceList) bool {
	for name, quantity := range requests {
		if !isOther(name, requests) {
			continue
		}
		if c.others == nil {
			c.countOthers()
		}
		if free := c.others[node][name]; free.Cmp(quantity) < 0 {
			return false
		}
	}
	return true
}

// assignOthers subtracts the requested resources other than CPU and memory from a node.
func (c *nodeCapacity) assignOthers(node string, requests v1.ResourceList) {
	for name, quantity := range requests {
		if isOther(name, requests) {
			subtract(c.others[node], name, quantity)
		}
	}
}

// countOthers computes the free amounts of all resources.
func (c *nodeCapacity) countOthers() {
	c.others = make(map[string]v1.ResourceList, len(c.tracker.nodes))
	for name, node := range c.tracker.nodes {
		c.others[name] = node.Status.Allocatable.DeepCopy()
	}
	for _, pod := range c.pods {
		if free := c.others[pod.Spec.NodeName]; free != nil && observePod(pod).Node != "" {
			for name, quantity := range resources.Requests(pod) {
				subtract(free, name, quantity)
			}
		}
	}
}

// subtract subtracts a quantity from the list if the list has the resource.
func subtract(list v1.ResourceList, name v1.ResourceName, quantity resource.Quantity) {
	if free, ok := list[name]; ok {
		free.Sub(quantity)
		list[name] = free
	}
}
