package cache

import (
	"context"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Pending is the pod of a scheduling cycle.
type Pending struct {
	resources.Pod
	// InGroup is set while the scheduler evaluates a group of pods: it then adds pods to nodes and
	// removes them without changing the generation of the node.
	InGroup bool
	// all is the snapshot of the cycle.
	all fwk.SharedLister
	pod *v1.Pod
}

// Requests returns the requests of the pod.
func (p *Pending) Requests() Requests {
	cpu, memory := resources.AssumedRequests(p.pod)
	return Requests{p.Get(resources.CPUResource).Request, p.Get(resources.MemoryResource).Request, cpu, memory}
}

// Cycle keeps the data that a plugin computes once per scheduling cycle. It implements PreScore; a profile may enable the plugin under
// score alone, and then the first Score of a cycle computes them. Plugins embed it.
//
// The data are in the state of the cycle, like the data of every plugin. Reading a state allocates memory, and Score reads it for every
// node: Cycle remembers the newest state and its data.
type Cycle[T any] struct {
	key    fwk.StateKey
	cache  *Cache
	handle fwk.Handle
	begin  func(*Pending) T
	newest atomic.Pointer[newestCycle[T]]
}

// newestCycle is the state of a cycle and the data in it. The state cannot be freed meanwhile, so that no other state has its address.
type newestCycle[T any] struct {
	state fwk.CycleState
	data  *T
}

// cycleData is the data as the state of a cycle stores them.
type cycleData[T any] struct{ data *T }

// Clone returns the same data, which are immutable.
func (d cycleData[T]) Clone() fwk.StateData { return d }

// NewCycle returns the cycle data of a plugin. key must be unique among the plugins of a profile. begin returns the data of a cycle,
// which must not be changed afterwards.
func NewCycle[T any](key fwk.StateKey, cache *Cache, handle fwk.Handle, begin func(*Pending) T) *Cycle[T] {
	return &Cycle[T]{key: key, cache: cache, handle: handle, begin: begin}
}

// PreScore computes the data of a cycle.
func (c *Cycle[T]) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	c.Data(state, pod)
	return nil
}

// Data returns the data of a cycle. It is safe for concurrent use.
func (c *Cycle[T]) Data(state fwk.CycleState, pod *v1.Pod) *T {
	if newest := c.newest.Load(); newest != nil && newest.state == state {
		return newest.data
	}
	stored, err := state.Read(c.key)
	d, ok := stored.(cycleData[T])
	if err != nil || !ok {
		all := c.handle.SnapshotSharedLister()
		c.cache.dropDeleted(all)
		data := c.begin(&Pending{resources.NewPod(pod), inGroup(state), all, pod})
		d = cycleData[T]{&data}
		state.Write(c.key, d)
	}
	c.newest.Store(&newestCycle[T]{state, d.data})
	return d.data
}

// inGroup reports whether the scheduler evaluates a group of pods. Kubernetes 1.35 has no groups, and no method.
func inGroup(state fwk.CycleState) bool {
	cycle, ok := state.(interface{ IsPodGroupSchedulingCycle() bool })
	return ok && cycle.IsPodGroupSchedulingCycle()
}

// signKey is the key of the signature fragment that all plugins share.
const signKey = "plimsoll.dev/v1.Pod.Spec.RequestsAndLimits()"

// Sign returns the requests and limits of a pod as a fragment of its signature. Pods with the same
// signature get the same scores.
func Sign(pod *v1.Pod) []fwk.SignFragment {
	p := resources.NewPod(pod)
	amounts := map[string]resources.Amount{}
	for _, r := range []resources.Resource{resources.CPUResource, resources.MemoryResource, resources.EphemeralStorageResource} {
		amounts[string(r.Name())] = p.Get(r)
	}
	for _, s := range p.Extended {
		amounts[string(s.Name)] = s.Amount
	}
	return []fwk.SignFragment{{Key: signKey, Value: amounts}}
}
