package whatif

import (
	"html/template"

	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// Dimensions of a chart of limit ratios.
const (
	ratioWidth     = 460.0
	ratioBarHeight = 26.0
	ratioMargin    = 14.0
	ratioAxis      = 22.0
	ratioNameLine  = 13.0
	// ratioNameLength is the number of the widest characters that fit.
	ratioNameLength = 40
)

// ratioResource is a resource and the names of the figures of its limit ratios.
type ratioResource struct{ label, p50, p95, max string }

var ratioResources = []ratioResource{
	{"CPU", "cpuLimitRatioP50", "cpuLimitRatioP95", "cpuLimitRatioMax"},
	{"Memory", "memoryLimitRatioP50", "memoryLimitRatioP95", "memoryLimitRatioMax"},
}

// maxRatio returns the end of the scale of limit ratios, which all scenarios share.
func maxRatio(r *result.Result) float64 {
	highest := 1.0 // The line at 1 is always visible.
	for i := range r.Scenarios {
		for _, p := range r.Scenarios[i].Profiles {
			for _, resource := range ratioResources {
				highest = svg.Max(highest, p.Figures[resource.max].Mean)
			}
		}
	}
	return 1.04 * highest
}

// chart draws p50, p95 and the maximum of the limit ratios for each profile.
func (r ratioResource) chart(s *result.Scenario, ratioMax float64) template.HTML {
	row := ratioBarHeight + ratioNameLine
	height := float64(len(s.Profiles))*row + ratioAxis
	d := svg.New(ratioWidth, height, r.label+" limit ratio of nodes, by profile", "p50, p95 and maximum; the table has the numbers")
	x := svg.NewScale(0, ratioMax, ratioMargin, ratioWidth-ratioMargin)
	d.XAxis(x.Ticks(8), x, 0, height-ratioAxis, height-6)
	d.Printf(`<path class="line" d="M%v 0V%v"/>`, x.At(1), height-ratioAxis)
	for i := range s.Profiles {
		p := &s.Profiles[i]
		top := float64(i) * row
		d.Printf(`<text x="%v" y="%v">%v</text>`, ratioMargin+2, top+ratioNameLine, shorten(p.Name, ratioNameLength))
		if _, ok := p.Figures[r.max]; !ok {
			continue
		}
		y := top + ratioNameLine + ratioBarHeight/2
		p50, p95, highest := x.At(p.Figures[r.p50].Mean), x.At(p.Figures[r.p95].Mean), x.At(p.Figures[r.max].Mean)
		d.Printf(`<path class="thin" d="M%v %vH%v"/>`, p50, y, highest)
		d.Printf(`<path class="bar" d="M%v %vH%v"/>`, p50, y, p95)
		d.Printf(`<circle class="point" cx="%v" cy="%v" r="4.5"/>`, p50, y)
		d.Printf(`<path class="max" d="M%v %vv12"/>`, highest, y-6)
	}
	return d.End()
}
