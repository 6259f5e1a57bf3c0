package slack

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// ledgerPod is the part of a pod that the ledger counts.
type ledgerPod struct {
	// Node is the name of the pod's node. A pod without a node is not counted.
	Node string
	// Requests are the CPU, memory and devices of the pool that the pod requests.
	Requests resources.Amounts
	// Daemon reports whether the pod runs on every node. Daemon pods reduce the capacity of their
	// node and are not part of the requests that slack is computed from.
	Daemon bool
	// Spare reports whether the pod only reserves capacity. It takes none, and is not part of the requests.
	Spare bool
	// OptedOut reports whether the pod is ignored when the biggest pod is determined.
	OptedOut bool
}

// ledgerNode is the part of a node that the ledger counts.
type ledgerNode struct {
	// Usable reports whether placeholders can be put on the node. A node that is cordoned, not ready
	// or being deleted is not usable.
	Usable bool
	// Booting reports whether the node has never been ready. A usable node that boots counts in the size and
	// number of nodes, so that plans do not change when it is ready, and has no free capacity until then.
	Booting bool
	// Allocatable is the CPU, memory and devices of the pool for pods, Slots the maximum number of pods.
	Allocatable resources.Amounts
	Slots       int64
}

// maxAmount is the highest amount that one pod or node is counted with: 16 TiB of memory or 17
// billion cores. Sums over 500,000 of them do not overflow.
const maxAmount = 1 << 44

// bounded returns amounts of at most maxAmount.
func bounded(a resources.Amounts) resources.Amounts {
	if !a.Extended.IsZero() {
		return a.Apply(func(amount int64) int64 { return min(amount, maxAmount) })
	}
	return a.Min(resources.Amounts{CPU: maxAmount, Memory: maxAmount})
}

// account is a node with the pods on it. The node is the zero value while it is not known: pods may be
// set before their node.
type account struct {
	ledgerNode
	// pools are the pools that the node is in.
	pools []*poolLedger
	// node is nil while it is not known.
	node *v1.Node
	// daemons and others are the requests of the pods.
	daemons, others resources.Amounts
	// pods are the IDs of the pods. A slice is smaller than a map and, for about one hundred pods, as fast.
	pods []string
}

// free returns the amounts that the pods of a node leave.
func (a *account) free() resources.Amounts {
	return a.Allocatable.Subtract(a.daemons).Subtract(a.others)
}

// Cluster has the nodes and pods of a cluster, which the trackers that its method NewTracker creates share. The cost of a change
// does not depend on the size of the cluster, and for a pod only on the number of pools that its node is in. It is not
// safe for concurrent use.
type Cluster struct {
	accounts map[string]*account
	pods     map[string]ledgerPod
	// devices are the extended resources that the ledger counts.
	devices []string
}

// NewCluster returns a cluster without nodes and pods, for policies whose pools have the same devices (spec.pool.devices).
func NewCluster(devices ...string) *Cluster {
	return &Cluster{accounts: map[string]*account{}, pods: map[string]ledgerPod{}, devices: devices}
}

// poolLedger has the sums over the nodes of a pool and the pods on them.
type poolLedger struct {
	*Cluster
	// members are the nodes of the pool.
	members map[string]*account
	// totals are the sums over the nodes of the pool and their pods, without the fields that Pool sets.
	totals poolTotals
	// podShapes counts the pods that may be the biggest by their requests, nodeShapes the usable
	// nodes by their capacity after daemon pods.
	podShapes, nodeShapes map[resources.Amounts]int
	// devicePods are the pods with devices, which are not part of the sum and podShapes, by their devices.
	devicePods map[resources.ExtendedAmounts]devicePods
	// isChanged reports whether a node or pod of the pool changed since it was last read.
	isChanged bool
}

// newPool returns the ledger of a pool without nodes.
func (c *Cluster) newPool() *poolLedger {
	return &poolLedger{
		Cluster: c, members: map[string]*account{}, podShapes: map[resources.Amounts]int{}, nodeShapes: map[resources.Amounts]int{},
		devicePods: map[resources.ExtendedAmounts]devicePods{},
	}
}

// SetNode adds or updates a node, also for the other pools of the cluster. An unchanged node costs two comparisons.
func (l *poolLedger) SetNode(node *v1.Node, inPool bool, observed ledgerNode) {
	a := l.account(node.Name)
	a.node = node
	if (l.members[node.Name] != nil) != inPool {
		l.setMember(node.Name, a, inPool)
	}
	observed.Allocatable = bounded(observed.Allocatable)
	if a.ledgerNode != observed {
		a.countNode(-1)
		a.ledgerNode = observed
		a.countNode(1)
	}
}

// DeleteNode removes a node. The pods on it remain, and count again if the node is set again.
func (c *Cluster) DeleteNode(name string) {
	if a := c.accounts[name]; a != nil {
		for len(a.pools) > 0 {
			a.pools[0].setMember(name, a, false)
		}
		a.ledgerNode, a.node = ledgerNode{}, nil
		c.release(name, a)
	}
}

// setPod adds or updates the pod with an ID. An unchanged pod costs one comparison.
func (c *Cluster) setPod(id string, pod ledgerPod) {
	pod.Requests = bounded(pod.Requests)
	if before, exists := c.pods[id]; exists {
		if before == pod {
			return
		}
		c.deletePod(id)
	}
	if pod.Node == "" {
		return
	}
	a := c.account(pod.Node)
	c.pods[id], a.pods = pod, append(a.pods, id)
	a.addPod(pod, 1)
}

