package cache

import (
	"math/bits"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// NodeSums are the sums over the pods of one node at one time. They are immutable.
type NodeSums struct {
	state
	resources.Sums
	node *v1.Node
	// requests are the sums that the scheduler keeps.
	requests Requests
	// pods are in the order of the NodeInfo. The amounts of a pod that keeps its position are not computed again.
	pods []podAmounts
}

// Requests are the requests for CPU, in millicores, and memory: as declared, and with kube-scheduler's defaults for containers without.
type Requests struct{ CPU, Memory, AssumedCPU, AssumedMemory int64 }

// state identifies the pods of a node at one time.
//
// The scheduler overwrites its NodeInfos in place, so that comparing pointers is not enough. Adding or
// removing pods changes the generation; but while the scheduler evaluates a group of pods it restores
// the previous generation, and only adds pods to those already on the node. A state outside a
// group is therefore identified by generation and number of pods.
type state struct {
	generation int64
	pods       int
	// tentative is set while the scheduler evaluates a group of pods: other pods may be on the node under the same generation.
	tentative bool
}

// isCurrent reports whether a node has the same generation and number of pods.
func (s *state) isCurrent(node fwk.NodeInfo) bool {
	return s.generation == node.GetGeneration() && s.pods == len(node.GetPods())
}

type podAmounts struct {
	pod     *v1.Pod
	amounts resources.Pod
	// nonZeroCPU and nonZeroMemory are the requests with kube-scheduler's defaults for containers without.
	nonZeroCPU, nonZeroMemory int64
	arrival                   resources.Arrival
}

// NewSums computes the sums over the pods of a node, without a cache.
func NewSums(node fwk.NodeInfo) *NodeSums { return newSums(node, nil, false) }

// newSums computes the sums over the pods of a node. The amounts of pods are copied from previous
// sums of the node where a pod has the same position.
func newSums(node fwk.NodeInfo, previous *NodeSums, tentative bool) *NodeSums {
	infos, requested, assumed := node.GetPods(), node.GetRequested(), node.GetNonZeroRequested()
	s := &NodeSums{
		state: state{node.GetGeneration(), len(infos), tentative}, node: node.Node(), pods: make([]podAmounts, len(infos)),
		requests: Requests{requested.GetMilliCPU(), requested.GetMemory(), assumed.GetMilliCPU(), assumed.GetMemory()},
	}
	for i, info := range infos {
		pod := info.GetPod()
		if previous != nil && i < len(previous.pods) && previous.pods[i].pod == pod {
			s.pods[i] = previous.pods[i]
		} else {
			nonZero := info.CalculateResource()
			s.pods[i] = podAmounts{pod, resources.NewPod(pod), nonZero.Non0CPU, nonZero.Non0Mem, resources.ArrivalOf(pod)}
		}
		s.Add(&s.pods[i].amounts)
	}
	return s
}

// isCurrent reports whether the sums include exactly the pods that are on the node. Of tentative sums, every pod is compared.
func (s *NodeSums) isCurrent(node fwk.NodeInfo) bool {
	return s.state.isCurrent(node) && (!s.tentative ||
		slices.EqualFunc(s.pods, node.GetPods(), func(a podAmounts, b fwk.PodInfo) bool { return a.pod == b.GetPod() }))
}

// Requests returns the requests of the pods, as the scheduler has added them up.
func (s *NodeSums) Requests() Requests { return s.requests }

// Node returns the node, as it was when the sums were computed.
func (s *NodeSums) Node() *v1.Node { return s.node }

// Pods calls visit with the arrival of each pod, and its requests in millicores and bytes, with kube-scheduler's
// defaults for containers without requests.
func (s *NodeSums) Pods(visit func(arrival resources.Arrival, cpu, memory int64)) {
	for i := range s.pods {
		visit(s.pods[i].arrival, s.pods[i].nonZeroCPU, s.pods[i].nonZeroMemory)
	}
}

// Len returns the number of pods.
func (s *NodeSums) Len() int { return len(s.pods) }

// Pod returns the amounts of a pod, by its position in the NodeInfo.
func (s *NodeSums) Pod(i int) *resources.Pod { return &s.pods[i].amounts }

// Allocatable returns the allocatable amount of a node, 0 if it lacks the resource.
func Allocatable(r resources.Resource, node fwk.NodeInfo) int64 {
	allocatable := node.GetAllocatable()
	amount := int64(0)
	switch r.Index() {
	case resources.CPU:
		amount = allocatable.GetMilliCPU()
	case resources.Memory:
		amount = allocatable.GetMemory()
	case resources.EphemeralStorage:
		amount = allocatable.GetEphemeralStorage()
	case resources.Pods:
		amount = int64(allocatable.GetAllowedPodNumber())
	case resources.Extended:
		amount = allocatable.GetScalarResources()[r.Name()]
	}
	return max(amount, 0)
}

// Normalize scales raw scores linearly to [0, 100], the lowest to 0 and the highest to 100, rounded down. If all
// scores are equal, they become 0.
func Normalize(scores fwk.NodeScoreList) {
	if len(scores) == 0 {
		return
	}
	lowest, highest := scores[0].Score, scores[0].Score
	for _, s := range scores {
		lowest, highest = min(lowest, s.Score), max(highest, s.Score)
	}
	for i := range scores {
		scores[i].Score = scale(scores[i].Score, lowest, highest)
	}
}

// MaxScore is the highest score of a node. Kubernetes 1.35 has it under the older name only.
const MaxScore = fwk.MaxNodeScore //nolint:staticcheck // as above

// scale maps raw linearly from [lowest, highest] to [0, 100], rounded down. It returns 0 if lowest equals highest.
func scale(raw, lowest, highest int64) int64 {
	if highest == lowest {
		return 0
	}
	// Differences in two's complement are correct as uint64 even if the signed ones overflow.
	distance, span := uint64(raw)-uint64(lowest), uint64(highest)-uint64(lowest)
	hi, lo := bits.Mul64(distance, uint64(MaxScore))
	score, _ := bits.Div64(hi, lo, span)
	return int64(score)
}
