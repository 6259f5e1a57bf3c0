package demo

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

func TestMain(m *testing.M) {
	controlplane.RunIfChild()
	ctrl.SetLogger(klog.NewKlogr())
	os.Exit(m.Run())
}

// Every scenario goes as it is told, through the real API server and the real
// scheduler; and what the what-if foretold is what came of it.
func TestScenarios(t *testing.T) {
	d, err := Start(t.Context(), Options{Load: LoadService, Autoscaler: AutoscalerStandIn, Log: io.Discard, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	for _, s := range Scenarios {
		for _, profile := range []string{DefaultProfile, s.Profile} {
			t.Run(s.Name+"/"+profile, func(t *testing.T) {
				results, err := d.Run(t.Context(), s, profile)
				if err != nil {
					t.Fatal(err)
				}
				if err := Check(results); err != nil {
					t.Error(err)
				}
				for i, decision := range d.decisions.all()[:len(results)] {
					r := results[len(results)-1-i]
					foretold := decision.Scores.Selected
					if foretold == "" {
						foretold = Pending
					}
					if r.Want != Any && foretold != r.Node {
						t.Errorf("%s: foretold %s, came to %s: %s", r.Pod, foretold, r.Node, decision.Reason())
					}
				}
			})
		}
	}
	t.Run("probe", func(t *testing.T) { testProbe(t, d) })
	t.Run(SlackScenario, func(t *testing.T) { testSlack(t, d) })
	// Its controller goes on until the context ends.
	testFleet(t, d)
}

// With the stand-in the slack scenario comes to the same each time: 8 pods fill
// two nodes of 4. 50 % of 8 are 4, one more node, which the burst of 4 takes; 50
// % of 12 are 6, two more. 25 % of 8 are 2, one node.
func testSlack(t *testing.T, d *Demo) {
	results, err := d.RunSlack(t.Context(), func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(results); err != nil {
		t.Error(err)
	}
	type step struct {
		target, available string
		placeholders      int64
		nodes             int
	}
	var steps []step
	waited := map[string][]float64{}
	for _, r := range results {
		if r.Slack == nil {
			waited[r.Profile] = append(waited[r.Profile], r.Seconds)
			continue
		}
		steps = append(steps, step{r.Slack.Target, r.Slack.Available, r.Slack.Placeholders, r.Slack.Nodes})
	}
	want := []step{
		{"0", "0", 0, 2}, // the web service
		{"0", "0", 0, 3}, // the burst without slack
		{"4", "4", 4, 3}, // the policy
		{"4", "0", 4, 3}, // the burst with slack
		{"6", "8", 6, 5}, // refilled
		{"4", "8", 6, 4}, // the burst is gone
		{"2", "4", 2, 3}, // the smaller policy
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	without, with := waited[withoutSlack], waited[withSlack]
	if len(without) != burstPods || len(with) != burstPods || slices.Max(with) >= slices.Min(without) {
		t.Errorf("pods waited %v without slack, %v with it", without, with)
	}
	if _, points, marks := d.timeline.all(); len(points) < 20 || len(marks) < 5 {
		t.Errorf("a timeline of %d points and %d marks", len(points), len(marks))
	}
}

// A step that is not as expected fails the demo as a pod does.
func TestCheck(t *testing.T) {
	pod := Result{Scenario: SlackScenario, Pod: "burst-1", Node: "general-9", Want: nodeThere}
	step := Result{Scenario: SlackScenario, Want: "no more nodes", Slack: &SlackState{Step: "the same burst", Nodes: 4}}
	placement := Result{Scenario: FleetScenario, Want: "cluster2, cluster4", Fleet: &FleetStep{Story: "3-follow", Placement: "follow"}}
	good := Result{Scenario: SlackScenario, OK: true}
	for _, bad := range []Result{pod, step, placement} {
		if err := Check([]Result{good, bad, good}); !errors.Is(err, ErrUnexpected) || !strings.Contains(err.Error(), bad.Want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := Check([]Result{good}); err != nil {
		t.Error(err)
	}
}
