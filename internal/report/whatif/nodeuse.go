package whatif

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/plural"
	"github.com/plimsoll-k8s/plimsoll/internal/report/number"
	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// nodeUseView shows the utilization of nodes: a scatter plot for each profile and resource, distances
// from beta distributions, and histograms of selected nodes.
type nodeUseView struct {
	Plots      []scatterRow
	Bands      []band
	Distances  []distanceRow
	Histograms []histogramRow
}

// scatterRow has the scatter plots of a resource.
type scatterRow struct {
	Resource string
	Charts   []chart
}

// band is a range of distances from a beta distribution with a CSS class.
type band struct{ Class, Label string }

// bandBounds are the distances between bands.
var bandBounds = []float64{0.1, 0.2}

var bands = []band{{"d0", "distance from its beta distribution at most 0.1"}, {"d1", "at most 0.2"}, {"d2", "more than 0.2"}}

// distanceRow summarizes the distances of a profile's nodes from beta distributions.
type distanceRow struct {
	Profile, Resource   string
	Nodes               string
	P50, P95, Max, Mean string
	// Far is the number of nodes in the last band.
	Far string
}

// histogramRow has the histograms of a profile and a resource.
type histogramRow struct {
	Profile, Resource string
	Nodes             []histogram
}

// histogram shows the utilization of a node.
type histogram struct {
	Node, Reasons, Figures string
	SVG                    template.HTML
}

// resourceUses has the resources whose utilization is recorded.
var resourceUses = []struct {
	name string
	of   func(*result.NodeUse) *result.ResourceUse
}{
	{"CPU", func(u *result.NodeUse) *result.ResourceUse { return &u.CPU }},
	{"Memory", func(u *result.NodeUse) *result.ResourceUse { return &u.Memory }},
}

// newNodeUseView returns the utilization of nodes in a scenario, or nil if none was recorded.
func newNodeUseView(s *result.Scenario) *nodeUseView {
	v := &nodeUseView{Bands: bands}
	for _, resource := range resourceUses {
		plots := scatterRow{Resource: resource.name}
		for i := range s.Profiles {
			p := &s.Profiles[i]
			recorded := recordedNodeUse(p)
			if recorded == nil {
				continue
			}
			use := resource.of(recorded)
			plots.Charts = append(plots.Charts, chart{p.Name, scatterPlot(resource.name+" with "+p.Name, use)})
			v.Distances = append(v.Distances, newDistanceRow(p.Name, resource.name, use))
			row := histogramRow{Profile: p.Name, Resource: resource.name}
			for j := range use.Notable {
				row.Nodes = append(row.Nodes, newHistogram(&use.Notable[j]))
			}
			v.Histograms = append(v.Histograms, row)
		}
		if len(plots.Charts) > 0 {
			v.Plots = append(v.Plots, plots)
		}
	}
	if len(v.Plots) == 0 {
		return nil
	}
	return v
}

// recordedNodeUse returns the utilization of the run of a profile that recorded it, or nil.
func recordedNodeUse(p *result.Profile) *result.NodeUse {
	for i := range p.Runs {
		if p.Runs[i].NodeUse != nil {
			return p.Runs[i].NodeUse
		}
	}
	return nil
}

func newDistanceRow(profile, resource string, use *result.ResourceUse) distanceRow {
	far := 0
	for _, distance := range use.Distances {
		if distance > bandBounds[len(bandBounds)-1] {
			far++
		}
	}
	text := func(v float64) string { return number.Format(v, number.MaxDecimals) }
	return distanceRow{
		Profile: profile, Resource: resource, Nodes: number.Count(len(use.Means)), Far: number.Count(far),
		Mean: text(use.Distance.Mean), P50: text(use.Distance.P50), P95: text(use.Distance.P95), Max: text(use.Distance.Max),
	}
}

// Dimensions of a scatter plot, in half pixels: coordinates of dots are rounded to integers, which
// shortens the markup, and dots with the same coordinates are drawn once.
const (
	scatterWidth  = 520.0
	scatterHeight = 340.0
	scatterLeft   = 66.0
	scatterRight  = scatterWidth - 30
	scatterTop    = 8.0
	scatterBottom = scatterHeight - 44
	// boundSegments is the number of segments of the curve of the largest deviation.
	boundSegments = 50
)

// maxDeviation is the largest standard deviation of a distribution on [0, 1].
const maxDeviation = 0.5

