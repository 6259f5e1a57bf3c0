package slack

import "slices"

// Pod is what the ledger keeps of a pod.
type Pod struct {
	// Node that the pod is on; a pod without one does not count.
	Node string
	// Requests of the pod.
	Requests Amounts
	// Daemon pods come with their node: they take from what it has for others,
	// and nobody needs room for another one.
	Daemon bool
	// OptedOut pods count, but do not define the biggest pod.
	OptedOut bool
}

// Node is what the ledger keeps of a node.
type Node struct {
	// InPool: pods on the node are pods of the pool.
	InPool bool
	// Usable: placeholders can be put there. A node that is cordoned, not ready or
	// being deleted is not.
	Usable bool
	// Allocatable is what the node has for pods, Slots how many of them it takes.
	Allocatable Amounts
	Slots       int64
}

// MaxAmount is the most that one pod or node counts with: 16 TiB of memory, 17
// billion cores. The sums of half a million of them do not overflow.
const MaxAmount = 1 << 44

var most = Amounts{MaxAmount, MaxAmount}

// Ledger keeps count of a pool of nodes and of the pods on them, told one change
// at a time. What it knows takes a few map entries for a change and does not
// depend on how much else there is. It is not safe for concurrent use.
type Ledger struct {
	nodes map[string]*account
	pods  map[string]Pod

	// Of the pool, kept as things change:
	requested   Amounts // of pods that are no daemons
	allocatable Amounts // of usable nodes
	free        Amounts // what usable nodes have beside all their pods
	usable      int
	// podShapes count pods by requests that may define the biggest, nodeShapes
	// usable nodes by what they have for others than daemons.
	podShapes, nodeShapes map[Amounts]int
	// names of the known nodes in order, nil where they have to be sorted anew.
	names []string
}

// account is what is known of one node.
type account struct {
	Node
	known   bool
	daemons Amounts
	// requested is what the other pods request.
	requested Amounts
	// pods on the node: a hundred or so, so that a list is smaller than a map and
	// not slower.
	pods []string
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{nodes: map[string]*account{}, pods: map[string]Pod{}, podShapes: map[Amounts]int{}, nodeShapes: map[Amounts]int{}}
}

// SetNode takes a node in, or what has become of it.
func (l *Ledger) SetNode(name string, node Node) {
	node.Allocatable = node.Allocatable.Least(most)
	a := l.account(name)
	if a.known && a.Node == node {
		return
	}
	if a.InPool != node.InPool {
		for _, id := range a.pods {
			if a.InPool {
				l.uncount(l.pods[id])
			} else {
				l.count(l.pods[id])
			}
		}
	}
	l.withdraw(a)
	if !a.known {
		l.names = nil
	}
	a.Node, a.known = node, true
	l.offer(a)
}

// DeleteNode forgets a node. Its pods are remembered, and count again when the
// node is back.
func (l *Ledger) DeleteNode(name string) {
	if a, ok := l.nodes[name]; ok && a.known {
		l.SetNode(name, Node{})
		a.known, l.names = false, nil
		l.release(name, a)
	}
}

// SetPod takes a pod in, or what has become of it; id names it for ever.
func (l *Ledger) SetPod(id string, pod Pod) {
	pod.Requests = pod.Requests.Least(most)
	if old, ok := l.pods[id]; ok {
		if old == pod {
			return
		}
		l.DeletePod(id)
	}
	if pod.Node == "" {
		return
	}
	l.pods[id] = pod
	a := l.account(pod.Node)
	a.pods = append(a.pods, id)
	if a.InPool {
		l.count(pod)
	}
	l.withdraw(a)
	if pod.Daemon {
		a.daemons = a.daemons.Plus(pod.Requests)
	} else {
		a.requested = a.requested.Plus(pod.Requests)
	}
	l.offer(a)
}

