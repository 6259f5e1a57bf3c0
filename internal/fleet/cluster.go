package fleet

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// clusterOf converts a managed cluster.
func clusterOf(c *clusterv1.ManagedCluster) *Cluster {
	out := &Cluster{
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
		t := Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}
		if !taint.TimeAdded.IsZero() {
			t.Added = taint.TimeAdded.Unix()
		}
		out.Taints = append(out.Taints, t)
	}
	return out
}

// The highest credible amounts of a cluster, many times the amounts of the largest clusters:
// an agent that reports more is wrong, and would change the scores of all other clusters.
const (
	maxCores  = 100_000_000
	maxMemory = 1 << 62 // 4 EiB
)

// inputs are the resources that amountsOf reads, with their highest amounts.
var inputs = [...]struct {
	name   clusterv1.ResourceName
	limit  int64
	amount func(*resource.Quantity) int64
}{
	resources.CPU:    {clusterv1.ResourceCPU, maxCores, (*resource.Quantity).MilliValue},
	resources.Memory: {clusterv1.ResourceMemory, maxMemory, (*resource.Quantity).Value},
}

// amountsOf converts CPU to millicores and memory to bytes. Amounts that are not
// credible are missing.
func amountsOf(list clusterv1.ResourceList) (out resources.Amounts) {
	for i := range inputs {
		out[i] = Missing
		if quantity, ok := list[inputs[i].name]; ok && isCredible(quantity, inputs[i].limit) {
			out[i] = inputs[i].amount(&quantity)
		}
	}
	return out
}

// isCredible reports whether a quantity is from 0 to a limit.
func isCredible(quantity resource.Quantity, limit int64) bool {
	return quantity.Sign() >= 0 && quantity.CmpInt64(limit) <= 0
}

// ignoredAmounts returns the fields of a cluster with amounts that are not credible.
func ignoredAmounts(c *clusterv1.ManagedCluster) (fields []string) {
	for _, in := range []struct {
		field string
		list  clusterv1.ResourceList
	}{{"allocatable", c.Status.Allocatable}, {"capacity", c.Status.Capacity}} {
		for i := range inputs {
			if quantity, ok := in.list[inputs[i].name]; ok && !isCredible(quantity, inputs[i].limit) {
				fields = append(fields, fmt.Sprintf("status.%s.%s", in.field, inputs[i].name))
			}
		}
	}
	return fields
}

// fieldMask is a set of fields of a cluster that decisions can depend on.
type fieldMask uint16

const (
	// labelFields are the labels and claims: predicates, groups, spreading and sets use them.
	labelFields fieldMask = 1 << iota
	taintFields
	// allocatableFields is the bit of the first resource of Amounts, and capacityFields, too.
	allocatableFields
	capacityFields = allocatableFields << numAmounts
	// scoreFields are the scores of add-ons.
	scoreFields = capacityFields << numAmounts
	// otherFields are all other fields of the object, which only expressions can use.
	otherFields = scoreFields << 1
	// existence is the creation or deletion of the cluster.
	existence = otherFields << 1
	// amountFields are all amounts.
	amountFields = scoreFields - allocatableFields
)

// changedFields returns the fields in which two versions of a cluster differ.
func changedFields(a, b *Cluster) (fields fieldMask) {
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
