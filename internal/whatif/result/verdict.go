package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Answer is how a candidate, or one of its figures, compares with the baseline.
type Answer string

// The answers. A difference is clear if 0 is not in its interval. Only clear differences of figures
// that have a better direction are better or worse.
const (
	Better Answer = "better"
	// MoreHeadroom: no node is overloaded or saturated, and the load of the fullest node is clearly lower.
	MoreHeadroom Answer = "more headroom"
	Worse        Answer = "worse"
	Different    Answer = "differs"
	Equal        Answer = "equal"
	CannotTell   Answer = "cannot tell"
)

// Verdict is the answer on a candidate in words: on a profile, on the winner of a search, or on a candidate of a shadow.
type Verdict struct {
	Candidate string `json:"candidate"`
	Answer    Answer `json:"answer"`
	// Sentence states the answer with its figures.
	Sentence string `json:"sentence"`
	// Reason is why the answer is CannotTell, if it is known.
	Reason string `json:"reason,omitempty"`
}

// AnswerOf returns the answer on the difference of a figure from the mean of the first profile. It is not clear if the error of the model
// is larger than the difference.
func AnswerOf(figure Definition, d *Difference, base float64) Answer {
	switch {
	case d == nil || !format.IsFinite(d.Mean):
		return CannotTell
	case d.Less == 0 && d.More == 0 || Negligible(d, base):
		return Equal
	case d.Interval == nil || !d.Interval.ExcludesZero || d.errs():
		return CannotTell
	case figure.Direction == Neutral:
		return Different
	case d.Mean < 0:
		return Better
	}
	return Worse
}

// errs reports whether the error of the model is larger than the difference.
func (d *Difference) errs() bool { return d.ModelError > math.Abs(d.Mean) }

// errorText states that the error of the model is larger than the difference, both as sums over the windows of a shadow.
func (r *Result) errorText(d *Difference, unit string) string {
	windows := float64(max(r.Windows, 1))
	return fmt.Sprintf("The error of the model, %s %s, is larger than the difference, %s.", format.Auto(windows*d.ModelError), unit,
		format.Auto(windows*math.Abs(d.Mean)))
}

// Negligible reports whether a difference is at most a rounding error.
func Negligible(d *Difference, base float64) bool {
	largest := math.Abs(d.Mean)
	if d.Interval != nil {
		largest = max(largest, math.Abs(d.Interval.Low), math.Abs(d.Interval.High))
	}
	return largest <= tolerance*math.Abs(base)
}

// AnswerInTables is AnswerOf in tables and lists, where a clearly lower load of the fullest node is better, too.
func AnswerInTables(figure Definition, d *Difference, base float64) Answer {
	answer := AnswerOf(figure, d, base)
	if answer == Different && d.Mean < 0 && slices.Contains(fullest, figure.Name) {
		return Better
	}
	return answer
}

// Comparison compares a profile with the first profile in a scenario.
type Comparison struct {
	Verdict
	Base string
	// Overload is the difference of the overload time.
	Overload string
	// Better, Worse and Differs describe the figures with these answers. A lower load of the fullest node is better, a higher one differs.
	Better  []string
	Worse   []string
	Differs []string
	// Unclear and Equal are the numbers of figures for which the answer is CannotTell or Equal.
	Unclear, Equal int
}

// Doubt returns the reason of the verdict, empty if its sentence states it.
func (c Comparison) Doubt() string {
	if strings.Contains(c.Sentence, c.Reason) {
		return ""
	}
	return c.Reason
}

// NewComparison compares a profile with the first profile.
func NewComparison(r *Result, base, other *Profile) Comparison {
	c := Comparison{Base: base.Name}
	if other.Verdict != nil {
		c.Verdict = *other.Verdict
	} else {
		c.Verdict = verdictOn(r, base, other)
	}
	for _, figure := range Figures {
		d, mean := other.Figures[figure.Name].Difference, base.Figures[figure.Name].Mean
		text := figure.Title() + differenceText(d, mean)
		switch AnswerInTables(r.Source.Directed(figure), d, mean) {
		case Better, MoreHeadroom:
			c.Better = append(c.Better, text)
		case Worse:
			c.Worse = append(c.Worse, text)
		case Different:
			c.Differs = append(c.Differs, text)
		case Equal:
			c.Equal++
		case CannotTell:
			c.Unclear++
		}
	}
	d, mean := other.Figures[overload.figure.Name].Difference, base.Figures[overload.figure.Name].Mean
	if d != nil && AnswerOf(overload.figure, d, mean) != Equal {
		c.Overload = cmp.Or(format.Percent(d.Mean, mean), format.Signed(d.Mean, differenceDecimals(d)))
	}
	return c
}

