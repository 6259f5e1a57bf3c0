// Package fleet turns the objects of Open Cluster Management into what the
// placement decision reckons with, and decisions back into objects. It keeps what
// a hub knows, told one change at a time, and tells which placements a change can
// matter to. It asks nobody and writes nothing: the controller and the command
// line do.
package fleet

import (
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
)

// clusterOf returns a managed cluster as decisions see it.
func clusterOf(c *clusterv1.ManagedCluster) *placement.Cluster {
	out := &placement.Cluster{
		Name: c.Name, Labels: c.Labels,
		Allocatable: amountsOf(c.Status.Allocatable), Capacity: amountsOf(c.Status.Capacity),
	}
	if len(c.Status.ClusterClaims) > 0 {
		out.Claims = make(map[string]string, len(c.Status.ClusterClaims))
		for _, claim := range c.Status.ClusterClaims {
			out.Claims[claim.Name] = claim.Value
		}
	}
	for _, taint := range c.Spec.Taints {
		t := placement.Taint{Key: taint.Key, Value: taint.Value, Effect: effectOf(string(taint.Effect))}
		if !taint.TimeAdded.IsZero() {
			t.Added = taint.TimeAdded.Unix()
		}
		out.Taints = append(out.Taints, t)
	}
	return out
}

// effectOf reads the effect of a taint or toleration.
func effectOf(effect string) placement.Effect {
	switch clusterv1.TaintEffect(effect) {
	case clusterv1.TaintEffectNoSelect:
		return placement.NoSelect
	case clusterv1.TaintEffectPreferNoSelect:
		return placement.PreferNoSelect
	case clusterv1.TaintEffectNoSelectIfNew:
		return placement.NoSelectIfNew
	}
	return placement.AnyEffect
}

// amountsOf returns CPU in millicores and memory in bytes. What is not reported,
// or is negative, is missing; what is more than there are numbers for is the most
// there is.
func amountsOf(list clusterv1.ResourceList) placement.Amounts {
	read := func(name clusterv1.ResourceName, most int64, amount func(*resource.Quantity) int64) int64 {
		quantity, ok := list[name]
		switch {
		case !ok || quantity.Sign() < 0:
			return placement.Missing
		case quantity.CmpInt64(most) > 0: // a conversion that overflows wraps, or is 0
			return math.MaxInt64
		}
		return amount(&quantity)
	}
	var out placement.Amounts
	out[placement.CPU] = read(clusterv1.ResourceCPU, math.MaxInt64/1000, (*resource.Quantity).MilliValue)
	out[placement.Memory] = read(clusterv1.ResourceMemory, math.MaxInt64, (*resource.Quantity).Value)
	return out
}

// Aspect is a part of what a cluster is that decisions look at.
type Aspect uint16

const (
	// Labels and claims: predicates, groups, spreading, sets.
	Labels Aspect = 1 << iota
	// Taints.
	Taints
	// AllocatableCPU and the others are amounts.
	AllocatableCPU
	AllocatableMemory
	CapacityCPU
	CapacityMemory
	// Scores are those of add-ons.
	Scores
	// Others is anything else of the object, which expressions can look at.
	Others
	// Existence: the cluster has come or gone.
	Existence
)

// differ returns in what two versions of a cluster differ, as decisions see it.
func differ(a, b *placement.Cluster) (aspects Aspect) {
	if !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Claims, b.Claims) {
		aspects |= Labels
	}
	if !slices.Equal(a.Taints, b.Taints) {
		aspects |= Taints
	}
	for aspect, pair := range map[Aspect][2]int64{
		AllocatableCPU:    {a.Allocatable[placement.CPU], b.Allocatable[placement.CPU]},
		AllocatableMemory: {a.Allocatable[placement.Memory], b.Allocatable[placement.Memory]},
		CapacityCPU:       {a.Capacity[placement.CPU], b.Capacity[placement.CPU]},
		CapacityMemory:    {a.Capacity[placement.Memory], b.Capacity[placement.Memory]},
	} {
		if pair[0] != pair[1] {
			aspects |= aspect
		}
	}
	return aspects
}
