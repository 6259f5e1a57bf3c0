package setup

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
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

// IsGone reports whether the API server confirms that an object does not exist or
// is being deleted. It must be called before dependents are deleted: a missing
// entry in a cache is not sufficient, nor is a 404 from an API server that does not
// serve the kind. The reader must not be cached; the object is overwritten.
func IsGone(ctx context.Context, live client.Reader, key client.ObjectKey, object client.Object) (bool, error) {
	err := live.Get(ctx, key, object)
	switch {
	case err == nil:
		return object.GetDeletionTimestamp() != nil, nil
	case apierrors.IsNotFound(err) && !resources.IsNotServed(err):
		return true, nil
	}
	return false, err
}
