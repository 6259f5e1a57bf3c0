package fleet

import (
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// kindAddOn is the kind of prioritizers that read an AddOnPlacementScore. A cluster has no data if its score is missing, expired or outside
// [-100, 100].
const kindAddOn = v1beta1.Prioritizer(v1beta1.AddOn)

// kinds describes every kind of prioritizer. Each scores a cluster with an integer in [-100, 100], see docs/placement.md.
var kinds = map[v1beta1.Prioritizer]struct {
	// reads are the amounts and scores of a cluster that the prioritizer reads.
	reads fieldMask
	score func(*Prioritizer, *scoring)
}{
	v1beta1.Balance:                   {0, scoreBalance},
	v1beta1.Steady:                    {0, scoreSteady},
	v1beta1.ResourceRatioCPU:          {amountFields, scoreRatio(resources.CPU)},
	v1beta1.ResourceRatioMemory:       {amountFields, scoreRatio(resources.Memory)},
	v1beta1.ResourceAllocatableCPU:    {amountFields, scoreAllocatable(resources.CPU)},
	v1beta1.ResourceAllocatableMemory: {amountFields, scoreAllocatable(resources.Memory)},
	kindAddOn:                         {scoreFields, scoreAddOn},
	v1beta1.FitReplicas:               {0, scoreFitReplicas},
	v1beta1.FitWait:                   {0, scoreFitWait},
	v1beta1.FitCost:                   {0, scoreFitCost},
}

// Prioritizer scores clusters and has a weight in their ranking.
type Prioritizer struct {
	Kind v1beta1.Prioritizer
	// Weight is the factor of the score. A negative weight prefers low scores.
	Weight int32
	// Coordinate is the score of an add-on, the zero value for built-in kinds.
	Coordinate v1beta1.AddOnScore
}

// Name returns the name of the kind, and AddOn/RESOURCE/SCORE for the score of an add-on.
func (p *Prioritizer) Name() string {
	if p.Kind == kindAddOn {
		return string(kindAddOn) + "/" + p.Coordinate.ResourceName + "/" + p.Coordinate.ScoreName
	}
	return string(p.Kind)
}

// worstScore returns the score of a cluster without data: the lowest score, or the
// highest if the weight is negative.
func (p *Prioritizer) worstScore() int64 {
	if p.Weight < 0 {
		return maxScore
	}
	return -maxScore
}

// Resolve returns the prioritizers of a policy: if additive, Balance and Steady with weight 1 unless they are configured; then the
// configured prioritizers in their order, except weight 0.
func Resolve(additive bool, configured []Prioritizer) (enabled []Prioritizer) {
	isConfigured := map[v1beta1.Prioritizer]bool{}
	for i := range configured {
		isConfigured[configured[i].Kind] = true
	}
	for _, kind := range []v1beta1.Prioritizer{v1beta1.Balance, v1beta1.Steady} {
		if additive && !isConfigured[kind] {
			enabled = append(enabled, Prioritizer{Kind: kind, Weight: 1})
		}
	}
	for i := range configured {
		if configured[i].Weight != 0 {
			enabled = append(enabled, configured[i])
		}
	}
	return enabled
}
