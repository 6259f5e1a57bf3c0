package result

import (
	"strings"
	"testing"
)

// TestBacktestWithoutData checks that nothing is certified that the recording does not show: without placed pods there are no figures, and
// without usage none of overload and load.
func TestBacktestWithoutData(t *testing.T) {
	for name, tc := range map[string]struct {
		source     Source
		placements Placements
		changed    int
		figures    int
		want       string
	}{
		"nothing": {Source{Pods: 17}, Placements{}, 0, 0, "No backtest: the scheduler placed no pod in the recording, and usage was recorded for 0 of 17 pods."},
		"no pod":  {Source{Pods: 17, UsageKnown: 17}, Placements{NeverScheduled: 2}, 0, 0, "usage was recorded for 17 of 17 pods."},
		// 3 figures of overload, one of saturation and 8 of load are missing.
		"no usage": {Source{Pods: 17}, Placements{Same: 3, Other: 1}, 0, 6, "No backtest of usage: usage was recorded for 0 of 17 pods."},
		"all":      {Source{Pods: 17, UsageKnown: 9}, Placements{Same: 3}, 0, 18, "pending, mean seconds 0 (measured 0.071, 0 %)"},
		"few":      {Source{Pods: 17, UsageKnown: 9}, Placements{Same: 3}, 0, 18, "This says little about the model: the scheduler placed only 3 pods."},
		"nodes come and go": {
			Source{Pods: 170, UsageKnown: 90},
			Placements{Same: 100},
			5, 18,
			"100 of 100 pods on the recorded kind of node. No backtest of pending and unschedulable pods: 5 nodes appear or are removed as recorded, " +
				"for the recorded placements, not when the simulated pods need them.",
		},
	} {
		run := Run{
			Outcome:  Outcome{OverloadMinutes: 2, CPULoad: Distribution{P95: 0.3}},
			Recorded: &Recorded{Placements: tc.placements, NodesChanged: tc.changed},
		}
		measured := run
		measured.PendingSeconds.Mean = 0.071
		b := NewBacktest("default", tc.source, &measured, &run)
		if len(b.Figures) != tc.figures || !strings.Contains(b.Summary(), tc.want) {
			t.Errorf("%s: %d figures, %q; want %d, %q", name, len(b.Figures), b.Summary(), tc.figures, tc.want)
		}
		if strings.Contains(b.Summary(), "CPU load") != (tc.figures == 18) {
			t.Errorf("%s: %q", name, b.Summary())
		}
		for _, f := range b.Figures {
			isWait := f.Name == "unschedulable" || strings.HasPrefix(f.Name, "pending")
			if unknown := f.Error == nil; unknown != (isWait && tc.changed > 0) || unknown && f.Main {
				t.Errorf("%s: %s has the error %s; summary %q", name, f.Name, f.ErrorText(), b.Summary())
			}
		}
	}
}
