package slack

import (
	"cmp"
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
	// Device is the number of the device of the pool that the pod requests, from 1, and Amount the amount of the device. They
	// are 0 for other pods.
	Device uint8
	Amount int32
}

// ledgerNode is the part of a node that the ledger counts.
type ledgerNode struct {
	// InPool reports whether the node and its pods are in the pool.
	InPool bool
	// Usable reports whether placeholders can be put on the node. A node that is cordoned, not ready
	// or being deleted is not usable.
	Usable bool
	// Booting reports whether the node has never been ready. A usable node that boots counts in the size and
	// number of nodes, so that plans do not change when it is ready, and has no free capacity until then.
	Booting bool
	// Allocatable is the capacity for pods, Slots the maximum number of pods.
	Allocatable resources.Amounts
	Slots       int64
	// Devices are the amounts of the devices of the pool.
	Devices deviceAmounts
}

// maxAmount is the highest amount that one pod or node is counted with: 16 TiB of memory or 17
// billion cores. Sums over 500,000 of them do not overflow.
const maxAmount = 1 << 44

var maxAmounts = resources.Amounts{maxAmount, maxAmount}

// account is a node with the pods on it. The node is the zero value while it is not known: pods may be
// set before their node.
type account struct {
	ledgerNode
	known bool
	// daemons and others are the requests of the pods.
	daemons, others resources.Amounts
	// devices are the amounts of devices that the pods request.
	devices deviceAmounts
	// pods are the IDs of the pods. A slice is smaller than a map and, for about one hundred pods, as fast.
	pods []string
}

// free returns the amounts that the pods of a node leave.
func (a *account) free() resources.Amounts {
	return a.Allocatable.Subtract(a.daemons).Subtract(a.others)
}

// capacity returns the capacity that the pods of a node leave.
func (a *account) capacity(name string) freeCapacity {
	free := freeCapacity{name, a.InPool, a.Usable, a.Booting, a.free(), a.Slots - int64(len(a.pods)), a.Devices}
	for i, used := range a.devices {
		free.Devices[i] = max(0, free.Devices[i]-used)
	}
	return free
}

// poolLedger counts the nodes of a pool and the pods on them, one change at a time. The cost of a
// change does not depend on the size of the cluster. It is not safe for concurrent use.
type poolLedger struct {
	accounts map[string]*account
	pods     map[string]ledgerPod
	// names are the keys of accounts in order, nil if they must be sorted again.
	names []string

	// requested is the sum of the requests of pods of the pool, without daemon pods and pods with devices.
	requested resources.Amounts
	// allocatable and free are sums over the usable nodes of the pool, free without nodes that boot; usable is
	// the number of usable nodes.
	allocatable, free resources.Amounts
	usable            int
	// matching is the number of nodes in the pool, usable or not.
	matching int
	// podShapes counts the pods that may be the biggest by their requests, nodeShapes the usable
	// nodes by their capacity after daemon pods.
	podShapes, nodeShapes map[resources.Amounts]int
	// devicePods are the pods with devices, which are not part of requested and podShapes, by shape. deviceNodes counts the
	// usable nodes with devices.
	devicePods  map[deviceShape]devicePods
	deviceNodes map[deviceNode]int
}

// newPoolLedger returns an empty ledger.
func newPoolLedger() *poolLedger {
	return &poolLedger{
		accounts: map[string]*account{}, pods: map[string]ledgerPod{},
		podShapes: map[resources.Amounts]int{}, nodeShapes: map[resources.Amounts]int{},
		devicePods: map[deviceShape]devicePods{}, deviceNodes: map[deviceNode]int{},
	}
}

// SetNode adds or updates a node. An unchanged node costs one comparison.
func (l *poolLedger) SetNode(name string, node ledgerNode) {
	node.Allocatable = node.Allocatable.Min(maxAmounts)
	if a := l.account(name); !a.known || a.ledgerNode != node {
		l.replaceNode(a, node)
		a.known = true
	}
}

// DeleteNode removes a node. The pods on it remain, and count again if the node is set again.
func (l *poolLedger) DeleteNode(name string) {
	a := l.account(name)
	l.replaceNode(a, ledgerNode{})
	a.known = false
	l.release(name, a)
}

// SetPod adds or updates the pod with an ID. An unchanged pod costs one comparison.
func (l *poolLedger) SetPod(id string, pod ledgerPod) {
	pod.Requests = pod.Requests.Min(maxAmounts)
	if before, exists := l.pods[id]; exists {
		if before == pod {
			return
		}
		l.DeletePod(id)
	}
	if pod.Node == "" {
		return
	}
	a := l.account(pod.Node)
	l.pods[id], a.pods = pod, append(a.pods, id)
	l.addPod(a, pod, 1)
}

// DeletePod removes a pod.
func (l *poolLedger) DeletePod(id string) {
	pod, exists := l.pods[id]
	if !exists {
		return
	}
	a := l.accounts[pod.Node]
	i := slices.Index(a.pods, id)
	a.pods = slices.Delete(a.pods, i, i+1)
	delete(l.pods, id)
	l.addPod(a, pod, -1)
	l.release(pod.Node, a)
}

