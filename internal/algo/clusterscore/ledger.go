package clusterscore

import (
	"maps"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
)

// Node is what the ledger keeps of a node.
type Node struct {
	// Counted: a pod without tolerations may be put on the node.
	Counted bool
	// Allocatable is what pods may have on the node, Machine what the machine has;
	// load is measured against it.
	Allocatable, Machine Amounts
}

// Pod is what the ledger keeps of a pod.
type Pod struct {
	// Node that the pod is on. A pod without one does not count.
	Node string
	// Requests of the pod, and its Limits, which are at least these.
	Requests, Limits Amounts
	// Unbounded: a container of the pod has no limit of the resource, so that the
	// pod may use all that the node has.
	Unbounded [resources]bool
}

// Ledger keeps count of a cluster, told one change at a time. A change takes a
// few map entries, whatever else there is. It is not safe for concurrent use.
type Ledger struct {
	nodes map[string]*account
	pods  map[string]Pod
	sums  [resources]struct{ allocatable, free, limits total }
}

// account is what is known of one node.
type account struct {
	Node
	// known: the node itself is, and not only pods that are on it.
	known bool
	pods  int
	asked [resources]struct {
		requests, limits total
		unbounded        int
	}
	// share is what the node has in the sums.
	share [resources]share
}

// share is what a node adds to the sums of its cluster.
type share struct{ allocatable, free, limits int64 }

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{nodes: map[string]*account{}, pods: map[string]Pod{}}
}

// SetNode takes a node in, or what has become of it. A node that is the same as
// before costs a comparison.
func (l *Ledger) SetNode(name string, node Node) {
	if a := l.nodes[name]; a != nil && a.known && a.Node == node {
		return
	}
	l.change(name, func(a *account) { a.Node, a.known = node, true })
}

// DeleteNode forgets a node. Pods on it are remembered until they are deleted.
func (l *Ledger) DeleteNode(name string) {
	if a := l.nodes[name]; a == nil || !a.known {
		return
	}
	l.change(name, func(a *account) { a.Node, a.known = Node{}, false })
}

// SetPod takes a pod in, or what has become of it.
func (l *Ledger) SetPod(id string, pod Pod) {
	before, there := l.pods[id]
	switch {
	case there && before == pod:
		return
	case there:
		l.DeletePod(id)
	}
	if pod.Node == "" {
		return
	}
	l.pods[id] = pod
	l.change(pod.Node, func(a *account) {
		a.pods++
		for r := range a.asked {
			a.asked[r].requests.add(pod.Requests[r])
			a.asked[r].limits.add(max(pod.Limits[r], pod.Requests[r]))
			if pod.Unbounded[r] {
				a.asked[r].unbounded++
			}
		}
	})
}

// DeletePod forgets a pod.
func (l *Ledger) DeletePod(id string) {
	pod, there := l.pods[id]
	if !there {
		return
	}
	delete(l.pods, id)
	l.change(pod.Node, func(a *account) {
		a.pods--
		for r := range a.asked {
			a.asked[r].requests.sub(pod.Requests[r])
			a.asked[r].limits.sub(max(pod.Limits[r], pod.Requests[r]))
			if pod.Unbounded[r] {
				a.asked[r].unbounded--
			}
		}
	})
}

// change changes an account, and the sums with it.
func (l *Ledger) change(name string, f func(*account)) {
	a := l.nodes[name]
	if a == nil {
		a = &account{}
		l.nodes[name] = a
	}
	f(a)
	for r := range l.sums {
		sums, before, after := &l.sums[r], a.share[r], a.shareOf(Resource(r))
		sums.allocatable.sub(before.allocatable)
		sums.allocatable.add(after.allocatable)
		sums.free.sub(before.free)
		sums.free.add(after.free)
		sums.limits.sub(before.limits)
		sums.limits.add(after.limits)
		a.share[r] = after
	}
	if !a.known && a.pods == 0 {
		delete(l.nodes, name)
	}
}

// shareOf returns what the account adds to the sums.
func (a *account) shareOf(r Resource) share {
	if !a.Counted {
		return share{}
	}
	s := share{
		allocatable: a.Allocatable[r],
		free:        max(0, a.Allocatable[r]-a.asked[r].requests.amount()),
		limits:      a.asked[r].limits.amount(),
	}
	if a.asked[r].unbounded > 0 {
		s.limits = max(s.limits, s.allocatable)
	}
	return s
}

// Sums are those over the nodes of a cluster that count, in the unit of the
// resource.
type Sums struct {
	// Allocatable is what pods may have.
	Allocatable float64
	// Free is what the requests of the pods leave of it, node by node: a node that
	// is overfull takes nothing from the others.
	Free float64
	// Limits is what the pods may use; on a node with an unbounded pod, at least
	// all that is allocatable.
	Limits float64
}

// Sums returns the sums as they are now.
func (l *Ledger) Sums() (out [resources]Sums) {
	for r := range l.sums {
		out[r] = Sums{l.sums[r].allocatable.float(), l.sums[r].free.float(), l.sums[r].limits.float()}
	}
	return out
}

// Load is what is measured on a node.
type Load struct {
	// Of each resource, as fractions of the machine.
	Of [resources]risk.Load
	// Known says of which.
	Known [resources]bool
}

// LoadRisk returns how likely the pods of the cluster are to use more than they
// request, in [0, 1]: of each resource the mean of the nodes' load risks (see
// risk.Resource.LoadRisk) by allocatable amount, over the nodes whose load is
// known, and of the resources the riskier one. A resource of which the load of
// less than half of the allocatable amount is known does not count; where none
// does, known is false.
func (l *Ledger) LoadRisk(load func(node string) Load) (highest float64, known bool) {
	var measured, weighted [resources]float64
	// In order, since the sums of floats depend on it.
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		a := l.nodes[name]
		if !a.Counted {
			continue
		}
		is := load(name)
		for r := range measured {
			if !is.Known[r] || !is.Of[r].Valid() || a.Allocatable[r] == 0 {
				continue
			}
			allocatable := float64(a.Allocatable[r])
			measured[r] += allocatable
			weighted[r] += allocatable * a.claims(Resource(r)).LoadRisk(is.Of[r], risk.DefaultWindow)
		}
	}
	for r, sums := range l.Sums() {
		if measured[r] > 0 && measured[r] >= sums.Allocatable/2 {
			highest, known = max(highest, min(weighted[r]/measured[r], 1)), true
		}
	}
	return highest, known
}

// claims returns what is asked of one resource of the node.
func (a *account) claims(r Resource) risk.Resource {
	newResource := risk.NewCPU
	if r == Memory {
		newResource = risk.NewMemory
	}
	out := newResource(float64(a.Allocatable[r]), float64(a.Machine[r]))
	out.Requests, out.Limits = a.asked[r].requests.float(), a.asked[r].limits.float()
	out.Unbounded = a.asked[r].unbounded > 0
	return out
}
