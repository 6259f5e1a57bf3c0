package fleet

import (
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Kind is a kind of prioritizer. Every kind scores a cluster with an integer in
// [-100, 100].
type Kind uint8

// The kinds. To add one, add a row to kinds, too.
const (
	// Balance is 2 x trunc(100 x (0.5 - n/max)), where n is the number of decisions
	// of other placements for the cluster, and max the maximum of all clusters in the
	// fleet; 100 if max is 0.
	Balance Kind = iota
	// Steady is 100 if the placement has selected the cluster already, else 0.
	Steady
	// ResourceRatioCPU is 200 x (allocatable/capacity - 0.5), truncated toward zero.
	// It has no data if either is missing, or if the capacity is 0.
	ResourceRatioCPU
	// ResourceRatioMemory is the same for memory.
	ResourceRatioMemory
	// ResourceAllocatableCPU is 200 x ((allocatable - min)/(max - min) - 0.5),
	// truncated toward zero, with min and max over the feasible clusters; 100 if they
	// are equal. It has no data if allocatable is missing.
	ResourceAllocatableCPU
	// ResourceAllocatableMemory is the same for memory.
	ResourceAllocatableMemory
	// AddOn is the score in an AddOnPlacementScore. It has no data if the score is
	// missing, expired or outside [-100, 100].
	AddOn
	// FitReplicas is 200 x (f/2r - 0.5), truncated toward zero, where r is the number of replicas of the workload and f the number that
	// fit with slack, at most 2r; 100 if r is 0. It is 100 for a cluster that is selected already, as the kinds that follow: its room is
	// in use by the workload. It has no data if the placement names no workload or the cluster has no valid ClusterCapacity.
	FitReplicas
	// FitWait is 100 - 200 x wait/1200 s, truncated toward zero, at least -100, where wait is the time until all replicas can be
	// scheduled. It has no data if they never fit or the time is unknown.
	FitWait
	// FitCost is 200 x ((max - cost)/(max - min) - 0.5), truncated toward zero, where cost is the price of the nodes to be added, and
	// min and max are over the feasible clusters; 100 if they are equal. It has no data if the replicas never fit or the price is unknown.
	FitCost
)

// kinds describes every Kind.
var kinds = [...]struct {
	// name is the name in the API.
	name string
	// defaultWeight is the weight in mode Additive, 0 if the kind must be configured.
	defaultWeight int32
	// reads are the amounts and scores of a cluster that the prioritizer reads.
	reads fieldMask
	score func(*Prioritizer, *scoring)
}{
	Balance:          {"Balance", 1, 0, scoreBalance},
	Steady:           {"Steady", 1, 0, scoreSteady},
	ResourceRatioCPU: {"ResourceRatioCPU", 0, (allocatableFields | capacityFields) << resources.CPU, scoreRatio(resources.CPU)},
	ResourceRatioMemory: {
		"ResourceRatioMemory", 0, (allocatableFields | capacityFields) << resources.Memory, scoreRatio(resources.Memory),
	},
	ResourceAllocatableCPU: {"ResourceAllocatableCPU", 0, allocatableFields << resources.CPU, scoreAllocatable(resources.CPU)},
	ResourceAllocatableMemory: {
		"ResourceAllocatableMemory", 0, allocatableFields << resources.Memory, scoreAllocatable(resources.Memory),
	},
	AddOn:       {"AddOn", 0, scoreFields, scoreAddOn},
	FitReplicas: {"FitReplicas", 0, 0, scoreFitReplicas},
	FitWait:     {"FitWait", 0, 0, scoreFitWait},
	FitCost:     {"FitCost", 0, 0, scoreFitCost},
}

// String returns the name in the API.
func (k Kind) String() string { return kinds[k].name }

// KindOf returns the kind with a name in the API.
func KindOf(name string) (Kind, bool) {
	for k := range kinds {
		if kinds[k].name == name {
			return Kind(k), true
		}
	}
	return 0, false
}

// Prioritizer scores clusters and has a weight in their ranking.
type Prioritizer struct {
	Kind Kind
	// Weight is the factor of the score. A negative weight prefers low scores.
	Weight int32
	// Coordinate and Scores are set for kind AddOn. Scores are in ascending order of
	// clusters, with at most one for each.
	Coordinate v1beta1.AddOnScore
	Scores     []AddOnScore
}

// Name returns the name of the kind, and AddOn/RESOURCE/SCORE for kind AddOn.
func (p *Prioritizer) Name() string {
	if p.Kind == AddOn {
		return p.Kind.String() + "/" + p.Coordinate.ResourceName + "/" + p.Coordinate.ScoreName
	}
	return p.Kind.String()
}

// AddOnScore is the score of one cluster in an AddOnPlacementScore.
type AddOnScore struct {
	// Cluster is the index in the fleet.
	Cluster int32
	// Value is the score. A value outside [-100, 100] is treated as missing.
	Value int32
	// Until is the last Unix second in which the score is valid, Forever if it does
	// not expire.
	Until int64
}

// worstScore returns the score of a cluster without data: the lowest score, or the
// highest if the weight is negative.
func (p *Prioritizer) worstScore() int64 {
	if p.Weight < 0 {
		return maxScore
	}
	return -maxScore
}

// Resolve returns the prioritizers of a policy: if additive, the prioritizers with a
// default weight that are not configured; then the configured prioritizers in their
// order, except weight 0. The scores of kind AddOn are not filled in.
func Resolve(additive bool, configured []Prioritizer) (enabled []Prioritizer) {
	isConfigured := map[Kind]bool{}
	for i := range configured {
		isConfigured[configured[i].Kind] = true
	}
	for k := range kinds {
		if weight := kinds[k].defaultWeight; additive && weight != 0 && !isConfigured[Kind(k)] {
			enabled = append(enabled, Prioritizer{Kind: Kind(k), Weight: weight})
		}
	}
	for i := range configured {
		if configured[i].Weight != 0 {
			enabled = append(enabled, configured[i])
		}
	}
	return enabled
}
