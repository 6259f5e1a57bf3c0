package demo

import (
	"context"
	"slices"
	"sync"
	"time"
)

// timelineTick is how often the slack scenario is looked at for the page.
const timelineTick = 100 * time.Millisecond

// timeline is how the slack scenario went.
type timeline struct {
	mu     sync.Mutex
	title  string
	began  time.Time
	points []moment
	marks  []mark
	over   bool
}

// moment is the state at a time; amounts are CPUs.
type moment struct {
	after             time.Duration
	target, available float64
	nodes, waiting    int
}

// mark is something that happened.
type mark struct {
	after time.Duration
	text  string
}

func (t *timeline) begin(title string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.title, t.began, t.points, t.marks = title, time.Now(), nil, nil
}

func (t *timeline) mark(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks = append(t.marks, mark{time.Since(t.began), text})
}

func (t *timeline) add(m moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.after = time.Since(t.began)
	if !t.over {
		t.points = append(t.points, m)
	}
}

// end leaves the timeline as it is: what comes is only tidying up.
func (t *timeline) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// all returns what there is, nothing before the scenario has begun.
func (t *timeline) all() (title string, points []moment, marks []mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.title, slices.Clone(t.points), slices.Clone(t.marks)
}

// follow takes a moment in again and again until ctx ends. One that cannot be
// had is left out.
func (t *timeline) follow(ctx context.Context, look func(context.Context) (moment, error)) {
	ticker := time.NewTicker(timelineTick)
	defer ticker.Stop()
	for {
		if m, err := look(ctx); err == nil {
			t.add(m)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
