package decide

import (
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Missing is the amount of a resource that a cluster does not report. All negative
// amounts have this meaning.
const Missing int64 = -1

// Amounts are amounts by resource: CPU in millicores and memory in bytes.
type Amounts [resources.Memory + 1]int64

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
	// Allocatable is the part of Capacity that pods may use, of CPU and memory. It may exceed Capacity
	// if the cluster reports wrong amounts.
	Allocatable, Capacity Amounts
	// Ignored are the fields of the object with amounts that are not credible.
	Ignored []string
	// Scores are the AddOnPlacementScores of the cluster by name.
	Scores map[string]*AddOnScores
}

// AddOnScores has the values of an AddOnPlacementScore by name, which are valid until a Unix time in seconds.
type AddOnScores struct {
	Values map[string]int32
	Until  int64
}

// Selector matches clusters by labels and claims. A nil part matches all clusters.
type Selector struct {
	Labels, Claims labels.Selector
}

// Matches reports whether the selector matches a cluster.
func (s *Selector) Matches(c *Cluster) bool {
	return (s.Labels == nil || s.Labels.Matches(labels.Set(c.Labels))) && (s.Claims == nil || s.Claims.Matches(labels.Set(c.Claims)))
}

// Predicate is a condition on clusters: a selector and, because expressions are slow, expressions on the clusters that
// the selector matches.
type Predicate struct {
	Selector
	HasExpressions bool
}
