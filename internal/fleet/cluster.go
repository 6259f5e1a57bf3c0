package fleet

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// numAmounts is the number of resources that prioritizers read, by resources.Index: CPU and memory.
const numAmounts = 2

// Missing is the amount of a resource that a cluster does not report. All negative
// amounts have this meaning.
const Missing int64 = -1

// Cluster has the fields of a managed cluster that decisions depend on. It is
// shared by all placements and must not be changed.
type Cluster struct {
	// Name is unique in the fleet.
	Name string
	// Labels are the labels of the object, and Claims the claims in its status by name.
	Labels, Claims map[string]string
	// Taints prevent that placements select the cluster, unless they tolerate them. An unknown effect excludes the cluster as NoSelect
	// does. Tolerations with a limit end relative to the time at which a taint was added; without that time they have ended.
	Taints []clusterv1.Taint
	// Allocatable is the part of Capacity that pods may use. It may exceed Capacity
	// if the cluster reports wrong amounts.
	Allocatable, Capacity [numAmounts]int64
	// Ignored are the fields of the object with amounts that are not credible.
	Ignored []string

	// limit is the limit of the cluster, nil if it has none.
	limit *limit
	// entry is the entry of the cluster in the State, nil outside of it.
	entry *entry
}

// clusterOf converts a managed cluster.
func clusterOf(c *clusterv1.ManagedCluster) *Cluster {
	out := &Cluster{Name: c.Name, Labels: c.Labels, Taints: c.Spec.Taints, limit: limitOf(c)}
	out.Allocatable = out.amountsOf("allocatable", c.Status.Allocatable)
	out.Capacity = out.amountsOf("capacity", c.Status.Capacity)
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
// are missing, and it adds them to Ignored.
func (c *Cluster) amountsOf(field string, list clusterv1.ResourceList) (out [numAmounts]int64) {
	for i, in := range inputs {
		out[i] = Missing
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
func changedFields(a, b *Cluster) (fields fieldMask) {
	if !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Claims, b.Claims) {
		fields |= labelFields
	}
	if !slices.Equal(a.Taints, b.Taints) {
		fields |= taintFields
	}
	if a.Allocatable != b.Allocatable || a.Capacity != b.Capacity || !slices.Equal(a.Ignored, b.Ignored) {
		fields |= amountFields
	}
	if !a.limit.equals(b.limit) {
		fields |= capacityFields
	}
	return fields
}
