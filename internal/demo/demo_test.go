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
	pod := demo.Result{Scenario: slack.Scenario, Object: "burst-1", Got: "general-9", Want: "an existing node"}
	step := demo.Result{Scenario: slack.Scenario, Object: "the same burst", Got: "4 nodes", Want: "no more nodes"}
	placement := demo.Result{Scenario: "fleet", Profile: "3-follow", Object: "follow (created)", Want: "cluster2, cluster4"}
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
