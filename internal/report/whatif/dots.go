package whatif

import (
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/report/number"
	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// Dimensions of a dot plot.
const (
	dotsWidth = 860.0
	dotsLeft  = 210.0
	dotsRow   = 22.0
	dotsTop   = 60.0
	dotsFoot  = 40.0
)

// dotColors are the colors of the profiles. They can be distinguished with any color vision.
var dotColors = []string{"#000000", "#e69f00", "#0072b2", "#cc79a7", "#009e73", "#d55e00", "#56b4e9", "#8c6d31"}

// Dots returns a dot plot of a figure as the content of an SVG file: a row for each scenario with a
// dot for each profile at its mean over the seeds. The first profile is a vertical stroke. A dot is
// filled if the difference to the first profile is clear.
func Dots(r *result.Result, figure result.Definition) string {
	label := figure.Title()
	bottom := dotsTop + dotsRow*float64(len(r.Scenarios))
	d := svg.NewFile(dotsWidth, bottom+dotsFoot, label)
	d.Printf(`<text x="%v" y="18" font-size="14" font-weight="bold">%v</text>`, dotsLeft, label)
	drawDotsLegend(d, r.Profiles)
	scale := dotsScale(r, figure)
	for _, tick := range scale.Ticks(8) {
		x := scale.At(tick.Value)
		d.Printf(`<path d="M%v %vV%v" stroke="#ddd"/>`, x, dotsTop, bottom)
		d.Printf(`<text x="%v" y="%v" text-anchor="middle" fill="#444">%v</text>`, x, bottom+16, tick.Label)
	}
	for i := range r.Scenarios {
		y := dotsTop + dotsRow*(float64(i)+0.5)
		d.Printf(`<text x="%v" y="%v" text-anchor="end">%v</text>`, dotsLeft-12, y+4, scenarioLabel(&r.Scenarios[i]))
		d.Printf(`<path d="M%v %vH%v" stroke="#eee"/>`, dotsLeft, y, dotsWidth-20)
		drawDotsRow(d, &r.Scenarios[i], figure, scale, y)
	}
	return string(d.End()) + "\n"
}

// drawDotsLegend draws the colors of the profiles.
func drawDotsLegend(d *svg.Drawing, profiles []string) {
	x := dotsLeft
	for i, name := range profiles {
		color := dotColors[i%len(dotColors)]
		if i == 0 {
			d.Printf(`<path d="M%v 34V46" stroke="%v" stroke-width="3"/>`, x+4, color)
		} else {
			d.Printf(`<circle cx="%v" cy="40" r="5" fill="%v"/>`, x+4, color)
		}
		d.Printf(`<text x="%v" y="44">%v</text>`, x+13, name)
		x += 32 + 6.5*float64(len(name))
	}
}

// drawDotsRow draws the dots of a scenario.
func drawDotsRow(d *svg.Drawing, s *result.Scenario, figure result.Definition, scale svg.Scale, y float64) {
	base := 0.0
	for i := range s.Profiles {
		value, ok := s.Profiles[i].Figures[figure.Name]
		if !ok {
			continue
		}
		x, color := scale.At(value.Mean), dotColors[i%len(dotColors)]
		if i == 0 {
			base = value.Mean
			d.Printf(`<path d="M%v %vV%v" stroke="%v" stroke-width="3"/>`, x, y-8, y+8, color)
			continue
		}
		fill := "none"
		switch assess(figure, value.Difference, base) {
		case better, worse, different:
			fill = color
		default:
		}
		d.Printf(`<circle cx="%v" cy="%v" r="5" fill="%v" stroke="%v" stroke-width="1.5" fill-opacity="0.85"/>`, x, y, fill, color)
	}
}

// dotsScale returns the scale of a figure for all scenarios and profiles.
func dotsScale(r *result.Result, figure result.Definition) svg.Scale {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Profiles {
			if value, ok := r.Scenarios[i].Profiles[j].Figures[figure.Name]; ok && number.IsFinite(value.Mean) {
				low, high = min(low, value.Mean), max(high, value.Mean)
			}
		}
	}
	if figure.Scale == result.Logarithmic {
		return svg.NewLogScale(max(high, 1), dotsLeft, dotsWidth-30)
	}
	margin := (high - low) * 0.05
	return svg.NewScale(low-margin, high+margin, dotsLeft, dotsWidth-30)
}

// scenarioLabel returns a short name of a scenario: its limits and the kinds of usage without their
// parameters.
func scenarioLabel(s *result.Scenario) string {
	var parts []string
	if s.Limits != "" {
		parts = append(parts, s.Limits)
	}
	var kinds []string
	for usage := range strings.SplitSeq(s.Usage, ";") {
		_, shape, _ := strings.Cut(usage, "=")
		kind, _, _ := strings.Cut(shape, ":")
		if len(kinds) == 0 || kinds[0] != kind {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(append(parts, strings.Join(kinds, "/")), ", ")
}
