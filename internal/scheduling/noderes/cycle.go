package noderes

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// pendingKey is the key of the pending pod's amounts in the cycle state.
const pendingKey fwk.StateKey = "plimsoll.dev/pending-pod"

// Pending holds the amounts of the pod that is being scheduled.
type Pending struct {
	Pod
	// InGroup is set while the scheduler evaluates a group of pods: it then adds pods to nodes and
	// removes them without changing the generation of the node.
	InGroup bool
}

// Clone returns the same state, which is immutable.
func (p *Pending) Clone() fwk.StateData { return p }

// Pending returns the amounts of the pending pod. They are computed once per scheduling cycle: in
// PreScore, or in the first Score if a profile enables a plugin for score only. all is the snapshot
// of the cycle; nodes that are missing from it are dropped from the cache.
func (c *Cache) Pending(state fwk.CycleState, pod *v1.Pod, all fwk.SharedLister) *Pending {
	if data, err := state.Read(pendingKey); err == nil {
		if pending, ok := data.(*Pending); ok {
			return pending
		}
	}
	pending := &Pending{Pod: NewPod(pod), InGroup: state.IsPodGroupSchedulingCycle()}
	state.Write(pendingKey, pending)
	c.dropDeletedNodes(all)
	return pending
}

// signKey is the key of the signature fragment that all plugins share.
const signKey = "plimsoll.dev/v1.Pod.Spec.RequestsAndLimits()"

// Sign returns the requests and limits of a pod as a fragment of its signature. Pods with the same
// signature get the same scores.
func Sign(pod *v1.Pod) []fwk.SignFragment {
	p := NewPod(pod)
	amounts := map[string]Amount{}
	for _, r := range []Resource{CPU, Memory, EphemeralStorage} {
		amounts[string(r.name)] = p.Get(r)
	}
	for _, s := range p.scalars {
		amounts[string(s.name)] = s.Amount
	}
	return []fwk.SignFragment{{Key: signKey, Value: amounts}}
}
