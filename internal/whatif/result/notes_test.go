package result

import (
	"strings"
	"testing"
)

// TestNotes checks what is said before the figures of one or two profiles.
func TestNotes(t *testing.T) {
	// The usage at which the p95 of 0.6 reaches the capacity: 0.7 / 0.6 = 1.17, rounded up to 1.2.
	idle := Run{Scheduled: 10, Outcome: Outcome{CPULoad: Distribution{P95: 0.6, Max: 0.8}, MemoryLoad: Distribution{Max: 0.9}}}
	busy, placed, unmeasured := idle, Run{}, idle
	busy.OverloadMinutes, unmeasured.OverloadMinutes, unmeasured.Unmeasured = 0.5, 1, 6
	few := unmeasured
	few.Scheduled = 1000
	nearlyIdle := idle
	nearlyIdle.CPULoad.P95 = 0.1
	unplaced := idle
	unplaced.Unschedulable, unplaced.Reasons = 1, map[string]int{"Insufficient cpu": 1}
	for name, tc := range map[string]struct {
		runs  []Run
		mean  float64 // of the usage, 0 if it is recorded, -1 if it is measured
		slack string
		want  string // the end of the notes if it ends with a full stop, else a part of them
	}{
		"no runs": {nil, 0.7, "", ""},
		"idle": {
			[]Run{idle, idle},
			0.7, "",
			"the CPU load of nodes was 60 % of their capacity at the 95th percentile, and no load of CPU or memory was above 90 %. " +
				"Simulate more usage, such as --usage bursts:mean=1.2 (now 0.7)",
		},
		"idle, recorded usage":   {[]Run{idle, idle}, 0, "", "Use a busier part of the recording to"},
		"idle, measured usage":   {[]Run{idle, idle}, -1, "", "Take the snapshot at the busiest time"},
		"nearly idle":            {[]Run{nearlyIdle, nearlyIdle}, 0.7, "", "Use more pods to see"},
		"empty, generated usage": {[]Run{{Scheduled: 10}, {Scheduled: 10}}, 0.7, "", "Use more pods to see"},
		"overloaded once":        {[]Run{idle, busy}, 0.7, "", ""},
		"idle, with a pod that no node fits": {
			[]Run{unplaced, unplaced}, 0.7, "", "No node was overloaded, but 1 pod has no node: Insufficient cpu. See",
		},
		"idle, with slack":  {[]Run{idle, idle}, 0.7, "5%", "Compare the pending time"},
		"nothing scheduled": {[]Run{placed, placed}, 0.7, "", "Nothing was scheduled: 10 of 10 pods have a node"},
		"before the first reading": {
			[]Run{busy, unmeasured},
			0.7, "",
			"6 of 10 pods were placed before the first measurement of load, which second reads. Spread the arrivals with over= in --generate.",
		},
		"recorded, before the first reading": {
			[]Run{busy, unmeasured}, 0, "", "6 of 10 pods were placed before the first measurement of load, which second reads.",
		},
		"a few before the first reading": {[]Run{busy, few}, 0.7, "", ""},
	} {
		r := Result{Source: Source{Pods: 10}, Profiles: []string{"first", "second"}, Scenario: Scenario{UsageMean: tc.mean}}
		if tc.mean > 0 {
			r.Source.Name = "generated: pods=10"
		}
		if tc.mean < 0 {
			r.Scenario.Usage, r.Source.UsageKnown = "measured", 10
		}
		for i, profile := range r.Profiles {
			p := Profile{Name: profile, Slack: tc.slack}
			if i < len(tc.runs) {
				p.Runs = tc.runs[i : i+1]
			}
			r.Scenario.Profiles = append(r.Scenario.Profiles, p)
		}
		got := strings.Join(r.notes(), " ")
		if !strings.Contains(got, tc.want) || strings.HasSuffix(tc.want, ".") && !strings.HasSuffix(got, tc.want) ||
			(got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		r.Interrupted = true // says nothing about overload
		if got := strings.Join(r.notes(), " "); strings.Contains(got, "overloaded") {
			t.Errorf("%s, interrupted: %q", name, got)
		}
	}
}
