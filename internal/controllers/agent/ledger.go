package agent

import (
	"github.com/plimsoll-k8s/plimsoll/internal/ledger"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
)

// nodeAmounts is the part of a node that the ledger counts.
type nodeAmounts struct {
	// Schedulable reports whether the node accepts a pod without tolerations. Other nodes do not count.
	Schedulable bool
	// Allocatable is the capacity for pods. Machine is the capacity of the machine, which load is
	// measured against.
	Allocatable, Machine resources.Amounts
}

// podAmounts is the part of a pod that the ledger counts.
type podAmounts struct {
	// Node is the name of the pod's node. A pod without a node is not counted.
	Node string
	// Requests and Limits belong to the whole pod. Limits below Requests count as Requests.
	Requests, Limits resources.Amounts
	// Unbounded reports whether a container of the pod has no limit of the resource.
	Unbounded [scored]bool
}

// NodeName implements ledger.OnNode.
func (p podAmounts) NodeName() string { return p.Node }

// account is a node and the pods on it.
type account = ledger.Account[nodeAmounts, podAmounts, nodeSums]

// nodeSums are the sums over the pods on one node.
type nodeSums [scored]struct {
	requests, limits total
	unbounded        int
	// counted is the contribution of the node to the sums of the cluster.
	counted contribution
}

// contribution is the contribution of one node to the sums of its cluster.
type contribution struct{ allocatable, free, limits int64 }

// Ledger counts the nodes of a cluster and the pods on them, one change at a time. The cost of a
// change does not depend on the size of the cluster. It is not safe for concurrent use.
type Ledger struct {
	ledger *ledger.Ledger[nodeAmounts, podAmounts, nodeSums]
	sums   [scored]struct{ allocatable, free, limits total }
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	l := &Ledger{}
	l.ledger = ledger.New(ledger.Hooks[nodeAmounts, podAmounts, nodeSums]{
		NodeChanged: func(a *account, _ nodeAmounts) { l.update(a) },
		PodAdded:    l.podAdded,
		PodRemoved:  l.podRemoved,
	})
	return l
}

// SetNode adds or updates a node.
func (l *Ledger) SetNode(name string, node nodeAmounts) { l.ledger.SetNode(name, node) }

// DeleteNode removes a node. The pods on it remain, and count again if the node is set again.
func (l *Ledger) DeleteNode(name string) { l.ledger.DeleteNode(name) }

// SetPod adds or updates the pod with an ID.
func (l *Ledger) SetPod(id string, pod podAmounts) { l.ledger.SetPod(id, pod) }

// DeletePod removes a pod.
func (l *Ledger) DeletePod(id string) { l.ledger.DeletePod(id) }

func (l *Ledger) podAdded(a *account, pod podAmounts) {
	for r := range a.Sums {
		sums := &a.Sums[r]
		sums.requests.add(pod.Requests[r])
		sums.limits.add(max(pod.Limits[r], pod.Requests[r]))
		if pod.Unbounded[r] {
			sums.unbounded++
		}
	}
	l.update(a)
}

func (l *Ledger) podRemoved(a *account, pod podAmounts) {
	for r := range a.Sums {
		sums := &a.Sums[r]
		sums.requests.subtract(pod.Requests[r])
		sums.limits.subtract(max(pod.Limits[r], pod.Requests[r]))
		if pod.Unbounded[r] {
			sums.unbounded--
		}
	}
	l.update(a)
}

// update replaces the contribution of an account to the sums of the cluster.
func (l *Ledger) update(a *account) {
	for r := range l.sums {
		sums, before, after := &l.sums[r], a.Sums[r].counted, contributionOf(a, resources.Index(r))
		sums.allocatable.subtract(before.allocatable)
		sums.allocatable.add(after.allocatable)
		sums.free.subtract(before.free)
		sums.free.add(after.free)
		sums.limits.subtract(before.limits)
		sums.limits.add(after.limits)
		a.Sums[r].counted = after
	}
}

// contributionOf returns the contribution of an account to the sums of the cluster.
func contributionOf(a *account, r resources.Index) contribution {
	if !a.Node.Schedulable {
		return contribution{}
	}
	c := contribution{
		allocatable: a.Node.Allocatable[r],
		free:        max(0, a.Node.Allocatable[r]-a.Sums[r].requests.amount()),
		limits:      a.Sums[r].limits.amount(),
	}
	if a.Sums[r].unbounded > 0 {
		c.limits = max(c.limits, c.allocatable)
	}
	return c
}

// Sums are sums over the schedulable nodes of a cluster, in the unit of the resource.
type Sums struct {
	// Allocatable is the capacity for pods.
	Allocatable float64
	// Free is the capacity that requests leave free. It is at least 0 for each node: an overcommitted
	// node does not reduce the free capacity of other nodes.
	Free float64
	// Limits are the limits of the pods; for a node with an unbounded pod at least its allocatable
	// amount.
	Limits float64
}

// Sums returns the current sums.
func (l *Ledger) Sums() (out [scored]Sums) {
	for r := range l.sums {
		out[r] = Sums{l.sums[r].allocatable.float(), l.sums[r].free.float(), l.sums[r].limits.float()}
	}
	return out
}

// Load is the measured load of a node.
type Load struct {
	// Load is the load of each resource as a fraction of the machine.
	Load [scored]risk.Load
	// Known reports for each resource whether its load was measured.
	Known [scored]bool
}

// LoadRisk returns the probability in [0, 1] that the pods of the cluster use more than they
// request. The risk of a resource is the mean of the load risks of the nodes with known load (see
// risk.Resource.LoadRisk), weighted by allocatable amount; LoadRisk returns the highest. A resource
// is skipped if the load of less than half of its allocatable amount is known. Known is false if all
// resources are skipped.
func (l *Ledger) LoadRisk(load func(node string) Load) (highest float64, known bool) {
	var measured, weighted [scored]float64
	// The order of the nodes matters: sums of floats depend on it.
	for _, name := range l.ledger.Names() {
		a := l.ledger.Account(name)
		if !a.Node.Schedulable {
			continue
		}
		loads := load(name)
		for r := range measured {
			if !loads.Known[r] || !loads.Load[r].Valid() || a.Node.Allocatable[r] == 0 {
				continue
			}
			allocatable := float64(a.Node.Allocatable[r])
			measured[r] += allocatable
			weighted[r] += allocatable * riskOf(a, resources.Index(r)).LoadRisk(loads.Load[r], risk.DefaultWindow)
		}
	}
	for r, sums := range l.Sums() {
		if measured[r] > 0 && measured[r] >= sums.Allocatable/2 {
			highest, known = max(highest, min(weighted[r]/measured[r], 1)), true
		}
	}
	return highest, known
}

// riskOf returns the risk model of one resource of a node.
func riskOf(a *account, r resources.Index) risk.Resource {
	newResource := risk.NewCPU
	if r == resources.Memory {
		newResource = risk.NewMemory
	}
	out := newResource(float64(a.Node.Allocatable[r]), float64(a.Node.Machine[r]))
	out.Requests, out.Limits = a.Sums[r].requests.float(), a.Sums[r].limits.float()
	out.Unbounded = a.Sums[r].unbounded > 0
	return out
}
