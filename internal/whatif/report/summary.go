package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// summary is the box at the top of a report: what to do, its effect, its price, and the evidence.
type summary struct {
	Recommendation string
	// Of is the profile that Effect and Price describe if no profile is recommended: the alternative with the least overload.
	Of string
	// Effect and Price have a sentence for each scenario that they differ in.
	Effect, Price []string
	Evidence      []string
}

// harm are the figures that a recommended profile must not make clearly worse in any scenario.
var harm = []string{"overloadMinutes", "memoryOverruns", "victims", "unschedulable", "pendingSecondsP95"}

// maxSentences is the number of scenarios that the box describes.
const maxSentences = 4

// newSummary returns the box. It is nil if nothing is compared, and after a search, which has its own verdict.
func newSummary(r *result.Result) *summary {
	if len(r.Profiles) < 2 || len(r.Scenarios) == 0 || r.Tuning != nil {
		return nil
	}
	s := &summary{Evidence: evidence(r)}
	if len(r.Seeds) > 1 && r.Scenarios[0].Profiles[0].Slack != "" {
		s.recommendSlack(r)
		return s
	}
	switch best := bestProfile(r); {
	case len(r.Seeds) < 2:
		s.Recommendation = "No recommendation: one pair of runs may differ by chance. Run with more seeds."
		s.describeOther(r)
	case best > 0:
		s.Recommendation = "Use " + r.Profiles[best] + " in place of " + r.Profiles[0] + "."
		s.describe(r, best, &overload)
	default:
		s.Recommendation = "Keep " + r.Profiles[0] + ": no other profile overloads nodes for clearly less time without doing " +
			"clear harm elsewhere."
		s.describeOther(r)
	}
	return s
}

// describeOther adds the effect and the price of the profile with the least overload, other than the first profile.
func (s *summary) describeOther(r *result.Result) {
	best, least := 1, sumOfOverload(r, 1)
	for i := 2; i < len(r.Profiles); i++ {
		if sum := sumOfOverload(r, i); sum < least {
			best, least = i, sum
		}
	}
	s.Of = r.Profiles[best]
	s.describe(r, best, &overload)
}

// sumOfOverload returns the overload of a profile in all scenarios.
func sumOfOverload(r *result.Result, profile int) (sum float64) {
	for i := range r.Scenarios {
		sum += r.Scenarios[i].Profiles[profile].Figures[overload.figure.Name].Mean
	}
	return sum
}

// bestProfile returns the index of the profile with the least overload, 0 if there is none. Its overload must be
// clearly less in one scenario, and none of its harm figures clearly worse in any.
func bestProfile(r *result.Result) int {
	best, least := 0, 0.0
	for i := 1; i < len(r.Profiles); i++ {
		clear, harmful := false, false
		for j := range r.Scenarios {
			base, other := &r.Scenarios[j].Profiles[0], &r.Scenarios[j].Profiles[i]
			clear = clear || assessFigure(r, base, other, overload.figure.Name) == better
			for _, name := range harm {
				harmful = harmful || assessFigure(r, base, other, name) == worse
			}
		}
		if sum := sumOfOverload(r, i); clear && !harmful && (best == 0 || sum < least) {
			best, least = i, sum
		}
	}
	return best
}

// assessFigure returns the verdict on a figure of two profiles, noPair if they do not have it.
func assessFigure(r *result.Result, base, other *result.Profile, name string) verdict {
	definition, defined := result.FigureByName(name)
	f, ok := other.Figures[name]
	if !ok || !defined {
		return noPair
	}
	return assess(r.Source.Directed(definition), f.Difference, base.Figures[name].Mean)
}

// describe adds the effect of a profile on a topic, and its price.
func (s *summary) describe(r *result.Result, profile int, effect *topic) {
	for i := range r.Scenarios {
		prefix := ""
		if len(r.Scenarios) > 1 {
			prefix = fmt.Sprintf("Scenario %d: ", i+1)
		}
		base, other := &r.Scenarios[i].Profiles[0], &r.Scenarios[i].Profiles[profile]
		if i >= maxSentences {
			rest := fmt.Sprintf("%d more %s: see below.", len(r.Scenarios)-i, format.Noun(len(r.Scenarios)-i, "scenario"))
			s.Effect, s.Price = append(s.Effect, rest), append(s.Price, rest)
			return
		}
		if text := effect.headline(base.Figures, other.Figures); text != "" {
			s.Effect = append(s.Effect, prefix+text)
		}
		c := compare(r, base, other)
		if len(c.Worse) == 0 {
			s.Price = append(s.Price, prefix+"No figure is clearly worse."+nodes(base, other))
		} else {
			s.Price = append(s.Price, prefix+"Clearly worse: "+strings.Join(c.Worse, "; ")+"."+nodes(base, other))
		}
	}
	s.Effect, s.Price = slices.Compact(s.Effect), slices.Compact(s.Price)
}

// nodes returns the number of nodes that the profiles use, or their cost if nodes have prices.
func nodes(base, other *result.Profile) string {
	for _, name := range []string{"cost", "nodesUsed"} {
		f, ok := other.Figures[name]
		definition, defined := result.FigureByName(name)
		if !ok || !defined {
			continue
		}
		before := base.Figures[name].Mean
		if f.Difference == nil || negligible(f.Difference, before) {
			return fmt.Sprintf(" %s: %s with both.", sentence(definition.Title()), format.Auto(f.Mean))
		}
		return fmt.Sprintf(" %s: %s instead of %s.", sentence(definition.Title()), format.Auto(f.Mean), format.Auto(before))
	}
	return ""
}

// evidence returns the evidence of a result: its runs, input, backtest and assumptions.
func evidence(r *result.Result) []string {
	out := []string{
		fmt.Sprintf(
			"%d pairs of simulated runs for each scenario, %s, %s. Intervals are for %s of the mean over seeds.",
			len(r.Seeds), format.Things(r.Source.Nodes, "node"), format.Things(r.Source.Pods, "pod"),
			format.Format(100*r.Settings.Level, 0)+format.ThinSpace+"%",
		),
	}
	if len(r.Seeds) == 1 {
		out[0] = fmt.Sprintf("One pair of simulated runs, %s, %s.",
			format.Things(r.Source.Nodes, "node"), format.Things(r.Source.Pods, "pod"))
	}
	if usage := r.Scenarios[0].Usage; usage == "recorded" || usage == "measured" {
		out = append(out, "The usage of pods is "+usage+".")
	}
	if r.Backtest != nil {
		out = append(out, r.Backtest.Summary())
	}
	for _, text := range r.Assumed {
		if strings.Contains(text, "usage") || strings.HasPrefix(text, "recorded ") || strings.Contains(text, "the recording") {
			out = append(out, sentence(text)+".")
		}
	}
	if n := r.Source.Unlimited; n > 0 {
		out = append(out, fmt.Sprintf("%s of %s without a CPU or memory limit: limit ratios count the requests of such pods, so that a "+
			"difference in them is neither better nor worse.", format.Count(n), format.Things(r.Source.Pods, "pod")))
	}
	return out
}

// sentence returns a text that is not empty with a capital letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
