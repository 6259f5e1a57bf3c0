package fleet

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// Result is the result of deciding a placement.
type Result struct {
	Generation int64
	// Policy and Fleet are the input of Decision, which has the results of single clusters. Decision is nil if nothing could be
	// decided, and in results of Decide, whose memory the next decision uses.
	Policy   *placementPolicy
	Fleet    []*decide.Cluster
	Decision *decide.Decision
	// KeepDecisions is set if the placement is misconfigured and has selected clusters,
	// or cannot have decisions: existing decisions must not be changed, and Groups has no
	// meaning.
	KeepDecisions bool
	// Pending is set if CEL expressions remain to be evaluated, which EvaluateNext does.
	// Nothing else is set then.
	Pending bool
	// Groups are the selected clusters in groups, at least one.
	Groups []decide.Group
	// Promises are the promises to the workload by selected cluster, nil if the placement names none.
	Promises map[string]podPromise
	notes    map[string]note
	// missing are the divided replicas that are in no selected cluster.
	missing int64
	// Conditions are conditions without times. Conditions of other types do not change.
	Conditions []metav1.Condition
	// Warnings are about parts of the spec that are valid but probably a mistake, and
	// about amounts of clusters that are ignored. The conditions have them, too.
	Warnings []string
	// unfit is why the workload does not fit clusters, by index in the fleet.
	unfit map[int32]string
	// RequeueAt is the time at which the result can change although no object
	// changes, zero if it cannot.
	RequeueAt time.Time
}

// Selected returns the number of selected clusters.
func (r *Result) Selected() (n int) {
	for _, group := range r.Groups {
		n += len(group.Clusters)
	}
	return n
}

// maxWarnings is the number of warnings from which no warnings about amounts are added.
const maxWarnings = 100

// warnOfAmounts adds a warning for each feasible cluster with amounts that are not
// credible, if the placement uses amounts.
func (r *Result) warnOfAmounts() {
	if r.Policy.fields&amountFields == 0 {
		return
	}
	for i, cluster := range r.Fleet {
		if len(cluster.Ignored) > 0 && r.Decision.Clusters[i].Outcome.Feasible() && len(r.Warnings) < maxWarnings {
			r.Warnings = append(r.Warnings, fmt.Sprintf("ManagedCluster %s: %s: ignored, must be at least 0 and at most %d cores or 4Ei",
				cluster.Name, strings.Join(cluster.Ignored, ", "), maxCores))
		}
	}
}
