package report

import (
	"html/template"
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Dimensions of a dot with its whisker.
const (
	whiskerWidth  = 150.0
	whiskerHeight = 18.0
	whiskerMargin = 6.0
)

// whiskerScale returns the scale of the differences of a figure: symmetric around 0, and wide enough
// for all differences that are not negligible.
func whiskerScale(differences []*result.Difference, base float64) Scale {
	var largest float64
	for _, d := range differences {
		if d == nil || result.Negligible(d, base) {
			continue
		}
		for _, v := range result.MeanAndInterval(d) {
			largest = Max(largest, math.Abs(v))
		}
	}
	if largest == 0 || !format.IsFinite(2*largest) {
		largest = 1
	}
	return NewScale(-largest, largest, whiskerMargin, whiskerWidth-whiskerMargin)
}

// classes has the CSS classes of the answers with a style. Answers themselves are text: their words
// could be classes of other elements.
var classes = map[result.Answer]string{
	result.Better:    "better",
	result.Worse:     "worse",
	result.Different: "differs",
	result.Equal:     "equal",
}

// whisker draws a difference as a dot and its interval as a line. It is hidden from screen readers:
// the table has the numbers.
func whisker(scale Scale, d *result.Difference, v result.Answer) template.HTML {
	g := newHidden(whiskerWidth, whiskerHeight, "whisker "+classes[v])
	middle := whiskerHeight / 2
	g.Printf(`<path class="zero" d="M%v 0V%v"/>`, scale.At(0), whiskerHeight)
	if d == nil || !format.IsFinite(d.Mean) {
		return g.End()
	}
	if v == result.Equal {
		d = &result.Difference{}
	}
	if d.Interval != nil {
		g.Printf(`<path class="interval" d="M%v %vH%v"/>`, scale.At(d.Interval.Low), middle, scale.At(d.Interval.High))
	}
	g.Printf(`<circle cx="%v" cy="%v" r="4"/>`, scale.At(d.Mean), middle)
	return g.End()
}
