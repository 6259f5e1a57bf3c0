package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/report/number"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// summary is the box at the top of a report: what to do, its effect, its price, and the evidence.
type summary struct {
	Recommendation string
	// Of is the profile that Effect and Price describe if it is not recommended.
	Of string
	// Effect and Price have a sentence for each scenario that they differ in.
	Effect, Price []string
	Evidence      []string
}

// harm are the figures that a recommended profile must not make clearly worse in any scenario.
var harm = []string{"overloadMinutes", "memoryOverruns", "victims", "unschedulable", "pendingSecondsP95"}

// maxSentences is the number of scenarios that the box describes.
const maxSentences = 4

// newSummary returns the box, nil if nothing is compared, or after a search, which has its own verdict.
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
		s.Of = r.Profiles[1]
		s.describe(r, 1, headline)
	case best > 0:
		s.Recommendation = "Use " + r.Profiles[best] + " in place of " + r.Profiles[0] + "."
		s.describe(r, best, headline)
	default:
		s.Recommendation = "Keep " + r.Profiles[0] + ": no other profile overloads nodes for clearly less time without doing " +
			"clear harm elsewhere."
		s.Of = r.Profiles[1]
		s.describe(r, 1, headline)
	}
	return s
}

// bestProfile returns the index of the profile with the least overload of those that are clearly better by it in a
// scenario and not clearly worse by any figure of harm in any scenario. It returns 0 if there is none.
func bestProfile(r *result.Result) int {
	best, least := 0, 0.0
	for i := 1; i < len(r.Profiles); i++ {
		clear, harmful, sum := false, false, 0.0
		for j := range r.Scenarios {
			base, other := &r.Scenarios[j].Profiles[0], &r.Scenarios[j].Profiles[i]
			clear = clear || assessFigure(r, base, other, overload.Name) == better
			sum += other.Figures[overload.Name].Mean
			for _, name := range harm {
				harmful = harmful || assessFigure(r, base, other, name) == worse
			}
		}
		if clear && !harmful && (best == 0 || sum < least) {
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

// describe adds the effect of a profile, as a function of the figures of the first profile and of this one, and its price.
func (s *summary) describe(r *result.Result, profile int, effect func(base, other map[string]result.Figure) string) {
	for i := range r.Scenarios {
		prefix := ""
		if len(r.Scenarios) > 1 {
			prefix = fmt.Sprintf("Scenario %d: ", i+1)
		}
		base, other := &r.Scenarios[i].Profiles[0], &r.Scenarios[i].Profiles[profile]
		if i >= maxSentences {
			rest := fmt.Sprintf("%d more scenarios: see below.", len(r.Scenarios)-i)
			s.Effect, s.Price = append(s.Effect, rest), append(s.Price, rest)
			return
		}
		if text := effect(base.Figures, other.Figures); text != "" {
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

// nodes returns how many nodes the profiles use, or what they cost if nodes have prices.
func nodes(base, other *result.Profile) string {
	for _, name := range []string{"cost", "nodesUsed"} {
		f, ok := other.Figures[name]
		definition, defined := result.FigureByName(name)
		if !ok || !defined {
			continue
		}
		before := base.Figures[name].Mean
		if f.Difference == nil || negligible(f.Difference, before) {
			return " The same " + definition.Title() + ": " + number.Auto(f.Mean) + "."
		}
		title := definition.Title()
		return fmt.Sprintf(" %s: %s instead of %s.", strings.ToUpper(title[:1])+title[1:], number.Auto(f.Mean), number.Auto(before))
	}
	return ""
}

// evidence returns what the result is based on.
func evidence(r *result.Result) []string {
	out := []string{
		fmt.Sprintf(
			"%d pairs of simulated runs for each scenario, %s nodes, %s pods. Intervals are for %s of the mean over seeds.",
			len(
				r.Seeds,
			),
			number.Count(r.Source.Nodes),
			number.Count(r.Source.Pods),
			number.Format(100*r.Settings.Level, 0)+number.ThinSpace+"%",
		),
	}
	if len(r.Seeds) == 1 {
		out[0] = fmt.Sprintf("One pair of simulated runs, %s nodes, %s pods.", number.Count(r.Source.Nodes), number.Count(r.Source.Pods))
	}
	if usage := r.Scenarios[0].Usage; usage == "recorded" || usage == "measured" {
		out = append(out, "The usage of pods is "+usage+".")
	}
	if r.Backtest != nil {
		out = append(out, r.Backtest.Summary())
	}
	for _, sentence := range r.Assumed {
		if strings.Contains(sentence, "usage") || strings.Contains(sentence, "record") {
			out = append(out, strings.ToUpper(sentence[:1])+sentence[1:]+".")
		}
	}
	if n := r.Source.Unlimited; n > 0 {
		out = append(out, fmt.Sprintf("%s of %s pods lack a CPU or memory limit and count with their requests, so that limit ratios "+
			"do not show what these pods may use: they are not judged.", number.Count(n), number.Count(r.Source.Pods)))
	}
	return out
}
