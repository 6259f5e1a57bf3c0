package result

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// muchUnmeasured is the share of pods placed before the first reading of load that is worth a note.
const muchUnmeasured = 0.05

// notes returns what to know before the figures are read: that the input lacks claims, and that profiles had no influence, no load to read,
// or no overload to avoid.
func (r *Result) notes() []string {
	notes := slices.Clone(r.Source.Missing)
	if r.nothingScheduled() {
		if r.Source.Pods == 0 {
			return append(notes, "Nothing was scheduled: the input has no pods.")
		}
		return append(notes, fmt.Sprintf("Nothing was scheduled: %s %s a node, so that profiles cannot differ. Add --reschedule.",
			format.Part(r.Source.Pods, r.Source.Pods, "pod"), format.Form(r.Source.Pods, "has", "have")))
	}
	if least := r.leastPlaced(); least < fewPlacedShare && !r.Interrupted {
		notes = append(
			notes,
			fmt.Sprintf("The profiles placed %s of the pod hours, so that this is about new pods only: others ran at the start. "+
				"--reschedule shows what placing all pods again would change.", share(least)),
		)
	}
	if profiles, pods, of := r.unmeasured(); len(profiles) > 0 {
		note := fmt.Sprintf("%s were placed before the first measurement of load, which %s %s.", format.Part(pods, of, "pod"),
			strings.Join(profiles, " and "), format.Form(len(profiles), "reads", "read"))
		if strings.HasPrefix(r.Source.Name, "generated: ") {
			note += " Spread the arrivals with over= in --generate."
		}
		notes = append(notes, note)
	} else if r.neverOverloaded() && r.allRuns(func(run *Run) bool { return run.Unschedulable > 0 && len(run.Reasons) > 0 }) {
		run := &r.Scenario.Profiles[0].Runs[0]
		notes = append(notes, fmt.Sprintf("No node was overloaded, but %s no node: %s. See the reasons below.",
			format.Of(run.Unschedulable, "pod")+" "+format.Form(run.Unschedulable, "has", "have"), MostFrequent(run.Reasons)[0]))
	} else if r.neverOverloaded() {
		notes = append(notes, r.idleNote())
	}
	return notes
}

// allRuns reports whether there are runs, and a condition is true for all of them.
func (r *Result) allRuns(condition func(*Run) bool) bool {
	found := false
	for i := range r.Scenario.Profiles {
		for j := range r.Scenario.Profiles[i].Runs {
			if found = true; !condition(&r.Scenario.Profiles[i].Runs[j]) {
				return false
			}
		}
	}
	return found
}

// fewPlacedShare is the share of pod hours placed by the profiles below which a comparison over a recording is about new pods only.
const fewPlacedShare = 1.0 / 3

// leastPlaced returns the least share of pod hours that a run over a recording placed, 1 if there is none.
func (r *Result) leastPlaced() float64 {
	least := 1.0
	r.allRuns(func(run *Run) bool {
		if run.Recorded != nil {
			least = min(least, run.Recorded.PlacedShare)
		}
		return true
	})
	return least
}

// nothingScheduled reports whether the scheduler had no pod to place in any run.
func (r *Result) nothingScheduled() bool {
	return r.allRuns(func(run *Run) bool { return !run.Interrupted && run.Scheduled+run.Unschedulable+run.Churn == 0 })
}

// neverOverloaded reports whether all runs are complete, and no node was overloaded or saturated in any of them.
func (r *Result) neverOverloaded() bool {
	return !r.Interrupted && r.allRuns(func(run *Run) bool { return run.OverloadMinutes == 0 && run.CPUSaturationMinutes == 0 })
}

// unmeasured returns the profiles that placed many pods before the first reading of load, and the largest number of such pods in a run, of
// those that were scheduled.
func (r *Result) unmeasured() (profiles []string, pods, of int) {
	for i := range r.Scenario.Profiles {
		found := false
		for _, run := range r.Scenario.Profiles[i].Runs {
			if found = found || float64(run.Unmeasured) > muchUnmeasured*float64(run.Scheduled); run.Unmeasured > pods {
				pods, of = run.Unmeasured, run.Scheduled
			}
		}
		if found {
			profiles = append(profiles, r.Scenario.Profiles[i].Name)
		}
	}
	return profiles, pods, of
}

// idleNote is the note on runs without overload: how near nodes came to their capacity.
func (r *Result) idleNote() string {
	var p95, highest float64
	r.allRuns(func(run *Run) bool {
		p95, highest = max(p95, run.CPULoad.P95), max(highest, run.CPULoad.Max, run.MemoryLoad.Max)
		return true
	})
	return fmt.Sprintf(
		"No node was overloaded in any run: the CPU load of nodes was %s of their capacity at the 95th percentile, and no load "+
			"of CPU or memory was above %s. Use a busier part of the recording, or more --usage, to see how profiles differ.",
		share(p95),
		share(highest),
	)
}

// share formats a fraction in percent.
func share(fraction float64) string { return fmt.Sprintf("%.0f %%", 100*fraction) }
