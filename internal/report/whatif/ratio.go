package whatif

import (
	"html/template"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// The size of a chart of limit ratios.
const (
	ratioWidth = 460.0
	ratioRow   = 26.0
	ratioLeft  = 14.0
	ratioAxis  = 22.0
	ratioName  = 13.0
	// How many letters of a name fit, the widest ones.
	ratioLetters = 40
)

// ratioResources are the resources of limit ratios, with the names of their
// figures.
var ratioResources = []struct{ label, p50, p95, max string }{
	{"CPU", "cpuLimitRatioP50", "cpuLimitRatioP95", "cpuLimitRatioMax"},
	{"Memory", "memoryLimitRatioP50", "memoryLimitRatioP95", "memoryLimitRatioMax"},
}

// ratioReach is how far the scale of limit ratios goes: the same in all scenarios.
func ratioReach(r *result.Result) float64 {
	reach := 1.0 // the line is always there
	for i := range r.Scenarios {
		for _, p := range r.Scenarios[i].Profiles {
			for _, resource := range ratioResources {
				reach = most(reach, p.Figures[resource.max].Mean)
			}
		}
	}
	return 1.04 * reach
}

// ratioChart draws p50, p95 and the highest of the limit ratios of each profile.
func ratioChart(s *result.Scenario, label, p50, p95, highest string, reach float64) template.HTML {
	rows := ratioRow + ratioName
	height := float64(len(s.Profiles))*rows + ratioAxis
	d := newDrawing(ratioWidth, height, label+" limit ratio of nodes, by profile", "p50, p95 and the highest; the figures are in the table")
	x := newScale(0, reach, ratioLeft, ratioWidth-ratioLeft)
	for _, t := range x.ticks(8) {
		d.f(`<path class="g" d="M%v 0V%v"/><text class="m" x="%v" y="%v">%v</text>`, x.at(t.value), height-ratioAxis, x.at(t.value), height-6, t.label)
	}
	d.f(`<path class="line" d="M%v 0V%v"/>`, x.at(1), height-ratioAxis)
	for i := range s.Profiles {
		p := &s.Profiles[i]
		top := float64(i) * rows
		d.f(`<text x="%v" y="%v">%v</text>`, ratioLeft+2, top+ratioName, shorten(p.Name, ratioLetters))
		figure, ok := p.Figures[highest]
		if !ok {
			continue
		}
		middle, half, whole := top+ratioName+ratioRow/2, p.Figures[p50].Mean, p.Figures[p95].Mean
		d.f(`<path class="thin" d="M%v %vH%v"/>`, x.at(half), middle, x.at(figure.Mean))
		d.f(`<path class="bar" d="M%v %vH%v"/>`, x.at(half), middle, x.at(whole))
		d.f(`<circle class="half" cx="%v" cy="%v" r="4.5"/>`, x.at(half), middle)
		d.f(`<path class="top" d="M%v %vv12"/>`, x.at(figure.Mean), middle-6)
	}
	return d.end()
}

// shorten cuts a text that is too long to be drawn.
func shorten(text string, letters int) string {
	if runes := []rune(text); len(runes) > letters {
		return string(runes[:letters-1]) + "…"
	}
	return text
}
