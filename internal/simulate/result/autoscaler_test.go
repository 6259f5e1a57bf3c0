package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scaledRun is a run that cost so much and in which pods waited so long.
func scaledRun(seed uint64, cost, pending float64) Run {
	return Run{
		Seed: seed, Outcome: Outcome{PendingSeconds: Distribution{Mean: pending, P95: 2 * pending}},
		Scaling: &Scaling{Cost: cost, Slack: &SlackKept{Mean: 0.5}},
	}
}

// Costs of 10 and 12, waits of 30 and 30 s; and then an interrupted run, which does
// not count.
func TestFrontier(t *testing.T) {
	cut := scaledRun(3, 1000, 1000)
	cut.Interrupted = true
	s := &Scenario{Profiles: []Profile{
		{Name: "default", Runs: []Run{{Seed: 1}}},
		{Name: "a", Slack: "0%", Runs: []Run{scaledRun(1, 10, 30), scaledRun(2, 12, 30), cut}},
		{Name: "b", Slack: "5%", Runs: []Run{scaledRun(1, 20, 3)}},
		{Name: "c", Slack: "9%"},
	}}
	got, err := s.Frontier()
	if err != nil {
		t.Fatal(err)
	}
	want := []FrontierPoint{
		{Name: "a", Slack: "0%", Cost: 11, Pending: 30, PendingP95: 60, SlackKept: 0.5, CostInterval: got[0].CostInterval, PendingInterval: &Interval{Low: 30, High: 30, ExcludesZero: true}},
		{Name: "b", Slack: "5%", Cost: 20, Pending: 3, PendingP95: 6, SlackKept: 0.5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if in := got[0].CostInterval; in.Low > 11 || in.High < 11 || in.Low < 10 || in.High > 12 {
		t.Errorf("the cost is in %+v", in)
	}
	s.Profiles = s.Profiles[:2]
	if got, err := s.Frontier(); err != nil || got != nil {
		t.Errorf("of one slack: %v, %v", got, err)
	}
}

// Figures of autoscalers are shown where there was one, those of slack where there
// was a policy, and Compare has all that are shown.
func TestDefinitions(t *testing.T) {
	scaled := Run{Seed: 1, Scaling: &Scaling{Cost: 7}}
	for name, tc := range map[string]struct {
		runs []Run
		want int
	}{
		"none":       {[]Run{{Seed: 1}}, len(CommonFigures())},
		"autoscaler": {[]Run{scaled}, len(CommonFigures()) + 6},
		"slack":      {[]Run{scaledRun(1, 7, 1)}, len(Figures)},
	} {
		s := &Scenario{Profiles: []Profile{{Runs: tc.runs}}}
		if err := s.Compare(); err != nil {
			t.Fatal(err)
		}
		if got := len(s.Definitions()); got != tc.want || len(s.Profiles[0].Figures) != tc.want {
			t.Errorf("%s: %d figures shown and %d there, want %d", name, got, len(s.Profiles[0].Figures), tc.want)
		}
		if cost, ok := s.Profiles[0].Figures["cost"]; ok != (name != "none") || ok && cost.Mean != 7 {
			t.Errorf("%s: cost %v, %t", name, cost, ok)
		}
	}
}
