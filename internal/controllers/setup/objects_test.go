package setup

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
)

// TestRecordConditions checks that an event is recorded for a changed status or reason only, and that its note
// is not longer than the API server accepts.
func TestRecordConditions(t *testing.T) {
	const prefix = "Warning Refused "
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: "Accepted", Status: status, Reason: reason, Message: message}
	}
	long := strings.Repeat("x", 4096)
	for name, tc := range map[string]struct {
		before []metav1.Condition
		after  metav1.Condition
		want   string
	}{
		"new":                  {nil, condition("False", "Refused", "no"), prefix + "no"},
		"status and reason":    {[]metav1.Condition{condition("True", "Accepted", "")}, condition("False", "Refused", "no"), prefix + "no"},
		"only the message":     {[]metav1.Condition{condition("False", "Refused", "yes")}, condition("False", "Refused", "no"), ""},
		"of the longest note":  {nil, condition("False", "Refused", long[:MaxNote]), prefix + long[:MaxNote]},
		"longer than any note": {nil, condition("False", "Refused", long), prefix + long[:MaxNote-3] + "..."},
	} {
		recorder := events.NewFakeRecorder(1)
		RecordConditions(recorder, &v1.Node{}, tc.before, []metav1.Condition{tc.after},
			func(_, _ *metav1.Condition) string { return v1.EventTypeWarning })
		got := ""
		select {
		case got = <-recorder.Events:
		default:
		}
		if got != tc.want {
			t.Errorf("%s: event %q, want %q", name, got, tc.want)
		}
	}
}
