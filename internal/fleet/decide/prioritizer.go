package decide

import (
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// KindAddOn is the kind of prioritizers that read an AddOnPlacementScore. A cluster has no data if its score is missing, expired or outside
// [-100, 100].
const KindAddOn = v1beta1.Prioritizer(v1beta1.AddOn)

// kinds describes every kind of prioritizer. Each scores a cluster with an integer in [-100, 100], see docs/placement.md.
var kinds = map[v1beta1.Prioritizer]struct {
	readsAmounts bool
	score        func(*Prioritizer, *scoring)
}{
	v1beta1.Balance:                   {false, scoreBalance},
	v1beta1.Steady:                    {false, scoreSteady},
	v1beta1.ResourceRatioCPU:          {true, scoreRatio(resources.CPU)},
	v1beta1.ResourceRatioMemory:       {true, scoreRatio(resources.Memory)},
	v1beta1.ResourceAllocatableCPU:    {true, scoreAllocatable(resources.CPU)},
	v1beta1.ResourceAllocatableMemory: {true, scoreAllocatable(resources.Memory)},
	KindAddOn:                         {false, scoreAddOn},
	v1beta1.FitReplicas:               {false, scoreFitReplicas},
	v1beta1.FitWait:                   {false, scoreFitWait},
	v1beta1.FitCost:                   {false, scoreFitCost},
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
	if p.Kind == KindAddOn {
		return string(KindAddOn) + "/" + p.Coordinate.ResourceName + "/" + p.Coordinate.ScoreName
	}
	return string(p.Kind)
}

// ReadsAmounts reports whether the prioritizer reads the amounts of clusters.
func (p *Prioritizer) ReadsAmounts() bool { return kinds[p.Kind].readsAmounts }

// worstScore returns the score of a cluster without data: the lowest score, or the
// highest if the weight is negative.
func (p *Prioritizer) worstScore() int64 {
	if p.Weight < 0 {
		return maxScore
	}
	return -maxScore
}

// EnabledPrioritizers returns the prioritizers of a policy: if additive, Balance and Steady with weight 1 unless they are configured; then
// the configured prioritizers in their order, except weight 0.
func EnabledPrioritizers(additive bool, configured []Prioritizer) (enabled []Prioritizer) {
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