// account returns the account of a node and creates it if necessary.
func (l *poolLedger) account(name string) *account {
	a := l.accounts[name]
	if a == nil {
		a = &account{}
		l.accounts[name], l.names = a, nil
	}
	return a
}

// release deletes an account that has neither a node nor pods.
func (l *poolLedger) release(name string, a *account) {
	if !a.known && len(a.pods) == 0 {
		delete(l.accounts, name)
		l.names = nil
	}
}

// replaceNode replaces the node of an account.
func (l *poolLedger) replaceNode(a *account, node ledgerNode) {
	if a.InPool != node.InPool {
		sign := 1
		if a.InPool {
			sign = -1
		}
		l.matching += sign
		for _, id := range a.pods {
			l.countPod(l.pods[id], sign)
		}
	}
	l.countNode(a, -1)
	a.ledgerNode = node
	l.countNode(a, 1)
}

// addPod adds a pod to an account, or removes it if sign is -1.
func (l *poolLedger) addPod(a *account, pod ledgerPod, sign int) {
	if pod.Device > 0 {
		a.devices[pod.Device-1] += int64(sign) * int64(pod.Amount)
	}
	if pod.Daemon { // changes the shape of the node
		l.countNode(a, -1)
		a.daemons = add(a.daemons, pod.Requests, sign)
		l.countNode(a, 1)
		return
	}
	before := a.free()
	a.others = add(a.others, pod.Requests, sign)
	if a.InPool && a.Usable && !a.Booting {
		l.free = l.free.Minus(before).Add(a.free())
	}
	if a.InPool {
		l.countPod(pod, sign)
	}
}

// countPod adds a pod to the sums of the pool, or removes it if sign is -1.
func (l *poolLedger) countPod(pod ledgerPod, sign int) {
	if pod.Daemon {
		return
	}
	if pod.Device > 0 {
		l.countDevices(pod, int64(sign))
		return
	}
	l.requested = add(l.requested, pod.Requests, sign)
	if !pod.OptedOut {
		count(l.podShapes, pod.Requests, sign)
	}
}

// countNode adds a node to the sums over the usable nodes of the pool, or removes it if sign is -1.
func (l *poolLedger) countNode(a *account, sign int) {
	if !a.InPool || !a.Usable {
		return
	}
	l.usable += sign
	l.allocatable = add(l.allocatable, a.Allocatable, sign)
	if !a.Booting {
		l.free = add(l.free, a.free(), sign)
	}
	shape := a.Allocatable.Subtract(a.daemons)
	count(l.nodeShapes, shape, sign)
	if a.Devices != (deviceAmounts{}) {
		count(l.deviceNodes, deviceNode{shape, a.Devices}, sign)
	}
}

// add adds amounts to a sum, or subtracts them if sign is -1.
func add(sum, amounts resources.Amounts, sign int) resources.Amounts {
	if sign < 0 {
		return sum.Minus(amounts)
	}
	return sum.Add(amounts)
}

// count adds sign to the number of a shape.
func count[K comparable](shapes map[K]int, shape K, sign int) {
	if shapes[shape] += sign; shapes[shape] == 0 {
		delete(shapes, shape)
	}
}

// Capacities returns the capacity left on each node, by name. It does not change with the ledger.
func (l *poolLedger) Capacities() []freeCapacity {
	if l.names == nil {
		l.names = slices.Sorted(maps.Keys(l.accounts))
	}
	nodes := make([]freeCapacity, 0, len(l.names))
	for _, name := range l.names {
		if a := l.accounts[name]; a.known {
			nodes = append(nodes, a.capacity(name))
		}
	}
	return nodes
}

// poolTotals is the input of a plan.
type poolTotals struct {
	// Requested is the sum of the requests of all pods, without daemon pods and pods with devices.
	Requested resources.Amounts
	// Allocatable is the sum over the usable nodes, Free the part that their pods leave free on nodes that do
	// not boot, and Nodes the number of usable nodes. Matching is the number of all nodes of the pool.
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
		largest := p.LargestByMemory
		p.MaxPodRequests = p.MaxPodRequests.Max(shape)
		if p.LargestByCPU.Less(shape) {
			p.LargestByCPU = shape
		}
		if shape[resources.Memory] > largest[resources.Memory] ||
			shape[resources.Memory] == largest[resources.Memory] && shape[resources.CPU] > largest[resources.CPU] {
			p.LargestByMemory = shape
		}
	}
	p.Shapes = maximalShapes(slices.AppendSeq(make([]resources.Amounts, 0, len(l.nodeShapes)), maps.Keys(l.nodeShapes)))
	return p
}

// maximalShapes returns the shapes that no other shape exceeds in all resources, by descending CPU.
// Amounts that fit any shape fit one of these.
func maximalShapes(shapes []resources.Amounts) []resources.Amounts {
	slices.SortFunc(shapes, func(a, b resources.Amounts) int {
		return cmp.Or(cmp.Compare(b[resources.CPU], a[resources.CPU]), cmp.Compare(b[resources.Memory], a[resources.Memory]))
	})
	// CPU does not increase from one shape to the next: a shape is maximal if it has more memory than
	// all shapes before it.
	maximal, memory := shapes[:0], int64(-1)
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
