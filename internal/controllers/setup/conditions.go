package setup

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// MaxNote is the length in bytes up to which the API server accepts the note of an event.
const MaxNote = 1024

// RecordConditions records an event for every condition whose status or reason
// changed, with its message, which is shortened to MaxNote. eventType returns the type of the event, "" for no event; its argument
// before is nil for a condition that is new.
func RecordConditions(
	recorder events.EventRecorder,
	object runtime.Object,
	before, after []metav1.Condition,
	eventType func(before, after *metav1.Condition) string,
) {
	for i := range after {
		condition, old := &after[i], meta.FindStatusCondition(before, after[i].Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		if kind := eventType(old, condition); kind != "" {
			recorder.Eventf(object, nil, kind, condition.Reason, condition.Type, "%s", format.Shorten(condition.Message, MaxNote))
		}
	}
}
