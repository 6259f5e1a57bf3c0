package slack

import "github.com/plimsoll-k8s/plimsoll/internal/algo/ledger"

// Pod is the part of a pod that the ledger counts.
type Pod struct {
	// Node is the name of the pod's node. A pod without a node is not counted.
	Node string
	// Requests are the resource requests of the pod.
	Requests Amounts
	// Daemon reports whether the pod runs on every node. Daemon pods reduce the capacity of their
	// node and are not part of the requests that slack is computed from.
	Daemon bool
	// OptedOut reports whether the pod is ignored when the biggest pod is determined.
	OptedOut bool
}

// NodeName implements ledger.Pod.
func (p Pod) NodeName() string { return p.Node }

// Node is the part of a node that the ledger counts.
type Node struct {
	// InPool reports whether the node and its pods are in the pool.
	InPool bool
	// Usable reports whether placeholders can be put on the node. A node that is cordoned, not ready
	// or being deleted is not usable.
	Usable bool
	// Allocatable is the capacity for pods, Slots the maximum number of pods.
	Allocatable Amounts
	Slots       int64
}

// MaxAmount is the highest amount that one pod or node is counted with: 16 TiB of memory or 17
// billion cores. Sums over 500,000 of them do not overflow.
const MaxAmount = 1 << 44

var maxAmounts = Amounts{MaxAmount, MaxAmount}

// account is a node and the pods on it.
type account = ledger.Account[Node, Pod, podSums]

// podSums are the requests of the pods on one node.
type podSums struct{ daemons, others Amounts }

// sumFor returns the sum that a pod is counted in.
func (s *podSums) sumFor(pod Pod) *Amounts {
	if pod.Daemon {
		return &s.daemons
	}
	return &s.others
}

// Ledger counts the nodes of a pool and the pods on them, one change at a time. The cost of a
// change does not depend on the size of the cluster. It is not safe for concurrent use.
type Ledger struct {
	ledger *ledger.Ledger[Node, Pod, podSums]

	// requested is the sum of the requests of pods of the pool, without daemon pods.
	requested Amounts
	// allocatable and free are sums over the usable nodes of the pool; usable is their number.
	allocatable, free Amounts
	usable            int
	// matching is the number of nodes in the pool, usable or not.
	matching int
	// podShapes counts the pods that may be the biggest by their requests, nodeShapes the usable
	// nodes by their capacity after daemon pods.
	podShapes, nodeShapes map[Amounts]int
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	l := &Ledger{podShapes: map[Amounts]int{}, nodeShapes: map[Amounts]int{}}
	l.ledger = ledger.New(ledger.Hooks[Node, Pod, podSums]{NodeChanged: l.nodeChanged, PodAdded: l.podAdded, PodRemoved: l.podRemoved})
	return l
}

// SetNode adds or updates a node.
func (l *Ledger) SetNode(name string, node Node) {
	node.Allocatable = node.Allocatable.Min(maxAmounts)
	l.ledger.SetNode(name, node)
}

// DeleteNode removes a node. The pods on it remain, and count again if the node is set again.
func (l *Ledger) DeleteNode(name string) { l.ledger.DeleteNode(name) }

// SetPod adds or updates the pod with an ID.
func (l *Ledger) SetPod(id string, pod Pod) {
	pod.Requests = pod.Requests.Min(maxAmounts)
	l.ledger.SetPod(id, pod)
}

// DeletePod removes a pod.
func (l *Ledger) DeletePod(id string) { l.ledger.DeletePod(id) }

func (l *Ledger) nodeChanged(a *account, before Node) {
	if before.InPool != a.Node.InPool {
		count, change := l.uncountPod, -1
		if a.Node.InPool {
			count, change = l.countPod, 1
		}
		l.ledger.PodsOf(a, count)
		l.matching += change
	}
	l.removeCapacity(before, a.Sums)
	l.addCapacity(a.Node, a.Sums)
}

