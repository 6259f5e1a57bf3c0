package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Recommendation states what a comparison shows: what to do, its effect, its price, and the evidence. Texts are sentences.
type Recommendation struct {
	// Headline states what to do.
	Headline string `json:"headline"`
	// Profile is the name of the profile to use.
	Profile string `json:"profile"`
	// Of is the profile that Effect and Price describe if no profile is recommended: the alternative with the least cost or overload.
	Of string `json:"of,omitempty"`
	// Effect and Price have at most one sentence on the figures; the price of slack has a second one.
	Effect   []string `json:"effect"`
	Price    []string `json:"price"`
	Evidence []string `json:"evidence"`
	// Apply states how to use the profile, empty if it is kept or only the user knows.
	Apply string `json:"apply,omitempty"`
}

// Describes reports whether Effect and Price are about a profile.
func (s *Recommendation) Describes(profile string) bool { return profile == cmp.Or(s.Of, s.Profile) }

// Conclude sets the verdicts, the recommendation and the notes from the figures of the profiles. There is no recommendation if nothing
// is compared.
func (r *Result) Conclude() {
	r.Recommendation, r.Notes = nil, r.notes()
	r.setModelErrors()
	if len(r.Scenario.Profiles) < 2 {
		return
	}
	r.setVerdicts()
	s := &Recommendation{Profile: r.Profiles[0], Effect: []string{}, Price: []string{}, Evidence: evidence(r)}
	r.Recommendation = s
	topic, keep := r.topics()[0], "overloads nodes for clearly less time without"
	switch topic {
	case &cost:
		keep = "costs clearly less or overloads nodes for clearly less time, without"
	case &saturation:
		keep = "saturates nodes for clearly less time without"
	}
	best := least(improving(r), func(profile int) float64 { return r.mean(profile, topic.figure.Name) })
	switch {
	case r.nothingScheduled():
		s.Headline = "Cannot tell: no pod was scheduled with any profile."
		return
	case topic == &overload && r.neverOverloaded():
		s.describeIdle(r)
		return
	case r.Pairs() < 2 && !r.Source.Exact:
		s.Headline = "Cannot tell: one pair of runs may differ by chance. " + r.moreRuns() + "."
	case topic == &pending:
		s.recommendSlack(r)
		return
	case best > 0:
		s.use(r, best, ".")
		s.describe(r, best)
		return
	case r.Interrupted:
		s.Headline = "Cannot tell: the runs were interrupted."
	default:
		s.Headline = "Keep " + r.Profiles[0] + ": no other profile " + keep + " doing clear harm elsewhere."
	}
	s.describeOther(r, topic.figure.Name)
}

// setModelErrors sets the error of the model, which a backtest has, in differences of the same figures.
func (r *Result) setModelErrors() {
	if r.Backtest == nil || r.Shard != nil {
		return
	}
	for _, b := range r.Backtest.Figures {
		for _, p := range r.Scenario.Profiles {
			if d := p.Figures[b.Name].Difference; d != nil && b.Unit == nodeMinutes {
				d.ModelError = math.Abs(b.Simulated - b.Measured)
			}
		}
	}
}

// describeIdle states that no node was overloaded, and which profile leaves clearly more headroom on the fullest node.
func (s *Recommendation) describeIdle(r *Result) {
	s.describeOther(r, fullest[0])
	s.Headline = "Cannot tell: no node was overloaded with any profile."
	if strings.Contains(strings.Join(s.Effect, ""), moreHeadroom) {
		s.Headline = "No node was overloaded with any profile; " + s.Of + " leaves more headroom on the fullest node."
	}
}

// setVerdicts sets the verdict on each profile after the first.
func (r *Result) setVerdicts() {
	profiles := r.Scenario.Profiles
	for i := 1; i < len(profiles); i++ {
		profiles[i].Verdict = new(verdictOn(r, &profiles[0], &profiles[i]))
	}
}

// use recommends a profile.
func (s *Recommendation) use(r *Result, profile int, condition string) {
	s.Profile = r.Profiles[profile]
	s.Headline = "Use " + s.Profile + " in place of " + r.Profiles[0] + condition
	slack := r.Scenario.Profiles[profile].Slack
	name := strings.TrimSuffix(s.Profile, ", slack "+slack)
	switch isSlack := r.comparesSlack(); {
	case isSlack && strings.HasSuffix(slack, "%"):
		s.Apply = `spec.minRate: "` + slack + `" of the ResourceSlack`
	case isSlack:
	case slices.Contains(ChartProfiles, name):
		s.Apply = "Helm value scheduler.profiles: [{schedulerName: plimsoll-scheduler, use: " + name + "}]"
	case strings.HasSuffix(name, ".yaml"):
		s.Apply = "helm upgrade --set-file scheduler.config=" + name
	default:
		s.Apply = "Helm value scheduler.config, with the configuration of " + name
	}
}

// ChartProfiles are the profiles that the Helm chart has (scheduler.profiles).
var ChartProfiles = []string{"allocatable-least", "batch", "default", "limits", "low-risk", "most-allocated", "packed", "predicted"}

