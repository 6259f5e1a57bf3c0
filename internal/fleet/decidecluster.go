package fleet

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// numAmounts is the number of resources that prioritizers read, the first of resources.Amounts: CPU and memory.
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
	Taints         []Taint
	// Allocatable is the part of Capacity that pods may use. It may exceed Capacity
	// if the cluster reports wrong amounts.
	Allocatable, Capacity resources.Amounts
}

// Taint prevents that placements select a cluster, unless they tolerate it.
type Taint struct {
	Key, Value string
	// Effect is an effect of the API. An unknown effect excludes the cluster as NoSelect does.
	Effect clusterv1.TaintEffect
	// Added is the Unix time in seconds at which the taint was added, 0 if unknown.
	// Tolerations with a limit end relative to this time.
	Added int64
}