// DeletePod forgets a pod.
func (l *Ledger) DeletePod(id string) {
	pod, ok := l.pods[id]
	if !ok {
		return
	}
	a := l.nodes[pod.Node]
	if a.InPool {
		l.uncount(pod)
	}
	l.withdraw(a)
	if pod.Daemon {
		a.daemons = a.daemons.Minus(pod.Requests)
	} else {
		a.requested = a.requested.Minus(pod.Requests)
	}
	l.offer(a)
	delete(l.pods, id)
	i := slices.Index(a.pods, id)
	last := len(a.pods) - 1
	a.pods[i] = a.pods[last]
	a.pods = a.pods[:last]
	l.release(pod.Node, a)
}

// account returns the account of a node, made if need be.
func (l *Ledger) account(name string) *account {
	a := l.nodes[name]
	if a == nil {
		a = &account{}
		l.nodes[name] = a
	}
	return a
}

// release drops an account that nothing is in.
func (l *Ledger) release(name string, a *account) {
	if !a.known && len(a.pods) == 0 {
		delete(l.nodes, name)
	}
}

// count adds a pod of the pool.
func (l *Ledger) count(pod Pod) {
	if pod.Daemon {
		return
	}
	l.requested = l.requested.Plus(pod.Requests)
	if !pod.OptedOut {
		l.podShapes[pod.Requests]++
	}
}

// uncount takes it out again.
func (l *Ledger) uncount(pod Pod) {
	if pod.Daemon {
		return
	}
	l.requested = l.requested.Minus(pod.Requests)
	if !pod.OptedOut {
		drop(l.podShapes, pod.Requests)
	}
}

// free returns what the node has beside all its pods.
func (a *account) free() Amounts { return a.Allocatable.Minus(a.daemons).Minus(a.requested) }

// offer adds what a node has for placeholders.
func (l *Ledger) offer(a *account) {
	if !a.InPool || !a.Usable {
		return
	}
	l.usable++
	l.allocatable = l.allocatable.Plus(a.Allocatable)
	l.free = l.free.Plus(a.free())
	l.nodeShapes[a.Allocatable.Minus(a.daemons)]++
}

// withdraw takes it away again.
func (l *Ledger) withdraw(a *account) {
	if !a.InPool || !a.Usable {
		return
	}
	l.usable--
	l.allocatable = l.allocatable.Minus(a.Allocatable)
	l.free = l.free.Minus(a.free())
	drop(l.nodeShapes, a.Allocatable.Minus(a.daemons))
}

func drop(shapes map[Amounts]int, shape Amounts) {
	if shapes[shape]--; shapes[shape] <= 0 {
		delete(shapes, shape)
	}
}

// Pool is what a plan is made from.
type Pool struct {
	// Requested is the sum of the pods' requests, daemons excepted; Allocatable
	// that of the usable nodes.
	Requested, Allocatable Amounts
	// Free is what usable nodes have beside all their pods, and so what is to spare.
	Free Amounts
	// Nodes is the number of usable nodes.
	Nodes int
	// Widest has the most of each resource that a pod requests. WidestCPU and
	// WidestMemory are the real pods that request the most of one, and of those
	// the most of the other. All are zero where there are no pods.
	Widest, WidestCPU, WidestMemory Amounts
	// Shapes are what usable nodes have for others than daemons: all that no other
	// shape has more of everything than, in a fixed order.
	Shapes []Amounts
}

// Pool returns what there is now: one pass over the shapes of pods and nodes.
func (l *Ledger) Pool() Pool {
	p := Pool{Requested: l.requested, Allocatable: l.allocatable, Free: l.free, Nodes: l.usable}
	for shape := range l.podShapes {
		p.Widest = p.Widest.Most(shape)
		if p.WidestCPU.less(shape) {
			p.WidestCPU = shape
		}
		if shape[Memory] > p.WidestMemory[Memory] || shape[Memory] == p.WidestMemory[Memory] && shape[CPU] > p.WidestMemory[CPU] {
			p.WidestMemory = shape
		}
	}
	p.Shapes = widest(l.nodeShapes)
	return p
}