// describeOther adds the effect and the price of the profile with the smallest value of a figure, other than the first profile.
func (s *Recommendation) describeOther(r *Result, figure string) {
	others := make([]int, len(r.Profiles)-1)
	for i := range others {
		others[i] = i + 1
	}
	other := least(others, func(profile int) float64 { return r.mean(profile, figure) })
	s.Of = r.Profiles[other]
	s.describe(r, other)
}

// mean returns the mean of a figure of a profile.
func (r *Result) mean(profile int, figure string) float64 {
	return r.Scenario.Profiles[profile].Figures[figure].Mean
}

// least returns the first of the profiles with the smallest value, 0 if there are none.
func least(profiles []int, value func(profile int) float64) int {
	if len(profiles) == 0 {
		return 0
	}
	return slices.MinFunc(profiles, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
}

// improving returns the indexes of the profiles that are better than the first profile.
func improving(r *Result) []int {
	var profiles []int
	for i := 1; i < len(r.Scenario.Profiles); i++ {
		if r.Scenario.Profiles[i].Verdict.Answer == Better {
			profiles = append(profiles, i)
		}
	}
	return profiles
}

// describe adds the effect of a profile, and its price.
func (s *Recommendation) describe(r *Result, profile int) {
	base, other := &r.Scenario.Profiles[0], &r.Scenario.Profiles[profile]
	if text := other.Verdict.Sentence; text != "" {
		s.Effect = append(s.Effect, text)
	}
	price := "No figure is clearly worse."
	if c := NewComparison(r, base, other); len(c.Worse) > 0 {
		price = "Clearly worse: " + strings.Join(c.Worse, "; ") + "."
	}
	s.Price = append(s.Price, price+nodes(base, other))
}

// nodes returns the number of nodes that the profiles use, or their cost if nodes have prices.
func nodes(base, other *Profile) string {
	for _, name := range []string{"cost", "nodesUsed"} {
		f, ok := other.Figures[name]
		if !ok {
			continue
		}
		definition, _ := FigureByName(name)
		before := base.Figures[name].Mean
		if f.Difference == nil || Negligible(f.Difference, before) {
			return fmt.Sprintf(" %s: %s with both.", sentence(definition.Title()), format.Auto(f.Mean))
		}
		return fmt.Sprintf(" %s: %s instead of %s.", sentence(definition.Title()), format.Auto(f.Mean), format.Auto(before))
	}
	return ""
}

// evidence returns the evidence of a result: its runs, input, backtest and assumptions.
func evidence(r *Result) []string {
	runs := format.Of(len(r.Seeds), "pair")
	if len(r.Seeds) == 1 {
		runs = "One pair"
	}
	out := []string{
		fmt.Sprintf("%s of simulated runs, %s, %s.", runs, format.Things(r.Source.Nodes, "node"), format.Things(r.Source.Pods, "pod")),
	}
	if r.Pairs() > 1 {
		out[0] += fmt.Sprintf(" Intervals are for %s of the mean over %s.",
			format.Format(100*r.Settings.Level, 0)+format.ThinSpace+"%", format.Of(r.Pairs(), r.PairNoun()))
	}
	if r.Source.Exact {
		out[0] += " Nothing is sampled: another run would be the same."
	}
	if usage := r.Scenario.Usage; usage == "recorded" || usage == "measured" {
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

// enoughReduction is the fraction of the largest reduction of the pending time that a recommended rate of slack reaches.
const enoughReduction = 2.0 / 3

// recommendSlack recommends an amount of slack, with its effect on the time that pods are pending.
func (s *Recommendation) recommendSlack(r *Result) {
	best := bestSlack(r)
	if best == 0 {
		s.Headline = "Keep " + r.Profiles[0] + ": no other amount of slack clearly shortens the time that pods are pending " +
			"without doing clear harm elsewhere."
		s.Of = r.Profiles[1]
		s.describe(r, 1)
		return
	}
	s.use(r, best, ", if less waiting is worth its price.")
	s.describe(r, best)
	s.Price = append(s.Price, "Of the amounts compared, it is the cheapest with at least two thirds of the largest clear reduction; "+
		"the curve below shows all.")
}

// SlackNames returns the names of all profiles but the first. If profiles differ only by their slack, the common prefix
// is removed: "slack 10%" for "default, slack 10%".
func SlackNames(r *Result) []string {
	names := slices.Clone(r.Profiles[1:])
	if len(r.Scenario.Profiles) == 0 || r.Scenario.Profiles[0].Slack == "" {
		return names
	}
	common := strings.TrimSuffix(r.Profiles[0], "slack "+r.Scenario.Profiles[0].Slack)
	for i, name := range names {
		if names[i] = strings.TrimPrefix(name, common); names[i] == name {
			return r.Profiles[1:]
		}
	}
	return names
}

// bestSlack returns the index of the cheapest profile that improves the pending time by at least enoughReduction of the largest
// reduction, 0 if there is none.
func bestSlack(r *Result) int {
	waiting := func(profile int) float64 { return r.mean(profile, pending.figure.Name) }
	profiles := improving(r)
	largest := waiting(0) - waiting(least(profiles, waiting))
	profiles = slices.DeleteFunc(profiles, func(profile int) bool {
		reduction := waiting(0) - waiting(profile)
		return reduction <= 0 || reduction < enoughReduction*largest
	})
	return least(profiles, func(profile int) float64 { return r.mean(profile, "cost") })
}