// verdictOn returns the verdict on a profile in a scenario: better if the figure of a topic is clearly better, and no harm figure is
// clearly worse. If one topic is clearly better and another worse, such as cost and overload, the profiles differ.
func verdictOn(r *Result, base, other *Profile) Verdict {
	v := Verdict{Candidate: other.Name}
	answers, room := map[Answer]bool{}, ""
	for i, topic := range r.topics() {
		d, mean := other.Figures[topic.figure.Name].Difference, base.Figures[topic.figure.Name].Mean
		answers[AnswerOf(topic.figure, d, mean)] = true
		v.Sentence = strings.TrimSpace(v.Sentence + " " + topic.headline(base.Figures, other.Figures))
		if topic == &saturation || topic == &overload && strings.HasSuffix(v.Sentence, overload.never) {
			room = headroom(base, other)
			v.Sentence += room
		}
		switch {
		case i > 0:
		case d == nil:
			v.Answer = CannotTell
			v.Reason = "No pair of runs with the same " + r.RunNoun() + " completed: there is nothing to compare."
			return v
		case d.Interval == nil && answers[CannotTell]:
			v.Reason = "There is only one pair of runs: a difference may be chance. " + r.moreRuns() + " for confidence intervals."
		}
	}
	if v.Answer = answerOfAll(answers); v.Answer == Equal && strings.Contains(room, moreHeadroom) && !strings.Contains(room, lessHeadroom) {
		v.Answer = MoreHeadroom
	}
	v.Sentence = cmp.Or(other.Effect, v.Sentence)
	v.addHarm(r, base, other)
	v.addDoubt(r, other)
	return v
}

// addDoubt states why the answer is CannotTell: the error of the model is larger than the difference or, if an effect is stated, chance.
func (v *Verdict) addDoubt(r *Result, other *Profile) {
	load := r.topics()[len(r.topics())-1].figure
	d := other.Figures[load.Name].Difference
	if errs := v.Reason == "" && d != nil && d.errs(); v.Answer == CannotTell && (errs || other.Effect != "") {
		if errs {
			v.Reason = r.errorText(d, load.Unit)
		}
		v.Reason = cmp.Or(v.Reason, "The difference can be chance.")
		v.Sentence = "Cannot tell. " + v.Reason + " " + v.Sentence
	}
}

// answerOfAll returns the answer to the answers on all topics.
func answerOfAll(answers map[Answer]bool) Answer {
	switch {
	case answers[Better] && answers[Worse]:
		return Different
	case answers[Worse]:
		return Worse
	case answers[Better]:
		return Better
	case answers[CannotTell]:
		return CannotTell
	}
	return Equal
}

// addHarm makes the verdict Worse if a harm figure is clearly worse.
func (v *Verdict) addHarm(r *Result, base, other *Profile) {
	var harm []string
	for _, figure := range Figures {
		d, mean := other.Figures[figure.Name].Difference, base.Figures[figure.Name].Mean
		isTopic := slices.ContainsFunc(r.topics(), func(t *topic) bool { return t.figure.Name == figure.Name })
		if figure.HasUse(isHarm) && AnswerOf(figure, d, mean) == Worse {
			if v.Answer = Worse; !isTopic {
				harm = append(harm, figure.Title()+differenceText(d, mean))
			}
		}
	}
	if len(harm) > 0 {
		v.Sentence = strings.TrimSpace(v.Sentence + " Clear harm: " + strings.Join(harm, "; ") + ".")
	}
}

// fullest are the figures of the fullest node; lower is better if no node is overloaded.
var fullest = []string{"cpuLoadMax", "cpuLoadP95", "memoryLoadMax", "memoryLoadP95"}

// moreHeadroom and lessHeadroom end the sentence about a figure of the fullest node that is clearly lower or higher.
const (
	moreHeadroom = " points more headroom"
	lessHeadroom = " points less headroom"
)

// headroom returns a sentence for each figure of the fullest node that clearly differs by a percentage point or more.
func headroom(base, other *Profile) (text string) {
	for _, name := range fullest {
		definition, _ := FigureByName(name)
		before, after := base.Figures[name].Mean, other.Figures[name]
		d := after.Difference
		if d == nil || AnswerOf(definition, d, before) != Different || math.Abs(d.Mean) < 0.01 {
			continue
		}
		effect, points := moreHeadroom, d.times(-100)
		if d.Mean > 0 {
			effect, points = lessHeadroom, d.times(100)
		}
		text += fmt.Sprintf(" %s: %s instead of %s, %.0f%s, %s.",
			sentence(definition.Title()), share(after.Mean), share(before), points.Mean, effect, intervalText(points, 0))
	}
	return text
}

// times returns a difference in another unit.
func (d *Difference) times(factor float64) *Difference {
	out := *d
	if out.Mean *= factor; d.Interval != nil {
		low, high := factor*d.Interval.Low, factor*d.Interval.High
		out.Interval = &Interval{Low: min(low, high), High: max(low, high), ExcludesZero: d.Interval.ExcludesZero}
	}
	return &out
}

// differenceText formats a difference with its percentage and its interval.
func differenceText(d *Difference, base float64) string {
	if d == nil {
		return ""
	}
	text := " " + format.Signed(d.Mean, differenceDecimals(d))
	if percentage := format.Percent(d.Mean, base); percentage != "" {
		text += " (" + percentage + ")"
	}
	if d.Interval != nil {
		text += ", " + intervalText(d, differenceDecimals(d))
	}
	return text
}

