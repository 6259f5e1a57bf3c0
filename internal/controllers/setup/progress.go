package setup

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// maxStep is the time that a step of a controller may take. A step is
// computation only: even with thousands of clusters or nodes it takes less than a second.
const maxStep = 30 * time.Second

// Progress records the steps that a controller executes. Its check fails while a step takes
// longer than 30 seconds, because other steps can wait for it. The zero value is ready to use.
type Progress struct {
	// steps are the steps that are executed.
	steps sync.Map
}

// step is a step that is executed.
type step struct {
	name  string
	since time.Time
}

// Begin records that a step begins. The caller must call the result when the step ends. name describes
// the step in the error of the check.
func (p *Progress) Begin(name string) (end func()) {
	s := &step{name, time.Now()}
	p.steps.Store(s, *s)
	return func() { p.steps.Delete(s) }
}

// Check returns an error with the longest step if it takes longer than 30 seconds. It is a check for
// the readiness of a program.
func (p *Progress) Check(*http.Request) error {
	longest := step{since: time.Now()}
	for _, value := range p.steps.Range {
		if s, ok := value.(step); ok && s.since.Before(longest.since) {
			longest = s
		}
	}
	if took := time.Since(longest.since); took > maxStep {
		return fmt.Errorf("no progress: %s for %s, at most %s are expected", longest.name, took.Round(time.Second), maxStep)
	}
	return nil
}
