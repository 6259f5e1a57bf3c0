package placement

import (
	"fmt"
	"strings"
)

// Kind is what a prioritizer goes by.
type Kind uint8

// Every kind scores a cluster with an integer in [-100, 100].
const (
	// Balance: 2 x trunc(100 x (0.5 - n/max)), where n is how many decisions of
	// other placements the cluster has, and max the most on any cluster of the
	// fleet; 100 if there are none anywhere.
	Balance Kind = iota
	// Steady: 100 if the placement has the cluster already, else 0.
	Steady
	// ResourceRatioCPU: 200 x (allocatable/capacity - 0.5), truncated toward zero.
	// No data without both, or with a capacity of 0.
	ResourceRatioCPU
	// ResourceRatioMemory is that of memory.
	ResourceRatioMemory
	// ResourceAllocatableCPU: 200 x ((allocatable - min)/(max - min) - 0.5),
	// truncated toward zero, min and max being those of the feasible clusters; 100
	// where they are equal. No data without allocatable.
	ResourceAllocatableCPU
	// ResourceAllocatableMemory is that of memory.
	ResourceAllocatableMemory
	// AddOn: the score that someone else reports. No data without a score, with one
	// that has expired, or one outside [-100, 100].
	AddOn

	builtIns = AddOn
)

var kindNames = [...]string{
	"Balance", "Steady", "ResourceRatioCPU", "ResourceRatioMemory",
	"ResourceAllocatableCPU", "ResourceAllocatableMemory", "AddOn",
}

// String returns the name that users give it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// BuiltIn returns the prioritizer that needs no source besides the fleet, by the
// name that users give it.
func BuiltIn(name string) (Kind, bool) {
	for k := range builtIns {
		if kindNames[k] == name {
			return k, true
		}
	}
	return 0, false
}

// allowedBuiltIns lists the names for error messages.
func allowedBuiltIns() string { return strings.Join(kindNames[:builtIns], ", ") }

// Coordinate says which score of which AddOnPlacementScore is meant.
type Coordinate struct {
	ResourceName, ScoreName string
}

// Prioritizer is one voice in the ranking.
type Prioritizer struct {
	Kind Kind
	// Weight that the score is multiplied with, usually in [-10, 10]; negative to
	// prefer low scores.
	Weight int32
	// Coordinate and Scores are those of an AddOn. Scores are ascending by cluster,
	// at most one for each.
	Coordinate Coordinate
	Scores     []AddOnScore
}

// Name returns the kind, and for an AddOn also the coordinate:
// AddOn/RESOURCE/SCORE.
func (p *Prioritizer) Name() string {
	if p.Kind == AddOn {
		return p.Kind.String() + "/" + p.Coordinate.ResourceName + "/" + p.Coordinate.ScoreName
	}
	return p.Kind.String()
}

// AddOnScore is what an AddOnPlacementScore says of one cluster.
type AddOnScore struct {
	// Cluster is the index in the fleet.
	Cluster int32
	// Value is the score; outside [-100, 100] it is an error of the one who
	// reports it and counts as no score, rather than as the nearest.
	Value int32
	// Until is the last Unix second in which it is valid, Forever if it does not
	// expire.
	Until int64
}

// worst is the score of a cluster that a prioritizer has no data of: that which
// is worst for the cluster. With a positive weight it is the lowest. With a
// negative one the lowest would be the best to have, so that saying nothing
// would win every comparison: there it is the highest.
func (p *Prioritizer) worst() int64 {
	if p.Weight < 0 {
		return maxScore
	}
	return -maxScore
}