// Constant reports whether a difference is the same in all seeds: its interval has no width.
func (d *Difference) Constant() bool {
	return d.Interval != nil && d.Interval.High-d.Interval.Low <= tolerance*math.Abs(d.Mean)
}

// MeanAndInterval returns the mean of a difference and the ends of its interval.
func MeanAndInterval(d *Difference) []float64 {
	if d.Interval == nil {
		return []float64{d.Mean}
	}
	return []float64{d.Mean, d.Interval.Low, d.Interval.High}
}

// differenceDecimals returns the number of decimals with which to format a difference: no value other than 0 is shown as 0, as the sign of
// an end of the interval decides whether the difference is clear.
func differenceDecimals(d *Difference) int {
	decimals := format.Decimals(MeanAndInterval(d)...)
	for _, v := range MeanAndInterval(d) {
		for v != 0 && decimals < 2*format.MaxDecimals && strings.Trim(format.Format(v, decimals), format.Minus+"0.") == "" {
			decimals++
		}
	}
	return decimals
}

// intervalText formats the interval of a difference, which has no width if the difference does not depend on the seed.
func intervalText(d *Difference, decimals int) string {
	switch {
	case d.Less+d.Equal+d.More == 1:
		return "in the only run"
	case d.Constant():
		return "in all seeds"
	}
	return "[" + format.Signed(d.Interval.Low, decimals) + ", " + format.Signed(d.Interval.High, decimals) + "]"
}

// topic is a figure that a comparison is about, with the words of its headlines.
type topic struct {
	figure Definition
	// state is what the figure measures, completed by less, more or same and noun, or by a value.
	state, less, more, same, noun string
	// unit follows the value of a profile, baseUnit the value of the first profile.
	unit, baseUnit string
	// never is the headline if the figure is 0 with both profiles, empty for a headline with the value.
	never string
}

var (
	// overload is the topic of comparisons of profiles.
	overload = newTopic("overloadMinutes", "nodes are overloaded for", timeWords, " node minutes", "",
		"No node is overloaded with either profile.")
	// saturation is the topic of comparisons of profiles if no node is overloaded, and nodes are saturated.
	saturation = newTopic("cpuSaturationMinutes", "nodes are saturated for", timeWords, " node minutes", "", "")
	// cost is the first topic of comparisons of profiles with an autoscaler.
	cost = newTopic("cost", "the cost is", [4]string{"lower", "higher", "the same"}, "", "", "")
	// pending is the topic of comparisons of slack, which reduces it.
	pending = newTopic("pendingSecondsMean", "pods are pending for", timeWords, " s on average", " s", "")
)

var timeWords = [4]string{"less", "more", "the same", " time"}

// comparesSlack reports whether profiles have different amounts of slack.
func (r *Result) comparesSlack() bool {
	profiles := r.Scenario.Profiles
	return slices.ContainsFunc(profiles, func(p Profile) bool { return p.Slack != profiles[0].Slack })
}

// topics returns the topics of the comparison, the most important first.
func (r *Result) topics() []*topic {
	first := r.Scenario.Profiles[0]
	_, isScaled := first.Figures[cost.figure.Name]
	switch {
	case r.comparesSlack():
		return []*topic{&pending}
	case isScaled:
		return []*topic{&cost, &overload}
	case r.allRuns(func(run *Run) bool { return run.OverloadMinutes == 0 }) &&
		!r.allRuns(func(run *Run) bool { return run.CPUSaturationMinutes == 0 }):
		return []*topic{&saturation}
	}
	return []*topic{&overload}
}

func newTopic(figure, state string, words [4]string, unit, baseUnit, never string) topic {
	definition, _ := FigureByName(figure)
	return topic{definition, state, words[0], words[1], words[2], words[3], unit, baseUnit, never}
}

// headline compares two profiles in a sentence.
func (t *topic) headline(base, other map[string]Figure) string {
	before, after := base[t.figure.Name], other[t.figure.Name]
	value := format.Auto(after.Mean) + t.unit
	values := value + " instead of " + format.Auto(before.Mean) + t.baseUnit + ", a difference of" +
		differenceText(after.Difference, before.Mean)
	switch AnswerOf(t.figure, after.Difference, before.Mean) {
	case Better:
		return sentence(t.state) + " " + t.less + t.noun + ": " + values + "; this is clear."
	case Worse:
		return sentence(t.state) + " " + t.more + t.noun + ": " + values + "; this is clear."
	case Equal:
		if after.Mean == 0 && t.never != "" {
			return t.never
		}
		return sentence(t.state) + " " + t.same + t.noun + ": " + value + "."
	default:
	}
	switch d := after.Difference; {
	case d == nil:
		return ""
	case d.Interval == nil:
		return "With one seed, " + t.state + " " + values + "."
	}
	return "Whether " + t.state + " " + t.more + " or " + t.less + t.noun + " is not clear: " + values + "."
}
