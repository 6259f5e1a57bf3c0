package fleet

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// clusterOf converts a managed cluster.
func clusterOf(c *clusterv1.ManagedCluster) *decide.Cluster {
	out := &decide.Cluster{Name: c.Name, Labels: c.Labels, Taints: c.Spec.Taints}
	out.Allocatable = amountsOf(out, "allocatable", c.Status.Allocatable)
	out.Capacity = amountsOf(out, "capacity", c.Status.Capacity)
	if len(c.Status.ClusterClaims) > 0 {
		out.Claims = make(map[string]string, len(c.Status.ClusterClaims))
		for _, claim := range c.Status.ClusterClaims {
			out.Claims[claim.Name] = claim.Value
		}
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

// amountsOf converts the CPU in a field of the status to millicores and the memory to bytes. Amounts that are not credible
// are missing, and it adds them to Ignored of the cluster.
func amountsOf(c *decide.Cluster, field string, list clusterv1.ResourceList) (out decide.Amounts) {
	for i, in := range inputs {
		out[i] = decide.Missing
		quantity, ok := list[in.name]
		switch {
		case !ok:
		case quantity.Sign() >= 0 && quantity.CmpInt64(in.limit) <= 0:
			out[i] = in.amount(&quantity)
		default:
			c.Ignored = append(c.Ignored, fmt.Sprintf("status.%s.%s", field, in.name))
		}
	}
	return out
}

// fieldMask is a set of fields of a cluster that decisions can depend on.
type fieldMask uint8

const (
	// labelFields are the labels and claims: predicates, groups, spreading and sets use them.
	labelFields fieldMask = 1 << iota
	taintFields
	// amountFields are the allocatable amounts, the capacity, and the ignored amounts: placements that use amounts warn of them.
	amountFields
	// scoreFields are the scores of add-ons.
	scoreFields
	// capacityFields are the limit and the ClusterCapacity: placements with a workload use them.
	capacityFields
	// otherFields are all other fields of the object, which only expressions can use.
	otherFields
	// existence is the creation or deletion of the cluster.
	existence
)

// changedFields returns the fields in which two versions of a cluster differ.
func changedFields(a, b *decide.Cluster) (fields fieldMask) {
	if !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Claims, b.Claims) {
		fields |= labelFields
	}
	if !slices.Equal(a.Taints, b.Taints) {
		fields |= taintFields
	}
	if a.Allocatable != b.Allocatable || a.Capacity != b.Capacity || !slices.Equal(a.Ignored, b.Ignored) {
		fields |= amountFields
	}
	return fields
}
