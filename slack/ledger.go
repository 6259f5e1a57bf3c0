package slack

import (
	"maps"
	"slices"

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

// account is a node with the sums over the pods on it.
type account struct {
	ledgerNode
	// daemons and others are the requests of the pods, pods is their number.
	daemons, others resources.Amounts
	pods            int64
}

// capacity returns the capacity that the pods of a node leave.
func (a *account) capacity(name string) freeCapacity {
	return freeCapacity{name, a.InPool, a.Usable, a.Allocatable.Subtract(a.daemons).Subtract(a.others), a.Slots - a.pods}
}

// poolLedger has the nodes of a cluster and the pods on them. It counts them when they are read after a
// change, in one pass. It is not safe for concurrent use.
type poolLedger struct {
	accounts map[string]*account
	pods     map[string]ledgerPod
	// totals are nil after a change.
	totals *poolTotals
}

// newPoolLedger returns an empty ledger.
func newPoolLedger() *poolLedger {
	return &poolLedger{accounts: map[string]*account{}, pods: map[string]ledgerPod{}}
}

// SetNode adds or updates a node. An unchanged node costs one comparison.
func (l *poolLedger) SetNode(name string, node ledgerNode) {
	if a := l.accounts[name]; a == nil || a.ledgerNode != node {
		l.accounts[name], l.totals = &account{ledgerNode: node}, nil
	}
}

// DeleteNode removes a node. The pods on it remain, and count again if the node is set again.
func (l *poolLedger) DeleteNode(name string) {
	delete(l.accounts, name)
	l.totals = nil
}

// SetPod adds or updates the pod with an ID. An unchanged pod costs one comparison.
func (l *poolLedger) SetPod(id string, pod ledgerPod) {
	switch {
	case pod.Node == "":
		l.DeletePod(id)
	case l.pods[id] != pod:
		l.pods[id], l.totals = pod, nil
	}
}

// DeletePod removes a pod.
func (l *poolLedger) DeletePod(id string) {
	if _, known := l.pods[id]; known {
		delete(l.pods, id)
		l.totals = nil
	}
}

// Capacities returns the capacity left on each node, by name. It does not change with the ledger.
func (l *poolLedger) Capacities() []freeCapacity {
	l.Pool()
	nodes := make([]freeCapacity, 0, len(l.accounts))
	for _, name := range slices.Sorted(maps.Keys(l.accounts)) {
		nodes = append(nodes, l.accounts[name].capacity(name))
	}
	return nodes
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

// Pool returns the totals of the current pool.
func (l *poolLedger) Pool() poolTotals {
	if l.totals != nil {
		return *l.totals
	}
	p := &poolTotals{}
	for _, a := range l.accounts {
		a.daemons, a.others, a.pods = resources.Amounts{}, resources.Amounts{}, 0
	}
	for _, pod := range l.pods {
		a := l.accounts[pod.Node]
		if a == nil {
			continue
		}
		a.pods++
		if pod.Daemon {
			a.daemons = a.daemons.Add(pod.Requests)
			continue
		}
		a.others = a.others.Add(pod.Requests)
		if a.InPool {
			p.addPod(pod)
		}
	}
	for _, a := range l.accounts {
		if a.InPool {
			p.addNode(a)
		}
	}
	p.Shapes = maximalShapes(p.Shapes)
	l.totals = p
	return *p
}

// addPod adds a pod of the pool that is not a daemon pod.
func (p *poolTotals) addPod(pod ledgerPod) {
	p.Requested = p.Requested.Add(pod.Requests)
	if pod.OptedOut {
		return
	}
	shape, largest := pod.Requests, p.LargestByMemory
	p.MaxPodRequests = p.MaxPodRequests.Max(shape)
	if p.LargestByCPU.Less(shape) {
		p.LargestByCPU = shape
	}
	if shape[resources.Memory] > largest[resources.Memory] ||
		shape[resources.Memory] == largest[resources.Memory] && shape[resources.CPU] > largest[resources.CPU] {
		p.LargestByMemory = shape
	}
}

// addNode adds a node of the pool, and its shape if it is usable.
func (p *poolTotals) addNode(a *account) {
	p.Matching++
	if !a.Usable {
		return
	}
	p.Nodes++
	p.Allocatable = p.Allocatable.Add(a.Allocatable)
	p.Free = p.Free.Add(a.capacity("").Free)
	p.Shapes = append(p.Shapes, a.Allocatable.Subtract(a.daemons))
}

// maximalShapes returns the shapes that no other shape exceeds in all resources, by descending CPU.
// Amounts that fit any shape fit one of these.
func maximalShapes(shapes []resources.Amounts) []resources.Amounts {
	slices.SortFunc(shapes, func(a, b resources.Amounts) int { return slices.Compare(b[:], a[:]) })
	// CPU does not increase from one shape to the next: a shape is maximal if it has more memory than
	// all shapes before it.
	maximal, memory := []resources.Amounts{}, int64(-1)
	for _, shape := range shapes {
		if shape[resources.Memory] > memory {
			maximal, memory = append(maximal, shape), shape[resources.Memory]
		}
	}
	return maximal
}

// fitsAny reports whether one of the shapes has enough of all resources.
func fitsAny(a resources.Amounts, shapes []resources.Amounts) bool {
	return slices.ContainsFunc(shapes, a.FitsIn)
}
