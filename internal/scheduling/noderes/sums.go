package noderes

import (
	"slices"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Sum holds the sums over the pods of a node for one resource.
type Sum struct {
	// Request is the sum of the requests.
	Request int64
	// Limit is the sum of the limits of the bounded pods; PartialLimit is the sum of the limits that
	// unbounded pods declare for some of their containers.
	Limit, PartialLimit int64
	// FlooredLimit is the sum over all pods of the larger of declared limit and request.
	FlooredLimit int64
	// Unbounded is the number of unbounded pods.
	Unbounded int64
}

// Add adds the amount of a pod.
func (s *Sum) Add(a resources.Amount) {
	s.Request = resources.Add(s.Request, a.Request)
	s.FlooredLimit = resources.Add(s.FlooredLimit, max(a.Limit, a.Request))
	if a.Unbounded {
		s.PartialLimit = resources.Add(s.PartialLimit, a.Limit)
		s.Unbounded++
		return
	}
	s.Limit = resources.Add(s.Limit, a.Limit)
}

// LimitWithDefault returns the sum of the limits of all pods. An unbounded pod counts with its
// declared limits plus defaultLimit, or with the allocatable amount if defaultLimit is 0.
func (s *Sum) LimitWithDefault(defaultLimit, allocatable int64) int64 {
	if s.Unbounded == 0 {
		return s.Limit
	}
	if defaultLimit == 0 {
		return resources.Add(s.Limit, resources.Multiply(s.Unbounded, allocatable))
	}
	return resources.Add(resources.Add(s.Limit, s.PartialLimit), resources.Multiply(s.Unbounded, defaultLimit))
}

type namedSum struct {
	name v1.ResourceName
	Sum
}

// Sums holds the sums over the pods of one node at one time. It is immutable, except for the values
// of its slots.
type Sums struct {
	// The fields that every score reads come first, in the first two cache lines: 128 of 256 bytes.

	generation int64
	count      int32
	// tentative is set if the sums were computed while the scheduler evaluated a group of pods:
	// other pods may be on the node under the same generation.
	tentative bool
	// slotsInPlace is the number of slots that are stored in place.
	slotsInPlace uint8
	inPlace      [2]atomic.Value
	// common are the sums of commonResources.
	common [len(commonResources)]Sum

	// furtherSlots are the values of the reserved slots beyond those in place.
	furtherSlots []atomic.Value
	node         *v1.Node
	scalars      []namedSum

	// pods are the pods of the node in the order of its NodeInfo, with their amounts. The amounts of
	// a pod that keeps its position are not computed again.
	pods []podAmounts

	_ uint64
}

type podAmounts struct {
	pod     *v1.Pod
	amounts resources.Pod
	// nonZeroCPU and nonZeroMemory are the requests with kube-scheduler's defaults for containers without.
	nonZeroCPU, nonZeroMemory int64
	arrival                   Arrival
}

// commonResources are the resources that a container without a limit may use without bound, in the order of their indexes.
var commonResources = [...]resources.Resource{resources.CPUResource, resources.MemoryResource, resources.EphemeralStorageResource}

// Node returns the node, as it was when the sums were computed.
func (s *Sums) Node() *v1.Node { return s.node }

// Pods calls visit with the arrival of each pod, and its requests in millicores and bytes, with kube-scheduler's
// defaults for containers without requests.
func (s *Sums) Pods(visit func(arrival Arrival, cpu, memory int64)) {
	for i := range s.pods {
		visit(s.pods[i].arrival, s.pods[i].nonZeroCPU, s.pods[i].nonZeroMemory)
	}
}

// Get returns the sum for one resource.
func (s *Sums) Get(r resources.Resource) Sum {
	if i := int(r.Index()); i < len(s.common) {
		return s.common[i]
	}
	for i := range s.scalars {
		if s.scalars[i].name == r.Name() {
			return s.scalars[i].Sum
		}
	}
	return Sum{}
}

// Len returns the number of pods.
func (s *Sums) Len() int { return len(s.pods) }

// Pod returns the amounts of a pod, by its position in the NodeInfo.
func (s *Sums) Pod(i int) *resources.Pod { return &s.pods[i].amounts }

// NewSums computes the sums over the pods of a node, without a cache and without slots.
func NewSums(node fwk.NodeInfo) *Sums { return newSums(node, nil, false, 0) }

// newSums computes the sums over the pods of a node. The amounts of pods are copied from previous
// sums of the node where a pod has the same position.
func newSums(node fwk.NodeInfo, previous *Sums, tentative bool, slots int) *Sums {
	infos := node.GetPods()
	s := &Sums{
		generation: node.GetGeneration(), count: int32(len(infos)), tentative: tentative, node: node.Node(),
		slotsInPlace: uint8(min(slots, 2)), pods: make([]podAmounts, len(infos)),
	}
	if further := slots - len(s.inPlace); further > 0 {
		s.furtherSlots = make([]atomic.Value, further)
	}
	for i, info := range infos {
		pod := info.GetPod()
		if previous != nil && i < len(previous.pods) && previous.pods[i].pod == pod {
			s.pods[i] = previous.pods[i]
		} else {
			nonZero := info.CalculateResource()
			s.pods[i] = podAmounts{pod, resources.NewPod(pod), nonZero.Non0CPU, nonZero.Non0Mem, ArrivalOf(pod)}
		}
		amounts := &s.pods[i].amounts
		for r, common := range commonResources {
			s.common[r].Add(amounts.Get(common))
		}
		for _, a := range amounts.Extended {
			s.scalar(a.Name).Add(a.Amount)
		}
	}
	return s
}

// scalar returns a pointer to the sum for a resource, which it adds if it is missing.
func (s *Sums) scalar(name v1.ResourceName) *Sum {
	i, found := slices.BinarySearchFunc(s.scalars, name, func(a namedSum, name v1.ResourceName) int {
		return strings.Compare(string(a.name), string(name))
	})
	if !found {
		s.scalars = slices.Insert(s.scalars, i, namedSum{name: name})
	}
	return &s.scalars[i].Sum
}

// isCurrent reports whether the sums are those of the node in its present state.
//
// The scheduler overwrites its NodeInfos in place, so comparing pointers is not enough. Adding or
// removing pods changes the generation; but while the scheduler evaluates a group of pods it restores
// the previous generation, and only adds pods to those already on the node. Sums computed outside a
// group are therefore identified by generation and number of pods. For tentative sums every pod is
// compared.
func (s *Sums) isCurrent(node fwk.NodeInfo) bool {
	infos := node.GetPods()
	if s.generation != node.GetGeneration() || int(s.count) != len(infos) {
		return false
	}
	return !s.tentative || slices.EqualFunc(s.pods, infos, func(a podAmounts, b fwk.PodInfo) bool { return a.pod == b.GetPod() })
}
