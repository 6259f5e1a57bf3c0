package result

import (
	"strings"
	"testing"
)

// TestNotes checks what is said before the figures of one or two profiles.
func TestNotes(t *testing.T) {
	idle := Run{Scheduled: 10, Outcome: Outcome{CPULoad: Distribution{P95: 0.6, Max: 0.8}, MemoryLoad: Distribution{Max: 0.9}}}
	busy, placed, unmeasured := idle, Run{}, idle
	busy.OverloadMinutes, unmeasured.OverloadMinutes, unmeasured.Unmeasured = 0.5, 1, 6
	few := unmeasured
	few.Scheduled = 1000
	unplaced := idle
	unplaced.Unschedulable, unplaced.Reasons = 1, map[string]int{"Insufficient cpu": 1}
	for name, tc := range map[string]struct {
		runs       []Run
		isRecorded bool
		want       string // the end of the notes if it ends with a full stop, else a part of them
	}{
		"no runs": {nil, false, ""},
		"idle": {
			[]Run{idle, idle},
			false,
			"the CPU load of nodes was 60 % of their capacity at the 95th percentile, and no load of CPU or memory was above 90 %. Use",
		},
		"overloaded once": {[]Run{idle, busy}, false, ""},
		"idle, with a pod that no node fits": {
			[]Run{unplaced, unplaced}, false, "No node was overloaded, but 1 pod has no node: Insufficient cpu. See",
		},
		"nothing scheduled": {[]Run{placed, placed}, false, "Nothing was scheduled: 10 of 10 pods have a node"},
		"before the first reading": {
			[]Run{busy, unmeasured},
			false,
			"6 of 10 pods were placed before the first measurement of load, which second reads. Spread the arrivals with over= in --generate.",
		},
		"recorded, before the first reading": {
			[]Run{busy, unmeasured}, true, "6 of 10 pods were placed before the first measurement of load, which second reads.",
		},
		"a few before the first reading": {[]Run{busy, few}, false, ""},
	} {
		r := Result{Source: Source{Pods: 10}, Profiles: []string{"first", "second"}}
		if !tc.isRecorded {
			r.Source.Name = "generated: pods=10"
		}
		for i, profile := range r.Profiles {
			p := Profile{Name: profile}
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
