package report

import (
	"fmt"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// setting is a setting of the runs.
type setting struct{ Name, Value string }

// settings returns the settings of the runs.
func settings(r *result.Result) []setting {
	s := r.Settings
	list := []setting{
		{"Input", r.Source.Name},
		{"Nodes, pods", format.Count(r.Source.Nodes) + ", " + format.Count(r.Source.Pods)},
		{strings.ToUpper(r.RunNoun()[:1]) + r.RunNoun()[1:] + "s", seedText(r.Seeds)},
		{"Usage changes", "every " + format.Duration(s.StepSeconds)},
		{"Runs continue after the last arrival for", format.Duration(s.TailSeconds)},
		{"Load is measured", fmt.Sprintf("every %s, is available %s later, is averaged over %s",
			format.Duration(s.Metrics.IntervalSeconds), format.Duration(s.Metrics.DelaySeconds), format.Duration(s.Metrics.WindowSeconds))},
		{"Confidence intervals", format.Format(100*s.Level, 0) + format.ThinSpace + "%, of the mean over " +
			r.PairNoun() + "s, by the paired t test of values of the same " + r.PairNoun()},
		{"Version of the document", r.APIVersion + " " + r.Kind},
	}
	if s.Saturation > 0 {
		list = append(list, setting{
			"CPU saturation",
			"more than " + format.Format(100*s.Saturation, 3) + format.ThinSpace + "% of the allocatable CPU used or demanded",
		})
	}
	if s.Autoscaler != nil {
		list = append(list, setting{"Autoscaler node groups", strings.Join(s.Autoscaler.Groups, "; ")})
	}
	return list
}

// seedText describes the seeds.
func seedText(seeds []uint64) string {
	switch len(seeds) {
	case 0:
		return "none"
	case 1:
		return fmt.Sprintf("one, %d", seeds[0])
	}
	return fmt.Sprintf("%d, from %d to %d", len(seeds), seeds[0], seeds[len(seeds)-1])
}

// incompleteText describes how many runs are interrupted or missing, empty if none is.
func incompleteText(r *result.Result) string {
	interrupted, missing, total := 0, 0, 0
	for i := range r.Scenario.Profiles {
		profile := &r.Scenario.Profiles[i]
		total += len(r.Seeds)
		missing += max(len(r.Seeds)-len(profile.Runs), 0)
		interrupted += profile.Interrupted()
	}
	if interrupted+missing == 0 && !r.Interrupted || r.Windows > 0 {
		return ""
	}
	return fmt.Sprintf("Of %s, %d %s interrupted and %d did not start. Means use interrupted runs only where a profile "+
		"has no others; differences use completed pairs only.",
		format.Of(total, "run"), interrupted, format.Form(interrupted, "was", "were"), missing)
}
