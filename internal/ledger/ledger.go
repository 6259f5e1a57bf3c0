// Package ledger tracks the nodes of a cluster and the pods on them, one change at a time. It is
// generic over the data of nodes and pods and the sums that its user keeps per node and in total.
//
// The cost of a change does not depend on the size of the cluster.
package ledger

import (
	"maps"
	"slices"
)

// OnNode is the data of a pod. It is comparable, so that a pod that did not change is recognized.
type OnNode interface {
	comparable
	// NodeName returns the node of the pod; a pod without a node is not counted.
	NodeName() string
}

// Hooks are called when nodes and pods change. All are required.
type Hooks[N comparable, P OnNode, S any] struct {
	// NodeChanged is called after the node of an account changed.
	NodeChanged func(account *Account[N, P, S], before N)
	// PodAdded is called after a pod was added to an account.
	PodAdded func(account *Account[N, P, S], pod P)
	// PodRemoved is called after a pod was removed from an account.
	PodRemoved func(account *Account[N, P, S], pod P)
}

// Account is a node and the pods on it.
type Account[N comparable, P OnNode, S any] struct {
	// Node is the data of the node, the zero value while it is not known.
	Node N
	// Known reports whether the node was set. Pods may be added before their node.
	Known bool
	// Sums are maintained by the hooks.
	Sums S

	// pods are the IDs of the pods on the node. A slice is smaller than a map and, for the about one
	// hundred pods of a node, as fast.
	pods []string
}

// NumPods returns the number of pods on the node.
func (a *Account[N, P, S]) NumPods() int { return len(a.pods) }

// Ledger tracks nodes of type N and pods of type P, with sums of type S per node. It is not safe
// for concurrent use.
type Ledger[N comparable, P OnNode, S any] struct {
	hooks    Hooks[N, P, S]
	accounts map[string]*Account[N, P, S]
	pods     map[string]P
	// names are the keys of accounts in order, nil if they must be sorted again.
	names []string
}

// New returns an empty ledger.
func New[N comparable, P OnNode, S any](hooks Hooks[N, P, S]) *Ledger[N, P, S] {
	return &Ledger[N, P, S]{hooks: hooks, accounts: map[string]*Account[N, P, S]{}, pods: map[string]P{}}
}

// SetNode adds or updates a node. Setting an unchanged node costs one comparison.
func (l *Ledger[N, P, S]) SetNode(name string, node N) {
	a := l.account(name)
	if a.Known && a.Node == node {
		return
	}
	before := a.Node
	a.Node, a.Known = node, true
	l.hooks.NodeChanged(a, before)
}

// DeleteNode removes a node. The pods on it remain, and count again if the node is set again.
func (l *Ledger[N, P, S]) DeleteNode(name string) {
	a := l.accounts[name]
	if a == nil || !a.Known {
		return
	}
	before := a.Node
	var none N
	a.Node, a.Known = none, false
	l.hooks.NodeChanged(a, before)
	l.release(name, a)
}

// SetPod adds or updates the pod with an ID. Setting an unchanged pod costs one comparison.
func (l *Ledger[N, P, S]) SetPod(id string, pod P) {
	if before, exists := l.pods[id]; exists {
		if before == pod {
			return
		}
		l.DeletePod(id)
	}
	if pod.NodeName() == "" {
		return
	}
	l.pods[id] = pod
	a := l.account(pod.NodeName())
	a.pods = append(a.pods, id)
	l.hooks.PodAdded(a, pod)
}

// DeletePod removes a pod.
func (l *Ledger[N, P, S]) DeletePod(id string) {
	pod, exists := l.pods[id]
	if !exists {
		return
	}
	delete(l.pods, id)
	a := l.accounts[pod.NodeName()]
	i, last := slices.Index(a.pods, id), len(a.pods)-1
	a.pods[i] = a.pods[last]
	a.pods = a.pods[:last]
	l.hooks.PodRemoved(a, pod)
	l.release(pod.NodeName(), a)
}

// Account returns the account of a node, nil if neither the node nor pods on it were set.
func (l *Ledger[N, P, S]) Account(name string) *Account[N, P, S] { return l.accounts[name] }

// Names returns the names of all accounts in order. The caller must not change the slice.
func (l *Ledger[N, P, S]) Names() []string {
	if l.names == nil {
		l.names = slices.Sorted(maps.Keys(l.accounts))
	}
	return l.names
}

// PodsOf calls f with each pod of an account.
func (l *Ledger[N, P, S]) PodsOf(a *Account[N, P, S], f func(P)) {
	for _, id := range a.pods {
		f(l.pods[id])
	}
}

// Empty reports whether the ledger has neither nodes nor pods.
func (l *Ledger[N, P, S]) Empty() bool { return len(l.accounts)+len(l.pods) == 0 }

// account returns the account of a node and creates it if necessary.
func (l *Ledger[N, P, S]) account(name string) *Account[N, P, S] {
	a := l.accounts[name]
	if a == nil {
		a = &Account[N, P, S]{}
		l.accounts[name], l.names = a, nil
	}
	return a
}

// release deletes an account that has neither a node nor pods.
func (l *Ledger[N, P, S]) release(name string, a *Account[N, P, S]) {
	if !a.Known && len(a.pods) == 0 {
		delete(l.accounts, name)
		l.names = nil
	}
}
