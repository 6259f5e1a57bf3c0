// Package util has the test helpers of Open Cluster Management that its placement tests use.
package util

import (
	"github.com/openshift/library-go/pkg/operator/events"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// NewIntegrationTestEventRecorder returns a recorder that keeps events in memory.
func NewIntegrationTestEventRecorder(component string) events.Recorder {
	return events.NewInMemoryRecorder(component, clock.RealClock{})
}

// HasCondition reports whether a condition has a status and, unless it is "", a reason.
func HasCondition(conditions []metav1.Condition, kind, reason string, status metav1.ConditionStatus) bool {
	c := meta.FindStatusCondition(conditions, kind)
	return c != nil && c.Status == status && (reason == "" || c.Reason == reason)
}
