package slack

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// NotTriggered is the reason of the event that Cluster Autoscaler records for a buffer if no node has capacity for a placeholder, and it
// can add none.
const NotTriggered = "NotTriggerScaleUp"

// Refusal is the last occurrence of an event NotTriggered.
type Refusal struct {
	Time time.Time
	// Message is the message of the event, with each reason once, at most 400 bytes.
	Message string
	// Valid is the time within which Cluster Autoscaler repeats the event: it does in each loop, but after 25 times every five minutes.
	Valid time.Duration
}

// RefusalOf returns the last occurrence of an event NotTriggered.
func RefusalOf(e *v1.Event) Refusal {
	r, count := Refusal{Time: e.LastTimestamp.Time, Valid: time.Minute}, e.Count
	if e.Series != nil {
		r.Time, count = e.Series.LastObservedTime.Time, e.Series.Count
	} else if r.Time.IsZero() {
		r.Time = e.EventTime.Time
	}
	if count >= 20 {
		r.Valid = 6 * time.Minute
	}
	const prefix = "pod didn't trigger scale-up: "
	reasons := []string{e.Message}
	if list, ok := strings.CutPrefix(e.Message, prefix); ok { // in random order
		reasons = slices.Compact(slices.Sorted(strings.SplitSeq(list, ", ")))
		reasons[0] = prefix + reasons[0]
	}
	r.Message = format.Shorten(strings.Join(reasons, ", "), maxAnswerLength)
	return r
}
