package whatif

import (
	"html/template"
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// The size of a dot with its whisker.
const (
	whiskerWidth  = 150.0
	whiskerHeight = 18.0
	whiskerMargin = 6.0
)

// whiskerScale returns the scale of one figure: around zero, and as wide as the
// widest of the differences that are more than rounding.
func whiskerScale(differences []*result.Difference, base float64) scale {
	var reach float64
	for _, d := range differences {
		if d == nil || negligible(d, base) {
			continue
		}
		reach = most(reach, math.Abs(d.Mean))
		if d.Interval != nil {
			reach = most(reach, math.Abs(d.Interval.Low), math.Abs(d.Interval.High))
		}
	}
	return newScale(-reach, reach, whiskerMargin, whiskerWidth-whiskerMargin)
}

// around returns the place of a value on a scale around zero. Without any
// difference the scale has no width, and everything is at its middle.
func around(s scale, v float64) float64 {
	if s.low >= 0 {
		return (s.start + s.stop) / 2
	}
	return s.at(v)
}

// classes of what is drawn, by what it amounts to.
var classes = map[judgement]string{better: "better", worse: "worse", different: "differs"}

// whisker draws a difference as a dot and its interval as a line. The figures are
// beside it in the table, so that it says nothing to those who are read to.
func whisker(s scale, d *result.Difference, is judgement) template.HTML {
	g := &drawing{}
	middle := whiskerHeight / 2
	g.f(`<svg class="w %v" viewBox="0 0 %v %v" width="%v" height="%v" aria-hidden="true">`, classes[is], whiskerWidth, whiskerHeight, whiskerWidth, whiskerHeight)
	g.f(`<path class="z" d="M%v 0V%v"/>`, around(s, 0), whiskerHeight)
	if d == nil || !finite(d.Mean) {
		return g.end()
	}
	if is == equal {
		d = &result.Difference{}
	}
	if d.Interval != nil {
		g.f(`<path class="l" d="M%v %vH%v"/>`, around(s, d.Interval.Low), middle, around(s, d.Interval.High))
	}
	g.f(`<circle cx="%v" cy="%v" r="4"/>`, around(s, d.Mean), middle)
	return g.end()
}
