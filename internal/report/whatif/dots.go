package whatif

import (
	"fmt"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// The sizes of a picture of dots.
const (
	dotsWidth  = 860.0
	dotsLabels = 210.0
	dotsRow    = 22.0
	dotsHead   = 60.0
	dotsFoot   = 40.0
)

// dotColours tell profiles apart, also for those who see colours differently.
var dotColours = []string{"#000000", "#e69f00", "#0072b2", "#cc79a7", "#009e73", "#d55e00", "#56b4e9", "#8c6d31"}

// Dots returns a picture, an SVG that stands by itself, of one figure in every
// scenario: a row for each, and in it a dot for each profile at its mean over the
// seeds. The first profile is a stroke. A dot is filled where the difference to it
// is more than chance. Figures that are counts of what goes wrong, which differ by
// orders of magnitude, are on a scale of powers of ten that begins at 0.
func Dots(r *result.Result, figure string) (string, error) {
	definition, ok := result.FigureByName(figure)
	if !ok {
		return "", fmt.Errorf("figure: found %q, want one of those of a result", figure)
	}
	label := definition.Title()
	height := dotsHead + dotsRow*float64(len(r.Scenarios)) + dotsFoot
	d := &drawing{}
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" role="img" font-family="sans-serif" font-size="12">`, dotsWidth, height, dotsWidth, height)
	d.f(`<title>%v</title><rect width="100%%" height="100%%" fill="#fff"/>`, label)
	d.f(`<text x="%v" y="18" font-size="14" font-weight="bold">%v</text>`, dotsLabels, label)
	dotsLegend(d, r.Profiles)
	axis := dotsAxis(r, definition)
	bottom := height - dotsFoot
	for _, tick := range axis.ticks() {
		x := axis.at(tick.value)
		d.f(`<path d="M%v %vV%v" stroke="#ddd"/><text x="%v" y="%v" text-anchor="middle" fill="#444">%v</text>`, x, dotsHead, bottom, x, bottom+16, tick.label)
	}
	for i := range r.Scenarios {
		y := dotsHead + dotsRow*(float64(i)+0.5)
		d.f(`<text x="%v" y="%v" text-anchor="end">%v</text><path d="M%v %vH%v" stroke="#eee"/>`, dotsLabels-12, y+4, ScenarioLabel(&r.Scenarios[i]), dotsLabels, y, dotsWidth-20)
		dotsOf(d, &r.Scenarios[i], definition, axis, y)
	}
	d.WriteString("</svg>\n")
	return d.String(), nil
}

// dotsLegend says which colour is which profile.
func dotsLegend(d *drawing, profiles []string) {
	x := dotsLabels
	for i, name := range profiles {
		colour := dotColours[i%len(dotColours)]
		if i == 0 {
			d.f(`<path d="M%v 34V46" stroke="%v" stroke-width="3"/>`, x+4, colour)
		} else {
			d.f(`<circle cx="%v" cy="40" r="5" fill="%v"/>`, x+4, colour)
		}
		d.f(`<text x="%v" y="44">%v</text>`, x+13, name)
		x += 32 + 6.5*float64(len(name))
	}
}

// dotsOf draws a row.
func dotsOf(d *drawing, s *result.Scenario, figure result.Definition, axis dotsScale, y float64) {
	base := 0.0
	for i := range s.Profiles {
		value, ok := s.Profiles[i].Figures[figure.Name]
		if !ok {
			continue
		}
		x, colour := axis.at(value.Mean), dotColours[i%len(dotColours)]
		if i == 0 {
			base = value.Mean
			d.f(`<path d="M%v %vV%v" stroke="%v" stroke-width="3"/>`, x, y-8, y+8, colour)
			continue
		}
		fill := "none"
		switch judge(figure, value.Difference, base) {
		case better, worse, different:
			fill = colour
		default:
		}
		d.f(`<circle cx="%v" cy="%v" r="5" fill="%v" stroke="%v" stroke-width="1.5" fill-opacity="0.85"/>`, x, y, fill, colour)
	}
}

// dotsScale is a scale that may be one of powers of ten: of 1 + v.
type dotsScale struct {
	scale
	powers bool
}

// dotsAxis returns the scale that all means of a figure are on.
func dotsAxis(r *result.Result, figure result.Definition) dotsScale {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Profiles {
			if value, ok := r.Scenarios[i].Profiles[j].Figures[figure.Name]; ok && finite(value.Mean) {
				low, high = min(low, value.Mean), max(high, value.Mean)
			}
		}
	}
	if figure.Scale == result.Logarithmic {
		return dotsScale{newScale(0, math.Log10(1+max(high, 1)), dotsLabels, dotsWidth-30), true}
	}
	margin := (high - low) * 0.05
	return dotsScale{newScale(low-margin, high+margin, dotsLabels, dotsWidth-30), false}
}

// at returns the place of a value.
func (s dotsScale) at(v float64) float64 {
	if s.powers {
		v = math.Log10(1 + max(v, 0))
	}
	return s.scale.at(v)
}

// ticks returns where the axis is marked.
func (s dotsScale) ticks() []tick {
	if !s.powers {
		return s.scale.ticks(8)
	}
	marks := []tick{{0, "0"}}
	for power := 1.0; math.Log10(1+power) <= s.high && len(marks) < maxTicks; power *= 10 {
		marks = append(marks, tick{power, number(power, 0)})
	}
	return marks
}

// ScenarioLabel names a scenario shortly: its limits, and the shape of what pods
// use without its keys.
func ScenarioLabel(s *result.Scenario) string {
	var parts []string
	if s.Limits != "" {
		parts = append(parts, s.Limits)
	}
	var kinds []string
	for use := range strings.SplitSeq(s.Usage, ";") {
		_, shape, _ := strings.Cut(use, "=")
		kind, _, _ := strings.Cut(shape, ":")
		if len(kinds) == 0 || kinds[0] != kind {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(append(parts, strings.Join(kinds, "/")), ", ")
}
