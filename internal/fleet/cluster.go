// Package fleet keeps the state of a hub of Open Cluster Management and decides its
// placements. It converts API objects to the input of package algo/placement, and
// decisions to PlacementDecisions. After every change of an object it returns the
// placements whose decisions the change can affect. It does no I/O: callers read and
// write the objects.
package fleet

import (
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// clusterOf converts a managed cluster.
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

// effectOf converts the effect of a taint or toleration.
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

// bounded returns the cluster without resources whose quantities are not bounded: the
// agent of a cluster may write any. It returns the cluster itself if all of them are.
func bounded(c *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	good := func(list clusterv1.ResourceList) bool {
		for _, quantity := range list {
			if !facts.IsBounded(quantity) {
				return false
			}
		}
		return true
	}
	if good(c.Status.Allocatable) && good(c.Status.Capacity) {
		return c
	}
	out := c.DeepCopy()
	for _, list := range []clusterv1.ResourceList{out.Status.Allocatable, out.Status.Capacity} {
		maps.DeleteFunc(list, func(_ clusterv1.ResourceName, quantity resource.Quantity) bool { return !facts.IsBounded(quantity) })
	}
	return out
}

// amountsOf converts CPU to millicores and memory to bytes. Negative quantities are
// missing, too large ones saturate.
func amountsOf(list clusterv1.ResourceList) placement.Amounts {
	read := func(name clusterv1.ResourceName, limit int64, amount func(*resource.Quantity) int64) int64 {
		quantity, ok := list[name]
		switch {
		case !ok || quantity.Sign() < 0:
			return placement.Missing
		case quantity.CmpInt64(limit) > 0: // the conversion would overflow
			return math.MaxInt64
		}
		return amount(&quantity)
	}
	var out placement.Amounts
	out[placement.CPU] = read(clusterv1.ResourceCPU, math.MaxInt64/1000, (*resource.Quantity).MilliValue)
	out[placement.Memory] = read(clusterv1.ResourceMemory, math.MaxInt64, (*resource.Quantity).Value)
	return out
}

// fieldMask is a set of fields of a cluster that decisions can depend on.
type fieldMask uint16

const (
	// labelFields are the labels and claims: predicates, groups, spreading and sets use them.
	labelFields fieldMask = 1 << iota
	taintFields
	// allocatableFields is the bit of the first resource of Amounts, and capacityFields, too.
	allocatableFields
	capacityFields = allocatableFields << len(placement.Amounts{})
	// scoreFields are the scores of add-ons.
	scoreFields = capacityFields << len(placement.Amounts{})
	// otherFields are all other fields of the object, which only expressions can use.
	otherFields = scoreFields << 1
	// existence is the creation or deletion of the cluster.
	existence = otherFields << 1
	// amountFields are all amounts.
	amountFields = scoreFields - allocatableFields
)

// changedFields returns the fields in which two versions of a cluster differ.
func changedFields(a, b *placement.Cluster) (fields fieldMask) {
	if !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Claims, b.Claims) {
		fields |= labelFields
	}
	if !slices.Equal(a.Taints, b.Taints) {
		fields |= taintFields
	}
	for resource := range a.Allocatable {
		if a.Allocatable[resource] != b.Allocatable[resource] {
			fields |= allocatableFields << resource
		}
		if a.Capacity[resource] != b.Capacity[resource] {
			fields |= capacityFields << resource
		}
	}
	return fields
}
