package slack

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Loop computes the placeholders of one policy in each iteration of an autoscaler. The autoscaler
// calls Next and appends the placeholders without a node to its pending pods; placeholders with a node
// stay on it. It is not safe for concurrent use.
type Loop struct {
	tracker   *Tracker
	namespace string
	// pods are the pods of the last iteration.
	pods      map[types.NamespacedName]*observedPod
	iteration int
}

// observedPod is a pod in the iteration that observed it last. A pod that is the same object, with
// the same version, node and phase, is not read again.
type observedPod struct {
	pod           *v1.Pod
	version, node string
	phase         v1.PodPhase
	iteration     int
}

func (o *observedPod) isChanged(pod *v1.Pod) bool {
	return o.pod != pod || o.version != pod.ResourceVersion || o.node != nodeOf(pod) || o.phase != pod.Status.Phase
}

// NewLoop returns the loop of a policy. Placeholders of the rate are in the namespace, mirrors are in
// the namespace of their workload. It returns an error if the policy is invalid.
func NewLoop(policy *v1alpha1.ResourceSlack, namespace string) (*Loop, error) {
	tracker, err := NewTracker(policy)
	if err != nil {
		return nil, err
	}
	return &Loop{tracker: tracker, namespace: namespace, pods: map[types.NamespacedName]*observedPod{}}, nil
}

// SetWorkloads sets the workloads that the policy mirrors. GoverningPolicy selects the policy of a
// workload.
func (l *Loop) SetWorkloads(workloads []Workload) { l.tracker.SetWorkloads(workloads) }

// Next returns the placeholders of an iteration, and their plan. Nodes and pods are all nodes and
// pods of the cluster. Placed are the placeholders of the last iteration, with spec.nodeName set to
// the node that the autoscaler put them on.
//
// A placeholder keeps its name, UID and node for as long as it is in the plan. It loses its node if
// the node is deleted, has no capacity left after its pods, or is no longer permitted by node
// selectors, taints or required anti-affinity. New placeholders have no node. Placeholders are
// removed from the highest index down. A node should be in the pool of one policy only: the
// placeholders of other policies are not subtracted from its capacity.
//
// Objects that are the same as in the last iteration, for example from an informer's cache, are not
// read again: of a pod that was modified in place without a new resource version, only changes of the
// node and phase are detected.
func (l *Loop) Next(nodes []*v1.Node, pods []*v1.Pod, placed []*v1.Pod, now time.Time) ([]*v1.Pod, Plan) {
	l.observe(nodes, pods, now)
	plan := l.tracker.Next(now)
	return l.placeholders(plan, placed, pods), plan
}

// observe passes the changes since the last iteration to the tracker.
func (l *Loop) observe(nodes []*v1.Node, pods []*v1.Pod, now time.Time) {
	l.iteration++
	existing := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		existing[node.Name] = true
		l.tracker.SetNode(node, now)
	}
	for name := range l.tracker.nodes {
		if !existing[name] {
			l.tracker.DeleteNode(name)
		}
	}
	distinct := 0
	for _, pod := range pods {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		observed := l.pods[key]
		if observed == nil {
			observed = &observedPod{}
			l.pods[key] = observed
		}
		if observed.iteration != l.iteration {
			distinct++
		}
		if observed.iteration = l.iteration; observed.isChanged(pod) {
			observed.pod, observed.version, observed.node, observed.phase = pod, pod.ResourceVersion, nodeOf(pod), pod.Status.Phase
			l.tracker.SetPod(pod)
		}
	}
	if len(l.pods) == distinct {
		return // no pod was deleted
	}
	for key, observed := range l.pods {
		if observed.iteration != l.iteration {
			delete(l.pods, key)
			l.tracker.DeletePod(observed.pod)
		}
	}
}

// placeholders returns the placeholders of a plan. Placed ones keep their node if possible.
func (l *Loop) placeholders(plan Plan, placed, pods []*v1.Pod) []*v1.Pod {
	nodes := nodesByName(placed)
	capacity := newNodeCapacity(l.tracker, pods)
	var out []*v1.Pod
	// In the order of the plan: the first placeholders keep their node if pods leave capacity for some
	// of them only.
	for i := range plan.Groups {
		group := &plan.Groups[i]
		assign := capacity.assigner(group)
		for index := range group.Count {
			placeholder := placeholderPod(l.tracker.policy, *group, index, l.namespace)
			if node := nodes[placeholder.Name]; node != "" && assign(placeholder, node) {
				placeholder.Spec.NodeName = node
			}
			out = append(out, placeholder)
		}
	}
	return out
}

// nodesByName returns the nodes of pods by the names of the pods.
func nodesByName(pods []*v1.Pod) map[string]string {
	nodes := make(map[string]string, len(pods))
	for _, pod := range pods {
		nodes[pod.Name] = pod.Spec.NodeName
	}
	return nodes
}

// Displaced returns the sorted names of the placeholders that had a node and are no longer on it.
// Placeholders that are not in after are not included.
func Displaced(before, after []*v1.Pod) []string {
	nodes := nodesByName(after)
	var names []string
	for _, pod := range before {
		if node, exists := nodes[pod.Name]; exists && pod.Spec.NodeName != "" && node != pod.Spec.NodeName {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nodeCapacity is the capacity left on each node while one iteration assigns placeholders.
type nodeCapacity struct {
	tracker *Tracker
	pods    []*v1.Pod
	// index is filled when a placeholder has anti-affinity.
	index podIndex
	// free has all nodes. others, the free amounts of all resources, is filled when a placeholder requests
	// more than CPU and memory.
	free   map[string]*freeCapacity
	others map[string]v1.ResourceList
}

func newNodeCapacity(tracker *Tracker, pods []*v1.Pod) *nodeCapacity {
	c := &nodeCapacity{tracker: tracker, pods: pods, free: make(map[string]*freeCapacity, len(tracker.nodes))}
	for _, free := range tracker.ledger.Capacities(true) {
		c.free[free.name] = &free
	}
	return c
}

// assigner returns a function that assigns one placeholder of a group to a node and reports whether
// the node permits and fits it.
func (c *nodeCapacity) assigner(group *Group) func(placeholder *v1.Pod, node string) bool {
	size := resources.CPUAndMemory(group.Requests)
	matches := func(node *v1.Node) bool { return c.free[node.Name].InPool }
	if group.Mirror != nil {
		matches = nodeMatches(group.template())
	}
	anti := newAntiAffinity(group)
	if len(anti) > 0 {
		if c.index == nil {
			c.index = indexPods(c.pods)
		}
		anti.addPods(c.index, c.tracker.nodes)
	}
	return func(placeholder *v1.Pod, name string) bool {
		node := c.tracker.nodes[name]
		if node == nil || !matches(node) || !anti.permits(node) || !c.hasOthers(name, group.Requests) || !c.free[name].Assign(size) {
			return false
		}
		anti.add(placeholder.Namespace, placeholder.Labels, node)
		c.assignOthers(name, group.Requests)
		return true
	}
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
		if free := c.others[observePod(pod, nil).Node]; free != nil {
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
