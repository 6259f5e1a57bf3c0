// Package scenarios defines the scenarios of the experiment: clusters, usage and limits. One half of them is for tuning
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

// The families. Each scenario is in one of the first two families, and in any number of the remaining families.
const (
	BestEffort   Family = "with best-effort pods"
	NoBestEffort Family = "without best-effort pods"
	Differ       Family = "workloads differ in their use of requests"
	Churn        Family = "churn"
	NoChurn      Family = "no churn"
	GPU          Family = "GPUs and mixed shapes"
	Openb        Family = "openb"
)

// The families of real usage. Each scenario is in one of the first two families, and has one data set and one kind.
const (
	RealBestEffort   Family = "real usage, with best-effort pods"
	RealNoBestEffort Family = "real usage, without best-effort pods"
	Google           Family = "Google"
	PlanetLab        Family = "PlanetLab"
	Bitbrains        Family = "Bitbrains"
	Stay             Family = "pods stay"
	ChurnOfHours     Family = "pods of three hours"
	Rollout          Family = "rolling update"
)

// Families are the families of generated usage in the order of the documentation.
var Families = []Family{BestEffort, NoBestEffort, Differ, Churn, NoChurn, GPU, Openb}

// RealFamilies are the families of real usage.
var RealFamilies = []Family{RealBestEffort, RealNoBestEffort, Google, PlanetLab, Bitbrains, Stay, ChurnOfHours, Rollout}

// realFamily has the family of each data set and each kind of pods.
var realFamily = map[string]Family{
	usage.Google: Google, usage.PlanetLab: PlanetLab, usage.Bitbrains: Bitbrains,
	string(cluster.Stay): Stay, string(cluster.Churn): ChurnOfHours, string(cluster.Rollout): Rollout,
}

// Scenario is a cluster with usage and limits.
type Scenario struct {
	Name string
	Part Part
	// Generate is the value of --generate. If it is empty, the scenario is on the openb trace.
	Generate string
	// OpenbNodes and OpenbPods select every nth node, and every nth block of pods, of the trace. OpenbOptions follow the
	// files.
	OpenbNodes, OpenbPods int
	OpenbOptions          string
	// Real is a cluster that is drawn on a data set of real usage, nil for other scenarios.
	Real          *cluster.Options
	Usage, Limits string
	Families      []Family
	// CPUSeconds is the approximate CPU time of a run.
	CPUSeconds float64
}

// Is reports whether the scenario is in a family.
func (s *Scenario) Is(family Family) bool { return slices.Contains(s.Families, family) }

// base is a cluster of scenarios.
type base struct {
	name string
	// mean is the mean usage of its pods. It is so high that the default profile has overload, without which profiles
	// cannot be compared: higher without best-effort pods, which cause overload at any mean.
	mean float64
	Scenario
}

const (
	static = "nodes=60,pods=900,fill=0.95,over=3600,guaranteed=0.2"
	churn  = "nodes=60,pods=900,fill=0.9,churn=28800,life=3600,batch=0.3,guaranteed=0.2"
	mixed  = "nodes=60,shapes=16x64+32x128+64x256x8,zones=3,pods=900,replicas=5,fill=0.85,cpu-cv=1.2,memory-cv=0.8,gpu=0.05," +
		"churn=28800,life=3600,batch=0.3"
)

