// Package scenarios defines the scenarios of the experiment: clusters on the usage of real machines. One half of them is for tuning
// profiles and arguments, and the other half is published, so that no profile was tuned with the published scenarios.
package scenarios

import (
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/lab/experiment/cluster"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

// Part is a half of the scenarios.
type Part string

const (
	// Tuning scenarios are for choosing arguments and weights.
	Tuning Part = "tuning"
	// Published scenarios have their results in lab/results.
	Published Part = "published"
)

// Family is a set of scenarios whose results are summed.
type Family string

// The families. Each scenario is in one of the first two families, and has one data set and one kind.
const (
	BestEffort   Family = "with best-effort pods"
	NoBestEffort Family = "without best-effort pods"
	Google       Family = "Google"
	PlanetLab    Family = "PlanetLab"
	Bitbrains    Family = "Bitbrains"
	Stay         Family = "pods stay"
	ChurnOfHours Family = "pods of three hours"
	Rollout      Family = "rolling update"
)

// Families are the families in the order of the documentation.
var Families = []Family{BestEffort, NoBestEffort, Google, PlanetLab, Bitbrains, Stay, ChurnOfHours, Rollout}

// familyOf has the family of each data set and each kind of pods.
var familyOf = map[string]Family{
	usage.Google: Google, usage.PlanetLab: PlanetLab, usage.Bitbrains: Bitbrains,
	string(cluster.Stay): Stay, string(cluster.Churn): ChurnOfHours, string(cluster.Rollout): Rollout,
}

// Scenario is a cluster that is drawn on a data set.
type Scenario struct {
	Name     string
	Part     Part
	Cluster  cluster.Options
	Families []Family
	// CPUSeconds is the approximate CPU time of a run.
	CPUSeconds float64
}

// Is reports whether the scenario is in a family.
func (s *Scenario) Is(family Family) bool { return slices.Contains(s.Families, family) }

// All returns all scenarios, one of each part for each data set, kind and share of pods without requests.
func All() []Scenario {
	var all []Scenario
	for _, part := range []Part{Tuning, Published} {
		for _, set := range usage.Sets {
			for _, kind := range cluster.Kinds {
				for _, percent := range []int{0, 10, 30} {
					s := Scenario{
						Name: fmt.Sprintf("%s-%s-be%d", set, kind, percent), Part: part, CPUSeconds: 4,
						Cluster:  cluster.Options{Set: set, Kind: kind, BestEffort: float64(percent) / 100},
						Families: []Family{NoBestEffort, familyOf[set], familyOf[string(kind)]},
					}
					if kind == cluster.Churn {
						s.CPUSeconds = 5
					}
					if part == Tuning {
						s.Name = "tuning-" + s.Name
					}
					if percent > 0 {
						s.Families[0] = BestEffort
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// Baselines are the profiles with the formulas of other schedulers.
var Baselines = []string{"target-load-packing", "load-variation", "original-low-risk", "koordinator", "crane"}

// Oracle is the profile that knows the usage of pods over their lives.
const Oracle = "oracle"
