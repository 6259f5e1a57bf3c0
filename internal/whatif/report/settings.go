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
		{strings.ToUpper(r.PairNoun()[:1]) + r.PairNoun()[1:] + "s", seedText(r.Seeds)},
		{"Usage changes", "every " + format.Duration(s.StepSeconds)},
		{"Runs continue after the last arrival for", format.Duration(s.TailSeconds)},
		{"Load is measured", fmt.Sprintf("every %s, is available %s later, is averaged over %s",
			format.Duration(s.Metrics.IntervalSeconds), format.Duration(s.Metrics.DelaySeconds), format.Duration(s.Metrics.WindowSeconds))},
		{"Confidence intervals", format.Format(100*s.Level, 0) + format.ThinSpace + "%, of the mean over " +
			r.PairNoun() + "s, by the paired t test of runs with the same " + r.PairNoun()},
		{"Version of the document", r.APIVersion + " " + r.Kind},
	}
	if s.Saturation > 0 {
		list = append(list, setting{
			"CPU saturation", "more than " + format.Format(100*s.Saturation, 3) + format.ThinSpace + "% of the allocatable CPU used or demanded",
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
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Profiles {
			profile := &r.Scenarios[i].Profiles[j]
			total += len(r.Seeds)
			missing += max(len(r.Seeds)-len(profile.Runs), 0)
			interrupted += profile.Interrupted()
		}
	}
	if interrupted+missing == 0 && !r.Interrupted || r.Windows > 0 {
		return ""
	}
	return fmt.Sprintf("Of %s, %d %s interrupted and %d did not start. Means use interrupted runs only where a profile "+
		"has no others; differences use completed pairs only.",
		format.Of(total, "run"), interrupted, format.Form(interrupted, "was", "were"), missing)
}

// parameterWords has the words for the parameters of usage and limits.
var parameterWords = map[string]string{
	"mean": "mean % of the request", "cv": "coefficient of variation %", "max": "at most % times the request",
	"workload": "% of the variance between workloads", "between": "% of the variance between pods",
	"together": "% of the variance common to the pods of a workload", "hold": "changes every % min",
	"share": "the higher level for a share of % of the time", "period": "a period of % min",
}

// usageWords describes a specification such as cpu=bursts:mean=0.7,hold=10;memory=beta:mean=0.5 in words, and without its parameters.
// A specification with another form, or with parameters without words, is returned unchanged.
func usageWords(spec string) (words, shapes string) {
	var parts, kinds []string
	for part := range strings.SplitSeq(spec, ";") {
		resource, shape, ok := strings.Cut(part, "=")
		if !ok || strings.Contains(resource, ":") {
			return spec, shorten(spec, 60)
		}
		kind, parameters, _ := strings.Cut(shape, ":")
		kinds = append(kinds, resource+" "+kind)
		described := []string{kind}
		for parameter := range strings.SplitSeq(parameters, ",") {
			name, value, _ := strings.Cut(parameter, "=")
			switch pattern, known := parameterWords[name]; {
			case parameter == "" || value == "0" && (name == "between" || name == "together" || name == "workload"):
			case known:
				described = append(described, strings.Replace(pattern, "%", value, 1))
			default:
				described = append(described, parameter)
			}
		}
		parts = append(parts, strings.Replace(resource, "cpu", "CPU", 1)+" "+strings.Join(described, ", "))
	}
	if cpu := strings.TrimPrefix(parts[0], "CPU "); len(parts) == 2 && parts[1] == "memory "+cpu {
		parts = []string{"CPU and memory " + cpu}
	}
	if cpu := strings.TrimPrefix(kinds[0], "cpu "); len(kinds) == 2 && kinds[1] == "memory "+cpu {
		kinds = []string{cpu}
	}
	return strings.Join(parts, "; "), strings.Join(kinds, ", ")
}

// limitWords describes the limits of pods in words.
func limitWords(spec string) string {
	if ratio, ok := strings.CutPrefix(spec, "ratio="); ok && !strings.ContainsAny(ratio, "=,") {
		return strings.ReplaceAll(ratio, "+", " or ") + " times the requests"
	}
	return spec
}
