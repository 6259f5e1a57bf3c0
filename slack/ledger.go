package slack

import (
	"github.com/plimsoll-k8s/plimsoll/internal/ledger"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// ledgerPod is the part of a pod that the ledger counts.
type ledgerPod struct {
	// Node is the name of the pod's node. A pod without a node is not counted.
	Node string
	// Requests are the resource requests of the pod.
	Requests resources.Amounts
	// Daemon reports whether the pod runs on every node. Daemon pods reduce the capacity of their
	// node and are not part of the requests that slack is computed from.
	Daemon bool
	// OptedOut reports whether the pod is ignored when the biggest pod is determined.
	OptedOut bool
}

// NodeName implements ledger.OnNode.
func (p ledgerPod) NodeName() string { return p.Node }

// ledgerNode is the part of a node that the ledger counts.
type ledgerNode struct {
	// InPool reports whether the node and its pods are in the pool.
	InPool bool
	// Usable reports whether placeholders can be put on the node. A node that is cordoned, not ready
	// or being deleted is not usable.
	Usable bool
	// Allocatable is the capacity for pods, Slots the maximum number of pods.
	Allocatable resources.Amounts
	Slots       int64
}

// maxAmount is the highest amount that one pod or node is counted with: 16 TiB of memory or 17
// billion cores. Sums over 500,000 of them do not overflow.
const maxAmount = 1 << 44

var maxAmounts = resources.Amounts{maxAmount, maxAmount}

// account is a node and the pods on it.
type account = ledger.Account[ledgerNode, ledgerPod, podSums]

// podSums are the requests of the pods on one node.
type podSums struct{ daemons, others resources.Amounts }

// sumFor returns the sum that a pod is counted in.
func (s *podSums) sumFor(pod ledgerPod) *resources.Amounts {
	if pod.Daemon {
		return &s.daemons
	}
	return &s.others
}

// poolLedger counts the nodes of a pool and the pods on them, one change at a time. The cost of a
// change does not depend on the size of the cluster. It is not safe for concurrent use.
type poolLedger struct {
	ledger *ledger.Ledger[ledgerNode, ledgerPod, podSums]

	// requested is the sum of the requests of pods of the pool, without daemon pods.
	requested resources.Amounts
	// allocatable and free are sums over the usable nodes of the pool; usable is their number.
	allocatable, free resources.Amounts
	usable            int
	// matching is the number of nodes in the pool, usable or not.
	matching int
	// podShapes counts the pods that may be the biggest by their requests, nodeShapes the usable
	// nodes by their capacity after daemon pods.
	podShapes, nodeShapes map[resources.Amounts]int
}

// newPoolLedger returns an empty ledger.
func newPoolLedger() *poolLedger {
	l := &poolLedger{podShapes: map[resources.Amounts]int{}, nodeShapes: map[resources.Amounts]int{}}
	l.ledger = ledger.New(
		ledger.Hooks[ledgerNode, ledgerPod, podSums]{NodeChanged: l.nodeChanged, PodAdded: l.podAdded, PodRemoved: l.podRemoved},
	)
	return l
}

// SetNode adds or updates a node.
func (l *poolLedger) SetNode(name string, node ledgerNode) {
	node.Allocatable = node.Allocatable.Min(maxAmounts)
	l.ledger.SetNode(name, node)
}

// DeleteNode removes a node. The pods on it remain, and count again if the node is set again.
func (l *poolLedger) DeleteNode(name string) { l.ledger.DeleteNode(name) }

// SetPod adds or updates the pod with an ID.
func (l *poolLedger) SetPod(id string, pod ledgerPod) {
	pod.Requests = pod.Requests.Min(maxAmounts)
	l.ledger.SetPod(id, pod)
}

// DeletePod removes a pod.
func (l *poolLedger) DeletePod(id string) { l.ledger.DeletePod(id) }

func (l *poolLedger) nodeChanged(a *account, before ledgerNode) {
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

func (l *poolLedger) podAdded(a *account, pod ledgerPod) {
	if a.Node.InPool {
		l.countPod(pod)
	}
	l.removeCapacity(a.Node, a.Sums)
	sum := a.Sums.sumFor(pod)
	*sum = sum.Add(pod.Requests)
	l.addCapacity(a.Node, a.Sums)
}

func (l *poolLedger) podRemoved(a *account, pod ledgerPod) {
	if a.Node.InPool {
		l.uncountPod(pod)
	}
	l.removeCapacity(a.Node, a.Sums)
	sum := a.Sums.sumFor(pod)
	*sum = sum.Subtract(pod.Requests)
	l.addCapacity(a.Node, a.Sums)
}

// countPod adds a pod of the pool to the sums of the pool.
func (l *poolLedger) countPod(pod ledgerPod) {
	if pod.Daemon {
		return
	}
	l.requested = l.requested.Add(pod.Requests)
	if !pod.OptedOut {
		l.podShapes[pod.Requests]++
	}
}

// uncountPod reverses countPod.
func (l *poolLedger) uncountPod(pod ledgerPod) {
	if pod.Daemon {
		return
	}
	l.requested = l.requested.Subtract(pod.Requests)
	if !pod.OptedOut {
		decrement(l.podShapes, pod.Requests)
	}
}

// freeOf returns the capacity of a node that its pods leave free.
func freeOf(node ledgerNode, pods podSums) resources.Amounts {
	return node.Allocatable.Subtract(pods.daemons).Subtract(pods.others)
}

// addCapacity adds a node to the sums over the usable nodes of the pool.
func (l *poolLedger) addCapacity(node ledgerNode, pods podSums) {
	if !node.InPool || !node.Usable {
		return
	}
	l.usable++
	l.allocatable = l.allocatable.Add(node.Allocatable)
	l.free = l.free.Add(freeOf(node, pods))
	l.nodeShapes[node.Allocatable.Subtract(pods.daemons)]++
}

// removeCapacity reverses addCapacity.
func (l *poolLedger) removeCapacity(node ledgerNode, pods podSums) {
	if !node.InPool || !node.Usable {
		return
	}
	l.usable--
	l.allocatable = l.allocatable.Subtract(node.Allocatable)
	l.free = l.free.Subtract(freeOf(node, pods))
	decrement(l.nodeShapes, node.Allocatable.Subtract(pods.daemons))
}

func decrement(shapes map[resources.Amounts]int, shape resources.Amounts) {
	if shapes[shape]--; shapes[shape] <= 0 {
		delete(shapes, shape)
	}
}

// poolTotals is the input of a plan.
type poolTotals struct {
	// Requested is the sum of the requests of all pods, without daemon pods.
	Requested resources.Amounts
	// Allocatable is the sum over the usable nodes, Free the part that their pods leave free, and
	// Nodes the number of usable nodes. Matching is the number of all nodes of the pool.
	Allocatable, Free resources.Amounts
	Nodes, Matching   int
	// MaxPodRequests is the highest request of any pod for each resource. LargestByCPU and
	// LargestByMemory are the requests of the pod with the highest request of that resource; the
	// other resource breaks ties. All are zero if there are no pods.
	MaxPodRequests, LargestByCPU, LargestByMemory resources.Amounts
	// Shapes are the capacities of usable nodes after daemon pods, without shapes that another shape
	// exceeds in all resources, in a fixed order.
	Shapes []resources.Amounts
}

// Pool returns the totals of the current pool, in one pass over the shapes of pods and nodes.
func (l *poolLedger) Pool() poolTotals {
	p := poolTotals{Requested: l.requested, Allocatable: l.allocatable, Free: l.free, Nodes: l.usable, Matching: l.matching}
	for shape := range l.podShapes {
		p.MaxPodRequests = p.MaxPodRequests.Max(shape)
		if p.LargestByCPU.Less(shape) {
			p.LargestByCPU = shape
		}
		if shape[resources.Memory] > p.LargestByMemory[resources.Memory] ||
			shape[resources.Memory] == p.LargestByMemory[resources.Memory] && shape[resources.CPU] > p.LargestByMemory[resources.CPU] {
			p.LargestByMemory = shape
		}
	}
	p.Shapes = maximalShapes(l.nodeShapes)
	return p
}
