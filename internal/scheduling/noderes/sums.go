package noderes

import (
	"slices"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/saturate"
)

// Sum adds up what the pods of a node ask of one resource.
type Sum struct {
	// Request is the sum of the requests.
	Request int64
	// Limit is the sum of the limits of the bounded pods; PartialLimit that of
	// what the unbounded ones declare all the same.
	Limit, PartialLimit int64
	// FlooredLimit is the sum over all pods of the declared limit, taken at
	// least as high as the request.
	FlooredLimit int64
	// Unbounded is the number of unbounded pods.
	Unbounded int64
}

// Add takes one more pod in.
func (s *Sum) Add(a Amount) {
	s.Request = saturate.Add(s.Request, a.Request)
	s.FlooredLimit = saturate.Add(s.FlooredLimit, max(a.Limit, a.Request))
	if a.Unbounded {
		s.PartialLimit = saturate.Add(s.PartialLimit, a.Limit)
		s.Unbounded++
		return
	}
	s.Limit = saturate.Add(s.Limit, a.Limit)
}

// LimitWithDefault returns the sum of the limits of all pods, where an
// unbounded pod counts with what it does declare and byDefault on top; or with
// all that is allocatable if byDefault is 0.
func (s *Sum) LimitWithDefault(byDefault, allocatable int64) int64 {
	if s.Unbounded == 0 {
		return s.Limit
	}
	if byDefault == 0 {
		return saturate.Add(s.Limit, saturate.Multiply(s.Unbounded, allocatable))
	}
	return saturate.Add(saturate.Add(s.Limit, s.PartialLimit), saturate.Multiply(s.Unbounded, byDefault))
}

type namedSum struct {
	name v1.ResourceName
	Sum
}

// Sums are the sums over the pods of one node, at one instant. They do not
// change once made, but for the memo.
type Sums struct {
	// What every score reads comes first, to be had in few cache lines.

	generation int64
	count      int
	// tentative: made while the scheduler tried out a group of pods, so that
	// other pods may stand under the same generation.
	tentative bool
	// Memo is for a plugin to keep what it has worked out from these sums. It
	// says itself what else it holds for; who finds another's works its own out.
	// All that is kept is of one type.
	Memo atomic.Value

	cpu, memory, ephemeralStorage Sum
	scalars                       []namedSum

	// pods are the node's pods in the order of its NodeInfo, with their amounts:
	// what has not changed place is not read again.
	pods []summedPod
}

type summedPod struct {
	pod     *v1.Pod
	amounts Pod
}

// Of returns the sum of one resource.
func (s *Sums) Of(r Resource) Sum {
	switch r.kind {
	case cpu:
		return s.cpu
	case memory:
		return s.memory
	case ephemeralStorage:
		return s.ephemeralStorage
	case scalar:
	}
	for i := range s.scalars {
		if s.scalars[i].name == r.name {
			return s.scalars[i].Sum
		}
	}
	return Sum{}
}

// SumsOf returns the sums over the pods of a node, added up anew: for those who
// look at a node now and then, where a Cache is for those who score it.
func SumsOf(node fwk.NodeInfo) *Sums { return newSums(node, nil, false) }

// newSums adds up the pods of a node. Amounts are taken from earlier sums of
// the same node where a pod stands in the same place.
func newSums(node fwk.NodeInfo, earlier *Sums, tentative bool) *Sums {
	infos := node.GetPods()
	s := &Sums{generation: node.GetGeneration(), count: len(infos), tentative: tentative, pods: make([]summedPod, len(infos))}
	for i, info := range infos {
		pod := info.GetPod()
		if earlier != nil && i < len(earlier.pods) && earlier.pods[i].pod == pod {
			s.pods[i] = earlier.pods[i]
		} else {
			s.pods[i] = summedPod{pod, NewPod(pod)}
		}
		amounts := &s.pods[i].amounts
		s.cpu.Add(amounts.cpu)
		s.memory.Add(amounts.memory)
		s.ephemeralStorage.Add(amounts.ephemeralStorage)
		for _, a := range amounts.scalars {
			s.scalar(a.name).Add(a.Amount)
		}
	}
	return s
}

func (s *Sums) scalar(name v1.ResourceName) *Sum {
	i, found := slices.BinarySearchFunc(s.scalars, name, func(a namedSum, name v1.ResourceName) int {
		return strings.Compare(string(a.name), string(name))
	})
	if !found {
		s.scalars = slices.Insert(s.scalars, i, namedSum{name: name})
	}
	return &s.scalars[i].Sum
}

// describes reports whether the sums are those of the node as it is now.
//
// The scheduler overwrites its NodeInfos in place, so that a pointer proves
// nothing. Whenever pods come or go the generation changes; but while the
// scheduler tries out a group of pods it puts the old generation back, and only
// ever adds pods to those that were there. Sums made outside of that hold for
// their generation and number of pods. Of tentative ones every pod is compared.
func (s *Sums) describes(node fwk.NodeInfo) bool {
	infos := node.GetPods()
	if s.generation != node.GetGeneration() || s.count != len(infos) {
		return false
	}
	return !s.tentative || slices.EqualFunc(s.pods, infos, func(a summedPod, b fwk.PodInfo) bool { return a.pod == b.GetPod() })
}