// deletePod removes a pod.
func (c *Cluster) deletePod(id string) {
	pod, exists := c.pods[id]
	if !exists {
		return
	}
	a := c.accounts[pod.Node]
	i := slices.Index(a.pods, id)
	a.pods = slices.Delete(a.pods, i, i+1)
	delete(c.pods, id)
	a.addPod(pod, -1)
	c.release(pod.Node, a)
}

// account returns the account of a node and creates it if necessary.
func (c *Cluster) account(name string) *account {
	a := c.accounts[name]
	if a == nil {
		a = &account{}
		c.accounts[name] = a
	}
	return a
}

// release deletes an account that has neither a node nor pods.
func (c *Cluster) release(name string, a *account) {
	if a.node == nil && len(a.pods) == 0 {
		delete(c.accounts, name)
	}
}

// setMember adds a node to the pool, or removes it.
func (l *poolLedger) setMember(name string, a *account, member bool) {
	sign := 1
	if member {
		a.pools, l.members[name] = append(a.pools, l), a
	} else {
		sign = -1
		delete(l.members, name)
		a.pools = slices.DeleteFunc(a.pools, func(pool *poolLedger) bool { return pool == l })
	}
	for _, id := range a.pods {
		l.countPod(l.pods[id], sign)
	}
	l.countNode(a, sign)
}

// countNode adds the node to the sums of its pools, or removes it if sign is -1.
func (a *account) countNode(sign int) {
	for _, pool := range a.pools {
		pool.countNode(a, sign)
	}
}

// addPod adds a pod to an account and the sums of its pools, or removes it if sign is -1.
func (a *account) addPod(pod ledgerPod, sign int) {
	if pod.Daemon { // changes the shape of the node
		a.countNode(-1)
		a.daemons = add(a.daemons, pod.Requests, sign)
		a.countNode(1)
		return
	}
	before := a.free()
	if !pod.Spare {
		a.others = add(a.others, pod.Requests, sign)
	}
	for _, pool := range a.pools {
		if a.Usable && !a.Booting {
			pool.totals.Free = pool.totals.Free.Minus(before).Add(a.free())
		}
		pool.countPod(pod, sign)
	}
}

// countPod adds a pod to the sums of the pool, or removes it if sign is -1.
func (l *poolLedger) countPod(pod ledgerPod, sign int) {
	l.isChanged = true
	if pod.Spare {
		l.totals.Spare, l.totals.SparePods = add(l.totals.Spare, pod.Requests, sign), l.totals.SparePods+sign
	}
	if pod.Daemon || pod.Spare {
		return
	}
	if !pod.Requests.Extended.IsZero() {
		l.countDevices(pod.Requests, sign)
		return
	}
	l.totals.Requested = add(l.totals.Requested, pod.Requests, sign)
	if !pod.OptedOut {
		count(l.podShapes, pod.Requests, sign)
	}
}

// countNode adds a node to the sums over the usable nodes of the pool, or removes it if sign is -1.
func (l *poolLedger) countNode(a *account, sign int) {
	l.isChanged = true
	if !a.Usable {
		return
	}
	l.totals.Nodes += sign
	l.totals.Allocatable = add(l.totals.Allocatable, a.Allocatable, sign)
	if !a.Booting {
		l.totals.Free = add(l.totals.Free, a.free(), sign)
	}
	count(l.nodeShapes, a.Allocatable.Subtract(a.daemons), sign)
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

// Pool returns the totals of the current pool, in one pass over the shapes of pods and nodes.
func (l *poolLedger) Pool() poolTotals {
	p := l.totals
	p.Matching = len(l.members)
	for shape := range l.podShapes {
		largest := p.LargestByMemory
		p.MaxPodRequests = p.MaxPodRequests.Max(shape)
		if p.LargestByCPU.Compare(shape) < 0 {
			p.LargestByCPU = shape
		}
		if shape.Memory > largest.Memory ||
			shape.Memory == largest.Memory && shape.CPU > largest.CPU {
			p.LargestByMemory = shape
		}
	}
	p.Allocatable.Extended, p.Free.Extended = resources.ExtendedAmounts{}, resources.ExtendedAmounts{}
	p.Shapes = make([]resources.Amounts, 0, len(l.nodeShapes))
	for shape := range l.nodeShapes {
		p.Shapes = append(p.Shapes, resources.Amounts{CPU: shape.CPU, Memory: shape.Memory})
	}
	p.Shapes = maximalShapes(p.Shapes)
	return p
}

// devicePods are pods that request devices: their number, and the sum of their requests.
type devicePods struct {
	pods     int64
	requests resources.Amounts
}

// countDevices adds a pod with devices to the pods with equal devices, or removes it if sign is -1.
func (l *poolLedger) countDevices(requests resources.Amounts, sign int) {
	sum := l.devicePods[requests.Extended]
	sum = devicePods{sum.pods + int64(sign), add(sum.requests, requests, sign)}
	if l.devicePods[requests.Extended] = sum; sum.pods == 0 {
		delete(l.devicePods, requests.Extended)
	}
}
