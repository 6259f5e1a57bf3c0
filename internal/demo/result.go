package demo

import (
	"errors"
	"fmt"
	"time"
)

// Expected outcomes of a pod other than the name of a node.
const (
	// Pending means that the pod does not fit any node.
	Pending = "pending"
	// Any means that the pod may be bound to any node.
	Any = "any"
)

// DefaultProfile is the scheduler profile that every node scenario is also run with.
const DefaultProfile = "default-scheduler"

// Result is the outcome of one pod, of one step of the slack scenario, or of one placement after a step of a story.
type Result struct {
	Scenario string `json:"scenario"`
	// Profile is the scheduler profile, in the slack scenario whether slack is kept, and in the fleet scenario the story.
	Profile string `json:"profile"`
	// Object is the pod, the step, or the placement and the step of the story.
	Object string `json:"object"`
	// Got is the node that the pod was bound to or Pending, the cluster after the step, or the selected clusters.
	Got string `json:"got"`
	// Want is the expected value of Got in the same form, or in words.
	Want string `json:"want"`
	OK   bool   `json:"ok"`
	// Seconds is the time from the creation of the pod until it was bound, in the slack scenario, or from the change of the fleet until
	// the expected clusters were selected, if the decision changed.
	Seconds float64 `json:"seconds,omitempty"`
}

// Summary returns the result in one line.
func (r Result) Summary() string { return fmt.Sprintf("%s, %s -> %s", r.Profile, r.Object, r.Got) }

// Seconds returns a duration in seconds, rounded to milliseconds.
func Seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// ErrUnexpected is returned by Check if a result differs from the expected one.
var ErrUnexpected = errors.New("unexpected result")

// Check returns an error with the first unexpected result, which wraps ErrUnexpected.
func Check(results []Result) error {
	for _, r := range results {
		if !r.OK {
			return fmt.Errorf("%w: scenario %s, %s, want %s", ErrUnexpected, r.Scenario, r.Summary(), r.Want)
		}
	}
	return nil
}
