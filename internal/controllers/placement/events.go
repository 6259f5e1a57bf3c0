package placement

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

const (
	// maxScores is the maximum length in bytes of the list of scores in an event, so that it and an ellipsis
	// do not exceed setup.MaxNote.
	maxScores = 1000
	// maxNames is the maximum number of clusters in an event.
	maxNames = 5
)

// recordStep records an event for a written PlacementDecision, which is the related
// object. Reasons and actions are the same as in Open Cluster Management. Changes of
// scores alone are not recorded here.
func (c *Controller) recordStep(object *v1beta1.Placement, existing []clusterv1beta1.PlacementDecision, step *fleet.Step) {
	decision := &clusterv1beta1.PlacementDecision{}
	decision.Namespace, decision.Name = object.Namespace, step.Name()
	normal := func(verb, note string) {
		c.recorder.Eventf(object, decision, v1.EventTypeNormal, "Decision"+verb, "Decision"+verb+"d", "%s: %s", step.Name(), note)
	}
	at := slices.IndexFunc(existing, func(d clusterv1beta1.PlacementDecision) bool { return d.Name == step.Name() })
	if step.After == nil {
		normal("Delete", "deleted")
		return
	}
	after := step.After.Status.Decisions
	if at < 0 {
		normal("Create", "selected "+format.Of(len(after), "cluster"))
		return
	}
	before := existing[at].Status.Decisions
	selected, previous := namesOf(after), namesOf(before)
	if !selected.Equal(previous) {
		note := fmt.Sprintf("selected %s (was %d)", format.Of(len(after), "cluster"), len(before))
		if added := selected.Difference(previous); len(added) > 0 {
			note += "; added " + format.Abbreviate(sets.List(added), maxNames, ", ")
		}
		if removed := previous.Difference(selected); len(removed) > 0 {
			note += "; removed " + format.Abbreviate(sets.List(removed), maxNames, ", ")
		}
		normal("Update", note)
	}
}

// namesOf returns the names of the clusters of decisions.
func namesOf(decisions []clusterv1beta1.ClusterDecision) sets.Set[string] {
	names := sets.New[string]()
	for _, d := range decisions {
		names.Insert(d.ClusterName)
	}
	return names
}

// recordScores records an event with the scores of the selected clusters, which have
// been written.
func (c *Controller) recordScores(object *v1beta1.Placement, result *fleet.Result) {
	var scores []string
	for _, group := range result.Groups {
		for _, d := range group.Clusters {
			scores = append(scores, fmt.Sprintf("%s:%d", d.ClusterName, d.Score))
		}
	}
	note := strings.Join(scores, " ")
	if len(note) > maxScores {
		note = note[:strings.LastIndexByte(note[:maxScores], ' ')+1] + "..."
	}
	if note != "" {
		c.recorder.Eventf(object, nil, v1.EventTypeNormal, "ScoreUpdate", "ScoreUpdated", "%s", note)
	}
}

// recordConditions records events for the changes of conditions, and for warnings that
// are new.
func (c *Controller) recordConditions(object *v1beta1.Placement, before, after []metav1.Condition, warnings []string) {
	setup.RecordConditions(c.recorder, object, before, after, eventType)
	message := func(conditions []metav1.Condition) string {
		if found := meta.FindStatusCondition(conditions, clusterv1beta1.PlacementConditionMisconfigured); found != nil {
			return found.Message
		}
		return ""
	}
	if len(warnings) > 0 && message(before) != message(after) {
		c.recorder.Eventf(object, nil, v1.EventTypeWarning, "PlacementWarning", "Evaluate", "%s",
			format.Shorten(format.Abbreviate(warnings, maxNames, "; "), setup.MaxNote))
	}
}

// eventType returns the type of the event for a changed condition, "" for none: a
// new placement without problems only reports its decisions.
func eventType(before, after *metav1.Condition) string {
	// PlacementMisconfigured is the condition that is False in a healthy placement.
	healthy := (after.Status == metav1.ConditionTrue) != (after.Type == clusterv1beta1.PlacementConditionMisconfigured)
	switch {
	case !healthy:
		return v1.EventTypeWarning
	case before == nil:
		return ""
	}
	return v1.EventTypeNormal
}
