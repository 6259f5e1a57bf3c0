package whatif

import (
	"fmt"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// settings says how the runs were made.
func settings(r *result.Result) []setting {
	s := r.Settings
	lines := []setting{
		{"Input", r.Source.Name},
		{"Nodes, pods", count(r.Source.Nodes) + ", " + count(r.Source.Pods)},
		{"Seeds", seedText(r.Seeds)},
		{"Use is looked at", "every " + duration(s.StepSeconds)},
		{"After the last pod has come", "runs go on for " + duration(s.TailSeconds)},
		{"Load is measured", fmt.Sprintf("every %s, arrives %s later, is averaged over %s", duration(s.Metrics.IntervalSeconds), duration(s.Metrics.DelaySeconds), duration(s.Metrics.WindowSeconds))},
		{"Level of the intervals", number(100*s.Level, 0) + thin + "%, of the mean over seeds, by resampling pairs of runs with the same seed"},
		{"Version of the document", r.APIVersion + " " + r.Kind},
	}
	if s.Autoscaler != nil {
		lines = append(lines, setting{"Autoscaler, by group", strings.Join(s.Autoscaler.Groups, "; ")})
	}
	return lines
}

// shapeOf names what pods use without the numbers of it: bursts for
// cpu=bursts:...;memory=bursts:..., and as it is what cannot be read like that.
func shapeOf(usage string) string {
	var shapes []string
	for part := range strings.SplitSeq(usage, ";") {
		resource, shape, ok := strings.Cut(part, "=")
		if !ok || strings.Contains(resource, ":") {
			return shorten(usage, 60)
		}
		shape, _, _ = strings.Cut(shape, ":")
		shapes = append(shapes, resource+" "+shape)
	}
	if len(shapes) == 2 {
		_, first, _ := strings.Cut(shapes[0], " ")
		_, second, _ := strings.Cut(shapes[1], " ")
		if first == second {
			return first
		}
	}
	return strings.Join(shapes, ", ")
}

// seedText says which seeds there are.
func seedText(seeds []uint64) string {
	switch len(seeds) {
	case 0:
		return "none"
	case 1:
		return fmt.Sprintf("one, %d", seeds[0])
	}
	return fmt.Sprintf("%d, from %d to %d", len(seeds), seeds[0], seeds[len(seeds)-1])
}

// cutText says how many runs are not whole.
func cutText(r *result.Result) string {
	cut, missing, all := 0, 0, 0
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Profiles {
			runs := r.Scenarios[i].Profiles[j].Runs
			all += len(r.Seeds)
			missing += max(len(r.Seeds)-len(runs), 0)
			for k := range runs {
				if runs[k].Interrupted {
					cut++
				}
			}
		}
	}
	if cut+missing == 0 && !r.Interrupted {
		return ""
	}
	return fmt.Sprintf("Of %d runs, %d were interrupted and %d not begun. Figures are of whole runs where a profile has any, and differences of whole pairs only.", all, cut, missing)
}
