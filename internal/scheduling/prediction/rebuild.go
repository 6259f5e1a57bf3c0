package prediction

import (
	"context"
	"fmt"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

const (
	// rebuildSpan is the length of the period before the start whose usage of pods is read again, and rebuildStep the time
	// between two of these readings.
	rebuildSpan = 24 * time.Hour
	rebuildStep = 30 * time.Minute
	// readTimeout is the longest duration of one reading.
	readTimeout = 10 * time.Second
)

// rebuild reads the usage of pods during a span before now in steps, and calls observe with each reading, the
// oldest first. It keeps one reading in memory at a time. It returns the number of readings. Times without data are left out;
// any other error is returned at once.
func rebuild(
	ctx context.Context, source load.PastPodSource, now time.Time, span, step time.Duration, observe func(*load.PodReading),
) (readings int, err error) {
	for at := now.Add(-span); at.Before(now); at = at.Add(step) {
		reading, err := readAt(ctx, source, at)
		switch {
		case err == nil:
			observe(&reading)
			readings++
		case load.ReasonOf(err) == load.Empty:
		default:
			return readings, fmt.Errorf("reading past usage of pods from %s: %w", source, err)
		}
	}
	return readings, nil
}

// readAt reads the usage of pods at a time.
func readAt(ctx context.Context, source load.PastPodSource, at time.Time) (load.PodReading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return source.ReadPodsAt(ctx, at)
}
