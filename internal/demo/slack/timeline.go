package slack

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
)

// timelineInterval is the interval of the states in the timeline.
const timelineInterval = 100 * time.Millisecond

// timeline records the states and the events of a run for the live page.
type timeline struct {
	mu      sync.Mutex
	began   time.Time
	points  []page.TimelinePoint
	marks   []page.TimelineMark
	stopped bool
}

// start begins a new recording.
func (t *timeline) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.points, t.marks = time.Now(), nil, nil
}

// mark records an event.
func (t *timeline) mark(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks = append(t.marks, page.TimelineMark{Seconds: time.Since(t.began).Seconds(), Text: text})
}

// add records a state at the present time.
func (t *timeline) add(point page.TimelinePoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	point.Seconds = time.Since(t.began).Seconds()
	if !t.stopped {
		t.points = append(t.points, point)
	}
}

// stop ignores all further states.
func (t *timeline) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// view returns the timeline for the live page, nil before the first state.
func (t *timeline) view() *page.LiveTimeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.points) == 0 {
		return nil
	}
	return &page.LiveTimeline{Unit: "CPUs", Points: slices.Clone(t.points), Marks: slices.Clone(t.marks)}
}

// record adds the present state periodically until ctx ends. A state that cannot be read is left out.
func (t *timeline) record(ctx context.Context, read func(context.Context) (page.TimelinePoint, error)) {
	ticker := time.NewTicker(timelineInterval)
	defer ticker.Stop()
	for {
		if point, err := read(ctx); err == nil {
			t.add(point)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