// clusters alternate in their shares of best-effort pods, since the usage that is published alternates, too.
var clusters = []base{
	{"static-be0", 0.85, Scenario{Generate: static, CPUSeconds: 0.7, Families: []Family{NoBestEffort, NoChurn}}},
	{"static-be10", 0.7, Scenario{Generate: static + ",best-effort=0.1", CPUSeconds: 0.7, Families: []Family{BestEffort, NoChurn}}},
	{"static-be30", 0.7, Scenario{Generate: static + ",best-effort=0.3", CPUSeconds: 0.7, Families: []Family{BestEffort, NoChurn}}},
	{"churn-be0", 0.85, Scenario{Generate: churn, CPUSeconds: 4.5, Families: []Family{NoBestEffort, Churn}}},
	{"churn-be10", 0.7, Scenario{Generate: churn + ",best-effort=0.1", CPUSeconds: 4.5, Families: []Family{BestEffort, Churn}}},
	{"churn-be30", 0.7, Scenario{Generate: churn + ",best-effort=0.3", CPUSeconds: 4.5, Families: []Family{BestEffort, Churn}}},
	{"mixed-be0", 0.85, Scenario{Generate: mixed, CPUSeconds: 4.5, Families: []Family{NoBestEffort, Churn, GPU}}},
	{"mixed-be10", 0.7, Scenario{Generate: mixed + ",best-effort=0.1", CPUSeconds: 4.5, Families: []Family{BestEffort, Churn, GPU}}},
	{"openb-churn", 0.85, Scenario{
		OpenbNodes: 16, OpenbPods: 1, OpenbOptions: ",fill=0.9,over=28800", CPUSeconds: 3, Families: []Family{NoBestEffort, Churn, Openb},
	}},
	{"openb-packed", 0.85, Scenario{OpenbNodes: 8, OpenbPods: 8, CPUSeconds: 1.5, Families: []Family{NoBestEffort, NoChurn, Openb}}},
}

// usages are the shapes of usage with the mean of the cluster.
var usages = []struct{ name, text string }{
	{"beta", "beta:mean=%[1]v"},
	{"bursts", "bursts:mean=%[1]v,max=6"},
	// A day of eight hours.
	{"diurnal", "diurnal:mean=%[1]v,period=480,phases=0,workload-phases=1"},
	{"differ", "cpu=beta:mean=%[1]v,cv=0.7,workload=0.6,between=0.1;memory=beta:mean=%[1]v,cv=0.5,workload=0.7,between=0.2"},
}

// All returns all scenarios on generated usage. Each cluster has all usages, two in each part: one with limits of twice the requests, one
// with limits of four times the requests.
func All() []Scenario {
	all := make([]Scenario, 0, len(clusters)*len(usages))
	for i, c := range clusters {
		for j, u := range usages {
			s := c.Scenario
			s.Name, s.Usage = c.name+"-"+u.name, fmt.Sprintf(u.text, c.mean)
			s.Part, s.Limits = Published, "ratio=2"
			if (i+j)%2 == 1 {
				s.Part = Tuning
			}
			if (i/2+j/2)%2 == 1 {
				s.Limits = "ratio=4"
			}
			s.Families = slices.Clone(s.Families)
			if u.name == "differ" {
				s.Families = append(s.Families, Differ)
			}
			all = append(all, s)
		}
	}
	return all
}

// Recorded is in place of the limits and the usage of scenarios on real usage.
const Recorded = "recorded"

// Real returns the scenarios on real usage, one of each part for each data set, kind and share of pods without requests.
func Real() []Scenario {
	var all []Scenario
	for _, part := range []Part{Tuning, Published} {
		for _, set := range usage.Sets {
			for _, kind := range cluster.Kinds {
				for _, percent := range []int{0, 10, 30} {
					o := &cluster.Options{Set: set, Kind: kind, BestEffort: float64(percent) / 100}
					s := Scenario{
						Name: fmt.Sprintf(
							"%s-%s-be%d",
							set,
							kind,
							percent,
						),
						Part:       part,
						Real:       o,
						Limits:     Recorded,
						Usage:      Recorded,
						CPUSeconds: 4,
						Families:   []Family{RealNoBestEffort, realFamily[set], realFamily[string(kind)]},
					}
					if kind == cluster.Churn {
						s.CPUSeconds = 5
					}
					if part == Tuning {
						s.Name = "tuning-" + s.Name
					}
					if percent > 0 {
						s.Families[0] = RealBestEffort
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// Ablations are the profile predicted with a part of its model left out.
var Ablations = []string{"without-fit", "without-history", "without-correlation", "without-blending"}

// Baselines are the profiles with the formulas of other schedulers.
var Baselines = []string{"target-load-packing", "load-variation", "original-low-risk", "koordinator", "crane"}

// Oracle is the profile that knows the usage of pods over their lives. It needs real usage.
const Oracle = "oracle"
