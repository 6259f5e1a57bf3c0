package demo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
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

// Result is the outcome of one pod, of one step of the slack scenario (if Slack is set) or of one
// placement (if Fleet is set).
type Result struct {
	Scenario string `json:"scenario"`
	// Profile is the scheduler profile, in the slack scenario whether slack is kept, and in the
	// fleet scenario the API version of the placement.
	Profile string `json:"profile"`
	Pod     string `json:"pod"`
	// Node is the node that the pod was bound to, or Pending.
	Node string `json:"node"`
	// Want is the expected node, Pending or Any; for a placement, the expected clusters.
	Want string `json:"want"`
	OK   bool   `json:"ok"`
	// Seconds is the time from the creation of the pod until it was bound, in the slack scenario.
	Seconds float64    `json:"seconds,omitempty"`
	Slack   *SlackStep `json:"slack,omitempty"`
	Fleet   *FleetStep `json:"fleet,omitempty"`
}

// SlackStep is the cluster after a step of the slack scenario. Amounts are CPUs.
type SlackStep struct {
	Step      string `json:"step"`
	Target    string `json:"target"`
	Available string `json:"available"`
	// Placeholders is the number of placeholders of the policy.
	Placeholders int64 `json:"placeholders"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// Seconds is the longest time that a pod of a burst waited for a node, if the step is a burst.
	Seconds float64 `json:"seconds,omitempty"`
}

// FleetStep is a placement after a step of a story.
type FleetStep struct {
	// Story is the folder of the story in examples/placement.
	Story     string `json:"story"`
	Step      string `json:"step"`
	Placement string `json:"placement"`
	// Chosen are the names of the selected clusters, sorted.
	Chosen []string `json:"chosen"`
	// Reason is why no cluster is selected, "" if one is.
	Reason string `json:"reason,omitempty"`
	// Seconds is the time from the change until the expected clusters were selected, if the
	// decision changed.
	Seconds float64 `json:"seconds,omitempty"`
}

// Summary returns the result in one line.
func (r Result) Summary() string {
	switch {
	case r.Fleet != nil:
		f := r.Fleet
		if f.Reason != "" {
			return fmt.Sprintf("%s, %s: %s selects no cluster: %s", f.Story, f.Step, f.Placement, f.Reason)
		}
		return fmt.Sprintf("%s, %s: %s selects %s", f.Story, f.Step, f.Placement, strings.Join(f.Chosen, ", "))
	case r.Slack != nil:
		s := r.Slack
		return fmt.Sprintf("%s, %s: target %s, available %s, %s, %s", r.Profile, s.Step, s.Target, s.Available,
			format.Of(s.Placeholders, "placeholder"), format.Of(s.Nodes, "node"))
	}
	return fmt.Sprintf("%s, %s -> %s", r.Profile, r.Pod, r.Node)
}

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
