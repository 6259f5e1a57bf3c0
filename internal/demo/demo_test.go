package demo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

// TestCheck expects an error that names the first unexpected result.
func TestCheck(t *testing.T) {
	pod := demo.Result{Scenario: slack.Scenario, Pod: "burst-1", Node: "general-9", Want: "an existing node"}
	step := demo.Result{Scenario: slack.Scenario, Want: "no more nodes", Slack: &demo.SlackStep{Step: "the same burst", Nodes: 4}}
	placement := demo.Result{Scenario: "fleet", Want: "cluster2, cluster4", Fleet: &demo.FleetStep{Story: "3-follow", Placement: "follow"}}
	unfit := demo.Result{
		Scenario: "fleet",
		Want:     "no cluster",
		Fleet:    &demo.FleetStep{Story: "7-fit", Placement: "solver", Reason: "too large"},
	}
	if got := unfit.Summary(); got != "7-fit, : solver selects no cluster: too large" {
		t.Errorf("got %q", got)
	}
	good := demo.Result{Scenario: slack.Scenario, OK: true}
	for _, bad := range []demo.Result{pod, step, placement} {
		if err := demo.Check([]demo.Result{good, bad, good}); !errors.Is(err, demo.ErrUnexpected) ||
			!strings.Contains(err.Error(), bad.Want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := demo.Check([]demo.Result{good}); err != nil {
		t.Error(err)
	}
}
