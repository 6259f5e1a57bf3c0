package agent

import (
	"math"

	v1 "k8s.io/api/core/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
)

// Names of the scores. In their formulas A is the sum of the allocatable amounts of the nodes, F the
// part that requests leave free, and L the sum of the limits of the pods.
const (
	// freeCPU and freeMemory score the free fraction: 200 x (F/A - 0.5).
	freeCPU    = "freeCPU"
	freeMemory = "freeMemory"
	// freeCores and freeGiB score the free amount, ten points for each doubling:
	// 10 x log2(1 + F) - 100, with F in cores or GiB.
	freeCores = "freeCores"
	freeGiB   = "freeGiB"
	// limitRoomCPU and limitRoomMemory score the amount that limits leave, negative if limits exceed
	// the allocatable amount: 100 x (A - L) / max(A, L).
	limitRoomCPU    = "limitRoomCPU"
	limitRoomMemory = "limitRoomMemory"
	// lowLoadRisk scores the probability that pods do not use more than they request:
	// 200 x (0.5 - load risk). It is absent without measured load.
	lowLoadRisk = "lowLoadRisk"
	// slackCPU and slackMemory score the available slack S against the target T, negative if S is
	// less: 100 x (S - T) / max(S, T). The score of several pools is the mean weighted by their
	// targets. It is absent if all targets are 0.
	slackCPU    = "slackCPU"
	slackMemory = "slackMemory"
)

// scoreNames lists the names of all scores in the order in which they are reported.
var scoreNames = []string{freeCPU, freeMemory, freeCores, freeGiB, limitRoomCPU, limitRoomMemory, lowLoadRisk, slackCPU, slackMemory}

// namedScore is one score of the cluster: one of scoreNames, and a value in [-100, 100].
type namedScore = clusterv1alpha1.AddOnPlacementScoreItem

// scored is the number of resources that are scored, the first of resources.Amounts: CPU and memory.
const scored = 2

// nodeSums are sums over the nodes that accept pods, in the unit of the resource.
type nodeSums struct {
	// Allocatable is the capacity for pods.
	Allocatable float64
	// Free is the capacity that requests leave free. It is at least 0 for each node: an overcommitted
	// node does not reduce the free capacity of other nodes.
	Free float64
	// Limits are the limits of the pods; for a node with an unbounded pod at least its allocatable
	// amount.
	Limits float64
}

// add adds a node.
func (s *nodeSums) add(node risk.Resource) {
	s.Allocatable += node.Capacity
	s.Free += max(0, node.Capacity-node.Requests)
	if node.Unbounded {
		node.Limits = max(node.Limits, node.Capacity)
	}
	s.Limits += node.Limits
}

// slackAmounts is the slack of one pool of nodes.
type slackAmounts struct {
	// Available is the slack that is available, and Target the slack that should be.
	Available, Target resources.Amounts
	// Total is the sum of the requests of the placeholders.
	Total v1.ResourceList
}

// clusterState is the state that a cluster is scored by.
type clusterState struct {
	// Sums are the sums over the nodes.
	Sums [scored]nodeSums
	// LoadRisk is in [0, 1]. It is ignored unless LoadKnown is set.
	LoadRisk  float64
	LoadKnown bool
	// Slack is the slack of each pool.
	Slack []slackAmounts
}

// cores and gib are the units of freeCores and freeGiB.
const (
	cores = 1000
	gib   = 1 << 30
)

// scoresOf returns the scores of a cluster in the order of scoreNames, without absent scores.
func scoresOf(s clusterState) []namedScore {
	cpu, memory := s.Sums[resources.CPU], s.Sums[resources.Memory]
	out := []namedScore{
		{Name: freeCPU, Value: fraction(cpu.Free, cpu.Allocatable)},
		{Name: freeMemory, Value: fraction(memory.Free, memory.Allocatable)},
		{Name: freeCores, Value: doublings(cpu.Free / cores)},
		{Name: freeGiB, Value: doublings(memory.Free / gib)},
		{Name: limitRoomCPU, Value: limitRoom(cpu)},
		{Name: limitRoomMemory, Value: limitRoom(memory)},
	}
	if s.LoadKnown {
		out = append(out, namedScore{Name: lowLoadRisk, Value: fraction(1-s.LoadRisk, 1)})
	}
	for i, r := range [scored]resources.Resource{resources.CPUResource, resources.MemoryResource} {
		if value, ok := slackBalance(s.Slack, r); ok {
			out = append(out, namedScore{Name: [scored]string{slackCPU, slackMemory}[i], Value: value})
		}
	}
	return out
}

// fraction returns a score from -100 if the part is 0 to 100 if the part equals the total, and -100
// if the total is 0.
func fraction(part, total float64) int32 {
	if !(total > 0) {
		return -100
	}
	return truncate((200*part - 100*total) / total)
}

// doublings returns -100 for an amount of 0, and ten more for each doubling of 1 plus the amount: 100
// from an amount of about one million.
func doublings(amount float64) int32 {
	return truncate(10*math.Log2(1+max(amount, 0)) - 100)
}

// limitRoom returns the balance of allocatable amounts and limits, -100 if nothing is allocatable.
func limitRoom(s nodeSums) int32 {
	if !(s.Allocatable > 0) {
		return -100
	}
	return truncate(balance(s.Allocatable, s.Limits))
}

// slackBalance returns the mean of the pools' balances, weighted by their targets. It returns false if all
// targets are 0.
func slackBalance(pools []slackAmounts, r resources.Resource) (value int32, ok bool) {
	var sum, weights float64
	for _, pool := range pools {
		if target := float64(pool.Target.Get(r)); target > 0 {
			sum += target * balance(float64(pool.Available.Get(r)), target)
			weights += target
		}
	}
	if weights == 0 {
		return 0, false
	}
	return truncate(sum / weights), true
}

// balance returns 100 if nothing of an amount is used, 0 if all is used, -50 if twice the amount is
// used, and at least -100. One of the two must be positive. Unlike 100 x (available - used) / max,
// it rounds in the same direction for both signs.
func balance(available, used float64) float64 {
	if used <= available {
		return 100 - 100*used/available
	}
	return 100*available/used - 100
}

// truncate truncates a score toward zero and limits it to [-100, 100].
func truncate(score float64) int32 { return int32(min(max(score, -100), 100)) }
