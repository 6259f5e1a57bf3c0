package fleet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Reasons of conditions. All are reasons of Open Cluster Management, except
// MatchesNothing and ExpressionFails.
const (
	reasonConfigured      = "Succeedconfigured"
	reasonMisconfigured   = "Misconfigured"
	reasonMatchesNothing  = "MatchesNothing"
	reasonExpressionFails = "ExpressionFails"
	reasonAllScheduled    = "AllDecisionsScheduled"
	reasonNotAllScheduled = "NotAllDecisionsScheduled"
	reasonNoBindings      = "NoManagedClusterSetBindings"
	reasonNoIntersection  = "NoIntersection"
	reasonSetsEmpty       = "AllManagedClusterSetsEmpty"
	reasonNoneMatched     = "NoManagedClusterMatched"
)

// maxSetNames is the maximum number of names of cluster sets in a message.
const maxSetNames = 5

// maxUnfit is the number of clusters whose reasons are in the condition of a placement.
const maxUnfit = 3

// maxConditionLength is the maximum length in bytes of the message of a condition. The API permits
// 32,768, and messages contain values of specs, which can be longer.
const maxConditionLength = 4096

// setDecision sets groups, time and conditions from the decision about a number of clusters. Clusters for which an expression failed, if
// there are any, do not match.
func (r *Result) setDecision(number int64, unbound []string, failed *failures) {
	d := r.Decision
	r.Groups = d.Groups
	// Later times exceed the range of a Duration.
	if d.ChangesAt < math.MaxInt32*int64(100) {
		r.RequeueAt = time.Unix(d.ChangesAt, 0)
	}
	satisfied, reason := false, reasonNoneMatched
	var message string
	switch {
	case d.Members == 0:
		reason, message = reasonSetsEmpty, "the cluster sets have no clusters: label clusters with the set, or check its selector"
	case number == 0:
		message = r.withCounts("spec.numberOfClusters is 0: no cluster is selected", unbound)
	case d.Feasible == 0:
		message = r.withCounts("no cluster is feasible", unbound) + r.unfitText()
	case d.Shortfall > 0:
		reason = reasonNotAllScheduled
		message = r.withCounts(fmt.Sprintf("selected %d of %s", len(d.Chosen), format.Of(number, "cluster")), unbound) + r.unfitText()
	default:
		satisfied, reason = true, reasonAllScheduled
		message = r.withCounts("selected "+format.Of(len(d.Chosen), "cluster"), unbound)
	}
	r.setConditions(satisfied, reason, message)
	if failed != nil {
		r.Conditions[0] = r.condition(clusterv1beta1.PlacementConditionMisconfigured, true, reasonExpressionFails,
			failed.String()+": such clusters do not match")
	}
}

// withCounts returns a text with the numbers of clusters of the decision and the sets that are not
// bound to the namespace. A text of the usual length is one allocation.
func (r *Result) withCounts(text string, unbound []string) string {
	d := r.Decision
	var buffer [192]byte
	out := append(append(buffer[:0], text...), " (clusters in the sets: "...)
	out = append(strconv.AppendInt(out, int64(d.Members), 10), ", matching the predicates: "...)
	out = append(strconv.AppendInt(out, int64(d.Matched), 10), ", with tolerated taints: "...)
	out = strconv.AppendInt(out, int64(d.Feasible+d.Unfit), 10)
	if len(unbound) > 0 {
		out = append(append(out, "; sets that do not exist or are not bound to the namespace: "...),
			format.Abbreviate(unbound, maxSetNames, ", ")...)
	}
	return string(append(out, ')'))
}

// unfitText returns the reasons why the workload does not fit clusters, "" if it fits all.
func (r *Result) unfitText() string {
	if r.Decision.Unfit == 0 {
		return ""
	}
	var reasons []string
	for _, i := range slices.Sorted(maps.Keys(r.unfit))[:min(len(r.unfit), maxUnfit)] {
		reasons = append(reasons, r.Fleet[i].Name+": "+r.unfit[i])
	}
	return fmt.Sprintf("; the workload does not fit %s (%s)", format.Of(r.Decision.Unfit, "cluster"), strings.Join(reasons, "; "))
}

// setConditions sets the conditions of a valid placement.
func (r *Result) setConditions(satisfied bool, reason, message string) {
	valid := "the spec is valid"
	if len(r.Warnings) > 0 {
		valid += "; warning: " + format.Abbreviate(r.Warnings, 5, "; ")
	}
	r.Conditions = []metav1.Condition{
		r.condition(clusterv1beta1.PlacementConditionMisconfigured, false, reasonConfigured, valid),
		r.condition(clusterv1beta1.PlacementConditionSatisfied, satisfied, reason, message),
	}
}

// condition returns a condition without a time.
func (r *Result) condition(kind string, isTrue bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: r.Generation}
	if isTrue {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// IsMisconfigured reports whether the spec of the placement is invalid.
func (r *Result) IsMisconfigured() bool {
	c := meta.FindStatusCondition(r.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
	return c != nil && c.Reason == reasonMisconfigured
}

// setMisconfigured sets the conditions of an invalid placement. The selected clusters
// are kept; condition PlacementSatisfied has the generation of the spec that selected
// them. If none are selected, none are added.
func (r *Result) setMisconfigured(p *placementState, reason, message string) {
	r.KeepDecisions = len(p.selected) > 0
	satisfied := r.condition(clusterv1beta1.PlacementConditionSatisfied, false, reason,
		"no cluster is selected because the spec is misconfigured")
	if r.KeepDecisions {
		satisfied.Message = fmt.Sprintf("the decisions of an earlier spec (%s) are kept because the spec is misconfigured",
			format.Of(len(p.selected), "cluster"))
		satisfied.ObservedGeneration = p.decidedGeneration
	}
	r.Conditions = []metav1.Condition{
		r.condition(clusterv1beta1.PlacementConditionMisconfigured, true, reason, message), satisfied,
	}
}

// shortenMessages shortens the messages of the conditions, so that the hub accepts them.
func (r *Result) shortenMessages() {
	for i := range r.Conditions {
		r.Conditions[i].Message = format.Shorten(r.Conditions[i].Message, maxConditionLength)
	}
}