// scatterPlot draws a dot for each node at the mean and the standard deviation of its utilization,
// and the curve of the largest deviation for each mean. All reports have the same scale.
func scatterPlot(title string, use *result.ResourceUse) template.HTML {
	d := svg.New(scatterWidth, scatterHeight, "mean and standard deviation of nodes, "+title,
		plural.Of(len(use.Means), "node")+"; the table has the distances from beta distributions")
	x, y := svg.NewScale(0, 1, scatterLeft, scatterRight), svg.NewScale(0, maxDeviation, scatterBottom, scatterTop)
	d.YAxis(y.Ticks(5), y, scatterLeft, scatterRight, 10, 7)
	d.XAxis(x.Ticks(4), x, scatterBottom, scatterBottom+8, scatterHeight-12)
	// Points are closer at the ends, where the curve is steep.
	mean := func(i int) float64 { return (1 - math.Cos(math.Pi*float64(i)/boundSegments)) / 2 }
	d.Line("bound", boundSegments+1,
		func(i int) float64 { return x.At(mean(i)) }, func(i int) float64 { return y.At(math.Sqrt(mean(i) * (1 - mean(i)))) })
	for i := range bands {
		drawDots(d, bands[i].Class, bandDots(use, i, x, y))
	}
	return d.End()
}

// dot is the position of a node in a scatter plot.
type dot struct{ x, y int }

// bandDots returns the distinct positions of the nodes in a band, in order.
func bandDots(use *result.ResourceUse, band int, x, y svg.Scale) []dot {
	var dots []dot
	for i := range min(len(use.Means), len(use.Deviations), len(use.Distances)) {
		if bandOf(use.Distances[i]) == band {
			dots = append(dots, dot{int(math.Round(x.At(use.Means[i]))), int(math.Round(y.At(use.Deviations[i])))})
		}
	}
	slices.SortFunc(dots, func(a, b dot) int { return cmp.Or(a.y-b.y, a.x-b.x) })
	return slices.Compact(dots)
}

// bandOf returns the band of a distance.
func bandOf(distance float64) int {
	band := 0
	for band < len(bandBounds) && distance > bandBounds[band] {
		band++
	}
	return band
}

// drawDots draws dots as one path of lines without length.
func drawDots(d *svg.Drawing, class string, dots []dot) {
	if len(dots) == 0 {
		return
	}
	d.Printf(`<path class="dot %v" d="M0 0`, class)
	var last dot
	for _, p := range dots {
		d.Printf("m%d %dz", p.x-last.x, p.y-last.y)
		last = p
	}
	d.Printf(`"/>`)
}

// Dimensions of a histogram.
const (
	histogramWidth  = 200.0
	histogramHeight = 110.0
	histogramMargin = 12.0
	histogramBottom = histogramHeight - 18
	histogramTop    = 4.0
)

// maxNameLength is the largest length of a node's name in a caption.
const maxNameLength = 40

// newHistogram draws the utilization of a node as bars, and the beta distribution of the same mean
// and standard deviation as the outline of the bars that it predicts.
func newHistogram(n *result.NotableNode) histogram {
	h := histogram{Node: shorten(n.Node, maxNameLength), Reasons: strings.Join(n.Reasons, ", ")}
	text := func(v float64) string { return number.Format(v, number.MaxDecimals) }
	h.Figures = fmt.Sprintf("mean %s, deviation %s, distance %s; ", text(n.Mean), text(n.Deviation), text(n.Distance))
	if n.Alpha > 0 && n.Beta > 0 {
		h.Figures += "beta(" + parameterText(n.Alpha) + ", " + parameterText(n.Beta) + ")"
	} else {
		h.Figures += "no beta distribution: the deviation is 0 or the largest possible"
	}
	d := svg.New(histogramWidth, histogramHeight, "utilization of "+h.Node, plural.Of(n.Steps, "value")+"; "+h.Figures)
	x := svg.NewScale(0, 1, histogramMargin, histogramWidth-histogramMargin)
	y := svg.NewScale(0, max(svg.Max(n.Observed...), svg.Max(n.Fitted...)), histogramBottom, histogramTop)
	edge := func(i, bins int) float64 { return x.At(float64(i) / float64(bins)) }
	d.Printf(`<path class="seen" d="`)
	for i, share := range n.Observed {
		if top := y.At(share); top < histogramBottom {
			from, to := edge(i, len(n.Observed)), edge(i+1, len(n.Observed))
			d.Printf("M%v %vH%vV%vH%vz", from, histogramBottom, to, top, from)
		}
	}
	d.Printf(`"/><path class="fit" d="M%v %v`, x.At(0), histogramBottom)
	for i, share := range n.Fitted {
		d.Printf("V%vH%v", y.At(share), edge(i+1, len(n.Fitted)))
	}
	d.Printf(`V%v"/><path class="axis" d="M%v %vH%v"/>`, histogramBottom, x.At(0), histogramBottom, x.At(1))
	for _, t := range x.Ticks(2) {
		d.Printf(`<text class="middle" x="%v" y="%v">%v</text>`, x.At(t.Value), histogramHeight-4, t.Label)
	}
	h.SVG = d.End()
	return h
}

// parameterText formats a parameter of a distribution, in scientific notation if it is very small or
// large.
func parameterText(v float64) string {
	if number.IsFinite(v) && (v < 0.001 || v >= 1e6) {
		return fmt.Sprintf("%.2g", v)
	}
	return number.Auto(v)
}
