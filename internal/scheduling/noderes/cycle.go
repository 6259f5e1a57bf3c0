package noderes

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// pendingKey is the key of the pending pod's amounts in the cycle state.
const pendingKey fwk.StateKey = "plimsoll.dev/pending-pod"

// Pending holds the amounts of the pod that is being scheduled.
type Pending struct {
	resources.Pod
	// InGroup is set while the scheduler evaluates a group of pods: it then adds pods to nodes and
	// removes them without changing the generation of the node.
	InGroup bool
}

// Pending returns the amounts of the pending pod. They are computed once per scheduling cycle: in
// PreScore, or in the first Score if a profile enables a plugin for score only. all is the snapshot
// of the cycle; nodes that are missing from it are dropped from the cache.
func (c *Cache) Pending(state fwk.CycleState, pod *v1.Pod, all fwk.SharedLister) *Pending {
	if pending := c.pending.Get(state); pending != nil {
		return pending
	}
	pending := &Pending{Pod: resources.NewPod(pod), InGroup: state.IsPodGroupSchedulingCycle()}
	c.pending.Set(state, pending)
	c.dropDeletedNodes(all)
	return pending
}

// Cycle is the place of one plugin's data in the state of a scheduling cycle. It remembers the newest
// cycle and its data, so that reading them for each node is one comparison and not a search in the
// state. It is safe for concurrent use.
//
// It refers to the state until the next cycle, so that the state of another cycle cannot have the
// same address.
type Cycle[T any] struct {
	key    fwk.StateKey
	newest atomic.Pointer[newestCycle[T]]
}

// newestCycle is the state of a cycle and the data in it.
type newestCycle[T any] struct {
	state fwk.CycleState
	data  *T
}

// cycleData is the data as the state of a cycle stores them.
type cycleData[T any] struct{ data *T }

// Clone returns the same data, which are immutable.
func (d cycleData[T]) Clone() fwk.StateData { return d }

// NewCycle returns the place with a key, which must be unique among the plugins of a profile.
func NewCycle[T any](key fwk.StateKey) Cycle[T] { return Cycle[T]{key: key} }

// Get returns the data of a cycle, nil if there are none.
func (c *Cycle[T]) Get(state fwk.CycleState) *T {
	if newest := c.newest.Load(); newest != nil && newest.state == state {
		return newest.data
	}
	stored, err := state.Read(c.key)
	if err != nil {
		return nil
	}
	d, ok := stored.(cycleData[T])
	if !ok {
		return nil
	}
	c.newest.Store(&newestCycle[T]{state, d.data})
	return d.data
}

// Set stores the data of a cycle, which must not be changed afterwards.
func (c *Cycle[T]) Set(state fwk.CycleState, data *T) {
	state.Write(c.key, cycleData[T]{data})
	c.newest.Store(&newestCycle[T]{state, data})
}

// signKey is the key of the signature fragment that all plugins share.
const signKey = "plimsoll.dev/v1.Pod.Spec.RequestsAndLimits()"

// Sign returns the requests and limits of a pod as a fragment of its signature. Pods with the same
// signature get the same scores.
func Sign(pod *v1.Pod) []fwk.SignFragment {
	p := resources.NewPod(pod)
	amounts := map[string]resources.Amount{}
	for _, r := range commonResources {
		amounts[string(r.Name())] = p.Get(r)
	}
	for _, s := range p.Extended {
		amounts[string(s.Name)] = s.Amount
	}
	return []fwk.SignFragment{{Key: signKey, Value: amounts}}
}
