package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scaledRun returns a run with a cost and a mean pending time.
func scaledRun(seed uint64, cost, pending float64) Run {
	return Run{
		Seed: seed, Outcome: Outcome{PendingSeconds: Distribution{Mean: pending, P95: 2 * pending}},
		Scaling: &Scaling{Cost: cost, Slack: &SlackKept{Mean: 0.5}},
	}
}

// TestInterval has two runs with costs of 10 and 12 and equal pending times, and an interrupted run, which does not count.
func TestInterval(t *testing.T) {
	cut := scaledRun(3, 1000, 1000)
	cut.Interrupted = true
	p := &Profile{Runs: []Run{scaledRun(1, 10, 30), scaledRun(2, 12, 30), cut}}
	want := &Interval{Low: 30, High: 30, ExcludesZero: true}
	if got := p.Interval(figure(t, "pendingSecondsMean")); !cmp.Equal(got, want) {
		t.Errorf("pending %+v, want %+v", got, want)
	}
	if in := p.Interval(figure(t, "cost")); in.Low+in.High != 22 || in.Low >= 11 {
		t.Errorf("cost %+v", in)
	}
	if in := (&Profile{Runs: p.Runs[:1]}).Interval(figure(t, "cost")); in != nil {
		t.Errorf("one run: %+v", in)
	}
}

// TestDefinitions verifies that figures of the autoscaler are shown for runs with an autoscaler,
// figures of slack for runs with a policy, and that Compare computes all figures that are shown.
func TestDefinitions(t *testing.T) {
	scaled := Run{Seed: 1, Scaling: &Scaling{Cost: 7}}
	for name, tc := range map[string]struct {
		runs []Run
		want int
	}{
		"none":       {[]Run{{Seed: 1}}, len(CommonFigures())},
		"autoscaler": {[]Run{scaled}, len(CommonFigures()) + 7},
		"slack":      {[]Run{scaledRun(1, 7, 1)}, len(Figures)},
	} {
		s := &Scenario{Profiles: []Profile{{Runs: tc.runs}}}
		s.Compare()
		if got := len(s.Definitions()); got != tc.want || len(s.Profiles[0].Figures) != tc.want {
			t.Errorf("%s: %d figures shown and %d computed, want %d", name, got, len(s.Profiles[0].Figures), tc.want)
		}
		if cost, ok := s.Profiles[0].Figures["cost"]; ok != (name != "none") || ok && cost.Mean != 7 {
			t.Errorf("%s: cost %v, %t", name, cost, ok)
		}
	}
}
