package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Drawing builds an SVG element. The markup is given as format strings; numbers and texts are
// arguments, which Printf formats and escapes. The CSS classes of axes, "axis" for lines and "end"
// and "middle" for the anchors of labels, are defined by the page that embeds the drawing.
type Drawing struct{ b strings.Builder }

// New starts a drawing whose title and description are read to users who cannot see it.
func New(width, height float64, title, description string) *Drawing {
	d := &Drawing{}
	d.Printf(`<svg viewBox="0 0 %v %v" width="%v" height="%v" role="img"><title>%v</title><desc>%v</desc>`,
		width, height, width, height, title, description)
	return d
}

// newHidden starts a drawing that is hidden from screen readers.
func newHidden(width, height float64, class string) *Drawing {
	d := &Drawing{}
	d.Printf(`<svg class="%v" viewBox="0 0 %v %v" width="%v" height="%v" aria-hidden="true">`, class, width, height, width, height)
	return d
}

// Printf appends markup. It formats every float64 as a finite coordinate with at most one decimal
// and escapes every string.
func (d *Drawing) Printf(format string, arguments ...any) {
	for i, argument := range arguments {
		switch v := argument.(type) {
		case float64:
			arguments[i] = coordinate(v)
		case string:
			arguments[i] = template.HTMLEscapeString(v)
		default:
		}
	}
	fmt.Fprintf(&d.b, format, arguments...)
}

// End ends the drawing and returns its markup.
func (d *Drawing) End() template.HTML {
	d.Printf(`</svg>`)
	return template.HTML(d.b.String()) // Printf escapes all texts.
}

// Line draws a line through points, which are given as functions of their index. A point whose y is not a number is a gap.
func (d *Drawing) Line(class string, points int, x, y func(i int) float64) {
	d.Printf(`<path class="%v" d="`, class)
	command := "M"
	for i := range points {
		at := y(i)
		if math.IsNaN(at) {
			command = "M"
			continue
		}
		d.Printf("%v%v %v", command, x(i), at)
		command = "L"
	}
	d.Printf(`"/>`)
}

// XAxis draws the ticks of a horizontal axis as vertical lines from top to bottom, with labels whose
// baseline is at labelY.
func (d *Drawing) XAxis(ticks []Tick, x Scale, top, bottom, labelY float64) {
	for _, t := range ticks {
		at := x.At(t.Value)
		d.Printf(`<path class="axis" d="M%v %vV%v"/><text class="middle" x="%v" y="%v">%v</text>`, at, top, bottom, at, labelY, t.Label)
	}
}

// YAxis draws the ticks of a vertical axis as horizontal lines from left to right, with labels that
// end a gap left of them and are dropped by a part of their height.
func (d *Drawing) YAxis(ticks []Tick, y Scale, left, right, gap, drop float64) {
	for _, t := range ticks {
		at := y.At(t.Value)
		d.Printf(`<path class="axis" d="M%v %vH%v"/><text class="end" x="%v" y="%v">%v</text>`, left, at, right, left-gap, at+drop, t.Label)
	}
}

// coordinate formats a coordinate with at most one decimal, and 0 if it is not finite.
func coordinate(v float64) string {
	if !format.IsFinite(v) {
		v = 0
	}
	text := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	if text == "-0" {
		return "0"
	}
	return text
}
