package report

import (
	"cmp"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// verdict classifies the difference of a figure between two profiles.
type verdict string

// The verdicts. A difference is clear if 0 is not in its interval. Only clear differences of figures
// that have a better direction are better or worse.
const (
	better     verdict = "better"
	worse      verdict = "worse"
	different  verdict = "differs"
	unclear    verdict = "not clear"
	singlePair verdict = "one pair"
	equal      verdict = "equal"
	noPair     verdict = "no pair"
)

// assess returns the verdict on a difference of a figure to the mean of the first profile.
func assess(figure result.Definition, d *result.Difference, base float64) verdict {
	switch {
	case d == nil || !format.IsFinite(d.Mean):
		return noPair
	case d.Less == 0 && d.More == 0 || negligible(d, base):
		return equal
	case d.Interval == nil:
		return singlePair
	case !d.Interval.ExcludesZero:
		return unclear
	case figure.Direction == result.Neutral:
		return different
	case d.Mean < 0:
		return better
	}
	return worse
}

// rounding is the relative difference of sums that is attributed to the order of additions.
const rounding = 1e-9

// negligible reports whether a difference is at most a rounding error.
func negligible(d *result.Difference, base float64) bool {
	largest := math.Abs(d.Mean)
	if d.Interval != nil {
		largest = Max(largest, math.Abs(d.Interval.Low), math.Abs(d.Interval.High))
	}
	return largest <= rounding*math.Abs(base)
}

// comparison compares a profile with the first profile.
type comparison struct {
	Profile, Base string
	// Overload is the difference of the overload time, OverloadVerdict the verdict on it.
	Overload        string
	OverloadVerdict verdict
	OverloadClass   string
	// Headline describes the overload time in a sentence.
	Headline string
	// Better, Worse and Differs describe the figures with these verdicts.
	Better  []string
	Worse   []string
	Differs []string
	// Unclear and Equal are the numbers of figures with these verdicts.
	Unclear, Equal int
	// Note states why there are no verdicts.
	Note string
}

// compare compares a profile with the first profile.
func compare(r *result.Result, base, other *result.Profile) comparison {
	c := comparison{Profile: other.Name, Base: base.Name}
	figures := map[verdict]int{}
	for _, figure := range result.Figures {
		f, ok := other.Figures[figure.Name]
		if !ok {
			figures[noPair]++
			continue
		}
		mean := base.Figures[figure.Name].Mean
		v := assess(r.Source.Directed(figure), f.Difference, mean)
		figures[v]++
		text := figure.Title() + differenceText(f.Difference, mean)
		switch v {
		case better:
			c.Better = append(c.Better, text)
		case worse:
			c.Worse = append(c.Worse, text)
		case different:
			c.Differs = append(c.Differs, text)
		default:
		}
	}
	c.Unclear, c.Equal = figures[unclear], figures[equal]
	c.Headline = overload.headline(base.Figures, other.Figures)
	d, mean := other.Figures[overload.figure.Name].Difference, base.Figures[overload.figure.Name].Mean
	c.OverloadVerdict = assess(overload.figure, d, mean)
	c.OverloadClass = classes[c.OverloadVerdict]
	if d != nil && c.OverloadVerdict != equal {
		c.Overload = cmp.Or(format.Percent(d.Mean, mean), format.Signed(d.Mean, differenceDecimals(d)))
	}
	switch {
	case figures[noPair] == len(result.Figures):
		c.Note = "No pair of runs with the same seed completed: there is nothing to compare."
	case figures[singlePair] > 0:
		c.Note = "There is only one pair of runs: a difference may be chance. Run with more seeds for confidence intervals."
	}
	return c
}

// differenceText formats a difference with its percentage and its interval.
func differenceText(d *result.Difference, base float64) string {
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

// meanAndInterval returns the mean of a difference and the ends of its interval.
func meanAndInterval(d *result.Difference) []float64 {
	if d.Interval == nil {
		return []float64{d.Mean}
	}
	return []float64{d.Mean, d.Interval.Low, d.Interval.High}
}

// differenceDecimals returns the number of decimals with which to format a difference.
func differenceDecimals(d *result.Difference) int {
	return enoughDecimals(d, format.Decimals(meanAndInterval(d)...))
}

// enoughDecimals increases decimals until no value other than 0 is shown as 0: the sign of an end of
// the interval decides whether the difference is clear.
func enoughDecimals(d *result.Difference, decimals int) int {
	for _, v := range meanAndInterval(d) {
		for v != 0 && decimals < 2*format.MaxDecimals && strings.Trim(format.Format(v, decimals), format.Minus+"0.") == "" {
			decimals++
		}
	}
	return decimals
}

// intervalText formats the interval of a difference.
func intervalText(d *result.Difference, decimals int) string {
	return "[" + format.Signed(d.Interval.Low, decimals) + ", " + format.Signed(d.Interval.High, decimals) + "]"
}

// topic is a figure, the time in which nodes or pods are in a state, with the words of its headlines.
type topic struct {
	figure result.Definition
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
	definition, _ := result.FigureByName(figure)
	return topic{definition, state, unit, baseUnit, never}
}

// headline compares two profiles in a sentence.
func (t *topic) headline(base, other map[string]result.Figure) string {
	before, ok := base[t.figure.Name]
	after, both := other[t.figure.Name]
	if !ok || !both {
		return ""
	}
	value := format.Auto(after.Mean) + t.unit
	values := value + " instead of " + format.Auto(before.Mean) + t.baseUnit + ", a difference of" +
		differenceText(after.Difference, before.Mean)
	switch assess(t.figure, after.Difference, before.Mean) {
	case better:
		return sentence(t.state) + " for less time: " + values + "; this is clear."
	case worse:
		return sentence(t.state) + " for more time: " + values + "; this is clear."
	case unclear:
		return "Whether " + t.state + " for more or less time is not clear: " + values + "."
	case singlePair:
		return "With one seed, " + t.state + " for " + values + "."
	case equal:
		if after.Mean == 0 && t.never != "" {
			return t.never
		}
		return sentence(t.state) + " for the same time: " + value + "."
	default:
		return ""
	}
}