func (l *Ledger) podAdded(a *account, pod Pod) {
	if a.Node.InPool {
		l.countPod(pod)
	}
	l.removeCapacity(a.Node, a.Sums)
	sum := a.Sums.sumFor(pod)
	*sum = sum.Add(pod.Requests)
	l.addCapacity(a.Node, a.Sums)
}

func (l *Ledger) podRemoved(a *account, pod Pod) {
	if a.Node.InPool {
		l.uncountPod(pod)
	}
	l.removeCapacity(a.Node, a.Sums)
	sum := a.Sums.sumFor(pod)
	*sum = sum.Subtract(pod.Requests)
	l.addCapacity(a.Node, a.Sums)
}

// countPod adds a pod of the pool to the sums of the pool.
func (l *Ledger) countPod(pod Pod) {
	if pod.Daemon {
		return
	}
	l.requested = l.requested.Add(pod.Requests)
	if !pod.OptedOut {
		l.podShapes[pod.Requests]++
	}
}

// uncountPod reverses countPod.
func (l *Ledger) uncountPod(pod Pod) {
	if pod.Daemon {
		return
	}
	l.requested = l.requested.Subtract(pod.Requests)
	if !pod.OptedOut {
		decrement(l.podShapes, pod.Requests)
	}
}

// freeOf returns the capacity of a node that its pods leave free.
func freeOf(node Node, pods podSums) Amounts {
	return node.Allocatable.Subtract(pods.daemons).Subtract(pods.others)
}

// addCapacity adds a node to the sums over the usable nodes of the pool.
func (l *Ledger) addCapacity(node Node, pods podSums) {
	if !node.InPool || !node.Usable {
		return
	}
	l.usable++
	l.allocatable = l.allocatable.Add(node.Allocatable)
	l.free = l.free.Add(freeOf(node, pods))
	l.nodeShapes[node.Allocatable.Subtract(pods.daemons)]++
}

// removeCapacity reverses addCapacity.
func (l *Ledger) removeCapacity(node Node, pods podSums) {
	if !node.InPool || !node.Usable {
		return
	}
	l.usable--
	l.allocatable = l.allocatable.Subtract(node.Allocatable)
	l.free = l.free.Subtract(freeOf(node, pods))
	decrement(l.nodeShapes, node.Allocatable.Subtract(pods.daemons))
}

func decrement(shapes map[Amounts]int, shape Amounts) {
	if shapes[shape]--; shapes[shape] <= 0 {
		delete(shapes, shape)
	}
}

// Pool is the input of a plan.
type Pool struct {
	// Requested is the sum of the requests of all pods, without daemon pods.
	Requested Amounts
	// Allocatable is the sum over the usable nodes, Free the part that their pods leave free, and
	// Nodes the number of usable nodes. Matching is the number of all nodes of the pool.
	Allocatable, Free Amounts
	Nodes, Matching   int
	// MaxPodRequests is the highest request of any pod for each resource. LargestByCPU and
	// LargestByMemory are the requests of the pods that request the most of one resource, and among
	// those the most of the other. All are zero if there are no pods.
	MaxPodRequests, LargestByCPU, LargestByMemory Amounts
	// Shapes are the capacities of usable nodes after daemon pods, without those that another shape
	// exceeds in all resources, in a fixed order.
	Shapes []Amounts
}

// Pool returns the current pool, in one pass over the shapes of pods and nodes.
func (l *Ledger) Pool() Pool {
	p := Pool{Requested: l.requested, Allocatable: l.allocatable, Free: l.free, Nodes: l.usable, Matching: l.matching}
	for shape := range l.podShapes {
		p.MaxPodRequests = p.MaxPodRequests.Max(shape)
		if p.LargestByCPU.less(shape) {
			p.LargestByCPU = shape
		}
		if shape[Memory] > p.LargestByMemory[Memory] || shape[Memory] == p.LargestByMemory[Memory] && shape[CPU] > p.LargestByMemory[CPU] {
			p.LargestByMemory = shape
		}
	}
	p.Shapes = maximalShapes(l.nodeShapes)
	return p
}
