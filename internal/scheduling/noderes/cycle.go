package noderes

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// pendingKey is where the amounts of the pending pod stand in its cycle.
const pendingKey fwk.StateKey = "plimsoll.dev/pending-pod"

// Pending is the pod that is being scheduled.
type Pending struct {
	Pod
	// InGroup: the scheduler is trying out a group of pods, and takes pods on
	// and off nodes without telling.
	InGroup bool
}

// Clone returns the same state, which does not change.
func (p *Pending) Clone() fwk.StateData { return p }

// Pending returns what the pending pod asks for. It is worked out once in a
// scheduling cycle: in PreScore, or by the first Score where a profile enables
// a plugin for score alone and no PreScore runs. all is the snapshot of the
// cycle; with it, the cache forgets nodes that are gone.
func (c *Cache) Pending(state fwk.CycleState, pod *v1.Pod, all fwk.SharedLister) *Pending {
	if data, err := state.Read(pendingKey); err == nil {
		if pending, ok := data.(*Pending); ok {
			return pending
		}
	}
	pending := &Pending{Pod: NewPod(pod), InGroup: state.IsPodGroupSchedulingCycle()}
	state.Write(pendingKey, pending)
	c.forget(all)
	return pending
}

// signKey names the fragment of a pod's signature that all plugins share.
const signKey = "plimsoll.dev/v1.Pod.Spec.RequestsAndLimits()"

// Sign returns what a pod asks for as part of its signature: pods with the
// same signature get the same scores.
func Sign(pod *v1.Pod) []fwk.SignFragment {
	p := NewPod(pod)
	amounts := map[string]Amount{}
	for _, r := range []Resource{CPU, Memory, EphemeralStorage} {
		amounts[string(r.name)] = p.Of(r)
	}
	for _, s := range p.scalars {
		amounts[string(s.name)] = s.Amount
	}
	return []fwk.SignFragment{{Key: signKey, Value: amounts}}
}
