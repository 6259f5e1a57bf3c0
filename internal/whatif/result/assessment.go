package result

import (
	"cmp"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Assessment classifies the difference of a figure between two profiles.
type Assessment string

// The assessments. A difference is clear if 0 is not in its interval. Only clear differences of figures
// that have a better direction are better or worse.
const (
	Better     Assessment = "better"
	Worse      Assessment = "worse"
	Different  Assessment = "differs"
	Unclear    Assessment = "not clear"
	SinglePair Assessment = "one pair"
	Equal      Assessment = "equal"
	NoPair     Assessment = "no pair"
)

// Assess assesses the difference of a figure from the mean of the first profile.
func Assess(figure Definition, d *Difference, base float64) Assessment {
	switch {
	case d == nil || !format.IsFinite(d.Mean):
		return NoPair
	case d.Less == 0 && d.More == 0 || Negligible(d, base):
		return Equal
	case d.Interval == nil:
		return SinglePair
	case !d.Interval.ExcludesZero:
		return Unclear
	case figure.Direction == Neutral:
		return Different
	case d.Mean < 0:
		return Better
	}
	return Worse
}

// Negligible reports whether a difference is at most a rounding error.
func Negligible(d *Difference, base float64) bool {
	largest := math.Abs(d.Mean)
	if d.Interval != nil {
		largest = max(largest, math.Abs(d.Interval.Low), math.Abs(d.Interval.High))
	}
	return largest <= tolerance*math.Abs(base)
}

// Comparison compares a profile with the first profile.
type Comparison struct {
	Profile, Base string
	// Overload is the difference of the overload time, OverloadVerdict its assessment.
	Overload        string
	OverloadVerdict Assessment
	// Headline describes the overload time in a sentence.
	Headline string
	// Better, Worse and Differs describe the figures with these assessments.
	Better  []string
	Worse   []string
	Differs []string
	// Unclear and Equal are the numbers of figures with these assessments.
	Unclear, Equal int
	// Note states why nothing is assessed.
	Note string
}

// NewComparison compares a profile with the first profile.
func NewComparison(r *Result, base, other *Profile) Comparison {
	c := Comparison{Profile: other.Name, Base: base.Name}
	figures := map[Assessment]int{}
	for _, figure := range Figures {
		d, mean := other.Figures[figure.Name].Difference, base.Figures[figure.Name].Mean
		v := Assess(r.Source.Directed(figure), d, mean)
		figures[v]++
		text := figure.Title() + DifferenceText(d, mean)
		switch v {
		case Better:
			c.Better = append(c.Better, text)
		case Worse:
			c.Worse = append(c.Worse, text)
		case Different:
			c.Differs = append(c.Differs, text)
		default:
		}
	}
	c.Unclear, c.Equal = figures[Unclear], figures[Equal]
	c.Headline = overload.headline(base.Figures, other.Figures)
	d, mean := other.Figures[overload.figure.Name].Difference, base.Figures[overload.figure.Name].Mean
	c.OverloadVerdict = Assess(overload.figure, d, mean)
	if d != nil && c.OverloadVerdict != Equal {
		c.Overload = cmp.Or(format.Percent(d.Mean, mean), format.Signed(d.Mean, differenceDecimals(d)))
	}
	switch {
	case figures[NoPair] == len(Figures):
		c.Note = "No pair of runs with the same seed completed: there is nothing to compare."
	case figures[SinglePair] > 0:
		c.Note = "There is only one pair of runs: a difference may be chance. Run with more seeds for confidence intervals."
	}
	return c
}

// DifferenceText formats a difference with its percentage and its interval.
func DifferenceText(d *Difference, base float64) string {
	if d == nil {
		return ""
	}
	text := " " + format.Signed(d.Mean, differenceDecimals(d))
	if percentage := format.Percent(d.Mean, base); percentage != "" {
		text += " (" + percentage + ")"
	}
	if d.Interval != nil {
		text += ", " + IntervalText(d, differenceDecimals(d))
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

// differenceDecimals returns the number of decimals with which to format a difference.
func differenceDecimals(d *Difference) int {
	return EnoughDecimals(d, format.Decimals(MeanAndInterval(d)...))
}

// EnoughDecimals increases decimals until no value other than 0 is shown as 0: the sign of an end of
// the interval decides whether the difference is clear.
func EnoughDecimals(d *Difference, decimals int) int {
	for _, v := range MeanAndInterval(d) {
		for v != 0 && decimals < 2*format.MaxDecimals && strings.Trim(format.Format(v, decimals), format.Minus+"0.") == "" {
			decimals++
		}
	}
	return decimals
}

// IntervalText formats the interval of a difference, which has no width if the difference does not depend on the seed.
func IntervalText(d *Difference, decimals int) string {
	if d.Constant() {
		return "in all seeds"
	}
	return "[" + format.Signed(d.Interval.Low, decimals) + ", " + format.Signed(d.Interval.High, decimals) + "]"
}

// topic is a figure, the time in which nodes or pods are in a state, with the words of its headlines.
type topic struct {
	figure Definition
	// state completes "for less time".
	state string
	// unit follows the value of a profile, baseUnit the value of the first profile.
	unit, baseUnit string
	// never is the headline if the time is 0 with both profiles, empty for a headline with the value.
	never string
}

var (
	// overload is the topic of comparisons of profiles.
	overload = newTopic("overloadMinutes", "nodes are overloaded", " node minutes", "", "No node is overloaded with either profile.")
	// pending is the topic of comparisons of slack, which reduces it.
	pending = newTopic("pendingSecondsMean", "pods are pending", " s on average", " s", "")
)

func newTopic(figure, state, unit, baseUnit, never string) topic {
	definition, _ := FigureByName(figure)
	return topic{definition, state, unit, baseUnit, never}
}

// headline compares two profiles in a sentence.
func (t *topic) headline(base, other map[string]Figure) string {
	before, after := base[t.figure.Name], other[t.figure.Name]
	value := format.Auto(after.Mean) + t.unit
	values := value + " instead of " + format.Auto(before.Mean) + t.baseUnit + ", a difference of" +
		DifferenceText(after.Difference, before.Mean)
	switch Assess(t.figure, after.Difference, before.Mean) {
	case Better:
		return sentence(t.state) + " for less time: " + values + "; this is clear."
	case Worse:
		return sentence(t.state) + " for more time: " + values + "; this is clear."
	case Unclear:
		return "Whether " + t.state + " for more or less time is not clear: " + values + "."
	case SinglePair:
		return "With one seed, " + t.state + " for " + values + "."
	case Equal:
		if after.Mean == 0 && t.never != "" {
			return t.never
		}
		return sentence(t.state) + " for the same time: " + value + "."
	default:
		return ""
	}
}
