package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// The defaults of a placement equal the defaults in the CRD.
const (
	DefaultWeight                   = 1
	DefaultMaxSkew                  = 1
	DefaultClustersPerDecisionGroup = "100%"
	DefaultScoreRateLimit           = "1m"
)

// Default sets the defaults, as the API server does. It adds no prioritizers.
func (s *PlacementSpec) Default() {
	setDefault(&s.PrioritizerPolicy.Mode, Additive)
	for i := range s.PrioritizerPolicy.Configurations {
		c := &s.PrioritizerPolicy.Configurations[i]
		if c.Weight == nil {
			c.Weight = new(int32(DefaultWeight))
		}
		if c.ScoreCoordinate != nil {
			setDefault(&c.ScoreCoordinate.Type, BuiltIn)
		}
	}
	for i := range s.SpreadPolicy.SpreadConstraints {
		c := &s.SpreadPolicy.SpreadConstraints[i]
		setDefault(&c.MaxSkew, DefaultMaxSkew)
		setDefault(&c.WhenUnsatisfiable, clusterv1beta1.ScheduleAnyway)
	}
	for i := range s.Tolerations {
		setDefault(&s.Tolerations[i].Operator, clusterv1beta1.TolerationOpEqual)
	}
	setDefault(&s.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup, intstr.FromString(DefaultClustersPerDecisionGroup))
	setDefault(&s.SortBy, clusterv1beta1.PlacementSortByClusterName)
	setDefault(&s.ScoreRateLimit, DefaultScoreRateLimit)
}

// setDefault sets a field that has the zero value.
func setDefault[T comparable](field *T, value T) {
	var none T
	if *field == none {
		*field = value
	}
}

// Coordinate returns the coordinate of the score, which is given by name or by scoreCoordinate.
func (c *PrioritizerConfig) Coordinate() ScoreCoordinate {
	if c.ScoreCoordinate == nil {
		return ScoreCoordinate{Type: BuiltIn, BuiltIn: c.Name}
	}
	out := *c.ScoreCoordinate
	setDefault(&out.Type, BuiltIn)
	return out
}
