package whatif

import (
	"cmp"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// judgement is what a difference amounts to.
type judgement string

// The judgements. Only a clear difference of a figure that is better low is better
// or worse.
const (
	better    judgement = "better"
	worse     judgement = "worse"
	different judgement = "differs"
	unclear   judgement = "not clear"
	unsure    judgement = "one pair"
	equal     judgement = "equal"
	unknown   judgement = "no pair"
)

// judge says what a difference amounts to.
func judge(figure result.Definition, d *result.Difference, base float64) judgement {
	switch {
	case d == nil || !finite(d.Mean):
		return unknown
	case d.Less == 0 && d.More == 0 || negligible(d, base):
		return equal
	case d.Interval == nil:
		return unsure
	case !d.Interval.ExcludesZero:
		return unclear
	case figure.Direction == result.Neutral:
		return different
	case d.Mean < 0:
		return better
	}
	return worse
}

// rounding is how far, as a part of themselves, sums may be apart of the same
// numbers that were added up in another order.
const rounding = 1e-9

// negligible reports whether a difference is no more than rounding.
func negligible(d *result.Difference, base float64) bool {
	reach := math.Abs(d.Mean)
	if d.Interval != nil {
		reach = most(reach, math.Abs(d.Interval.Low), math.Abs(d.Interval.High))
	}
	return reach <= rounding*math.Abs(base)
}

// verdict is how one profile compares with the first.
type verdict struct {
	Profile, Base string
	// Overload is by how much the time of overload differs, and whether that is
	// clear.
	Overload      string
	OverloadIs    judgement
	OverloadClass string
	// Headline is on the time of overload, the figure that the others explain.
	Headline string
	Better   []string
	Worse    []string
	Differs  []string
	// Unclear is how many figures differ by no more than chance may, Equal how many
	// not at all.
	Unclear, Equal int
	// Note says why there is no more to be said.
	Note string
}

// judgeProfile compares a profile with the first one.
func judgeProfile(base, other *result.Profile) verdict {
	v := verdict{Profile: other.Name, Base: base.Name}
	counted := map[judgement]int{}
	for _, named := range result.Figures {
		figure, ok := other.Figures[named.Name]
		if !ok {
			counted[unknown]++
			continue
		}
		was := base.Figures[named.Name].Mean
		is := judge(named, figure.Difference, was)
		counted[is]++
		text := describe(named.Title(), figure.Difference, was)
		switch is {
		case better:
			v.Better = append(v.Better, text)
		case worse:
			v.Worse = append(v.Worse, text)
		case different:
			v.Differs = append(v.Differs, text)
		default:
		}
	}
	v.Unclear, v.Equal = counted[unclear], counted[equal]
	v.Headline = headline(base.Figures, other.Figures)
	is, was := other.Figures[overload].Difference, base.Figures[overload].Mean
	v.OverloadIs = judge(overloadFigure, is, was)
	v.OverloadClass = classes[v.OverloadIs]
	if is != nil && v.OverloadIs != equal {
		v.Overload = cmp.Or(percent(is.Mean, was), signed(is.Mean, differenceDecimals(is)))
	}
	switch {
	case counted[unknown] == len(result.Figures):
		v.Note = "No pair of runs went to its end, so that nothing can be compared."
	case counted[unsure] > 0:
		v.Note = "There is one pair of runs only: a difference may be chance. More seeds tell."
	}
	return v
}

// describe says in words and figures what a difference is.
func describe(label string, d *result.Difference, base float64) string {
	if d == nil {
		return label
	}
	text := label + " " + signed(d.Mean, differenceDecimals(d))
	if part := percent(d.Mean, base); part != "" {
		text += " (" + part + ")"
	}
	if d.Interval != nil {
		text += ", " + intervalText(d, differenceDecimals(d))
	}
	return text
}

// valuesOf returns the mean of a difference and the ends of its interval.
func valuesOf(d *result.Difference) []float64 {
	if d.Interval == nil {
		return []float64{d.Mean}
	}
	return []float64{d.Mean, d.Interval.Low, d.Interval.High}
}

// differenceDecimals returns how many digits tell something of a difference.
func differenceDecimals(d *result.Difference) int {
	return distinct(d, decimals(valuesOf(d)...))
}

// distinct returns so many digits, or more if what is not zero looked as if it
// were: it may decide what is clear.
func distinct(d *result.Difference, digits int) int {
	for _, v := range valuesOf(d) {
		for v != 0 && digits < 2*maxDecimals && strings.Trim(number(v, digits), minus+"0.") == "" {
			digits++
		}
	}
	return digits
}

func intervalText(d *result.Difference, digits int) string {
	return "[" + signed(d.Interval.Low, digits) + ", " + signed(d.Interval.High, digits) + "]"
}

// overload is the name of the figure that the others explain.
const overload = "overloadMinutes"

var overloadFigure, _ = result.FigureByName(overload)

// headline says in a sentence what becomes of overload.
func headline(base, other map[string]result.Figure) string {
	was, ok := base[overload]
	is, both := other[overload]
	if !ok || !both {
		return ""
	}
	values := number(is.Mean, decimals(is.Mean)) + " node minutes instead of " + number(was.Mean, decimals(was.Mean))
	d := is.Difference
	switch judge(overloadFigure, d, was.Mean) {
	case better:
		return "Nodes are overloaded for less time: " + values + describe(", a difference of", d, was.Mean) + "; this is clear."
	case worse:
		return "Nodes are overloaded for more time: " + values + describe(", a difference of", d, was.Mean) + "; this is clear."
	case unclear:
		return "Whether nodes are overloaded for more or less time is not clear: " + values + describe(", a difference of", d, was.Mean) + "."
	case unsure:
		return "With one seed, nodes are overloaded for " + values + describe(", a difference of", d, was.Mean) + "."
	case equal:
		if is.Mean == 0 {
			return "No node is overloaded, with neither of the two."
		}
		return "Nodes are overloaded for as long as before: " + number(is.Mean, decimals(is.Mean)) + " node minutes."
	default:
		return ""
	}
}
