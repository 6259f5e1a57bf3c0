package whatif

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// useView is what nodes used: a cloud of dots for each profile and resource, how
// far the nodes are from beta distributions, and histograms of some.
type useView struct {
	Clouds     []cloudRow
	Bands      []band
	Distances  []distanceRow
	Histograms []histogramRow
}

// cloudRow has the clouds of a resource.
type cloudRow struct {
	Resource string
	Charts   []chart
}

// band is a range of distances from a beta distribution, of one colour.
type band struct{ Class, Label string }

// bandEdges are where the colours of dots change.
var bandEdges = []float64{0.1, 0.2}

var bands = []band{{"d0", "at most 0.1 from its beta"}, {"d1", "up to 0.2"}, {"d2", "more than 0.2"}}

// distanceRow says how far the nodes of a profile are from beta distributions.
type distanceRow struct {
	Profile, Resource   string
	Nodes               string
	P50, P95, Max, Mean string
	Beyond              string
}

// histogramRow has the telling nodes of a profile and a resource.
type histogramRow struct {
	Profile, Resource string
	Nodes             []histogram
}

// histogram is one of them.
type histogram struct {
	Node, Why, Figures string
	SVG                template.HTML
}

// resourceUses are the resources with their names.
var resourceUses = []struct {
	name string
	of   func(*result.NodeUse) *result.ResourceUse
}{
	{"CPU", func(u *result.NodeUse) *result.ResourceUse { return &u.CPU }},
	{"Memory", func(u *result.NodeUse) *result.ResourceUse { return &u.Memory }},
}

// useOf returns the use of nodes in a scenario, nil if no run has recorded it.
func useOf(s *result.Scenario) *useView {
	v := &useView{Bands: bands}
	for _, resource := range resourceUses {
		clouds := cloudRow{Resource: resource.name}
		for i := range s.Profiles {
			p := &s.Profiles[i]
			recorded := nodeUseOf(p)
			if recorded == nil {
				continue
			}
			use := resource.of(recorded)
			clouds.Charts = append(clouds.Charts, chart{p.Name, cloud(resource.name+" with "+p.Name, use)})
			v.Distances = append(v.Distances, distancesOf(p.Name, resource.name, use))
			row := histogramRow{Profile: p.Name, Resource: resource.name}
			for j := range use.Notable {
				row.Nodes = append(row.Nodes, histogramOf(&use.Notable[j]))
			}
			v.Histograms = append(v.Histograms, row)
		}
		if len(clouds.Charts) > 0 {
			v.Clouds = append(v.Clouds, clouds)
		}
	}
	if len(v.Clouds) == 0 {
		return nil
	}
	return v
}

// nodeUseOf returns what the nodes used in the run that recorded it.
func nodeUseOf(p *result.Profile) *result.NodeUse {
	for i := range p.Runs {
		if p.Runs[i].NodeUse != nil {
			return p.Runs[i].NodeUse
		}
	}
	return nil
}

func distancesOf(profile, resource string, use *result.ResourceUse) distanceRow {
	beyond := 0
	for _, distance := range use.Distances {
		if distance > bandEdges[len(bandEdges)-1] {
			beyond++
		}
	}
	three := func(v float64) string { return number(v, maxDecimals) }
	return distanceRow{
		Profile: profile, Resource: resource, Nodes: count(len(use.Means)),
		Mean: three(use.Distance.Mean), P50: three(use.Distance.P50), P95: three(use.Distance.P95), Max: three(use.Distance.Max),
		Beyond: count(beyond),
	}
}

// The size of a cloud: places of dots are whole numbers, two to a pixel, so that
// those of many nodes take little room, and dots on one place are drawn once.
const (
	cloudWidth   = 520.0
	cloudHeight  = 340.0
	cloudLeft    = 66.0
	cloudRight   = 30.0
	cloudTop     = 8.0
	cloudBottom  = 44.0
	cloudSamples = 50
)

// mostDeviation is the highest deviation that anything in [0, 1] can have.
const mostDeviation = 0.5

// cloud draws a dot for each node, its mean against its deviation, on a scale that
// is the same in all reports; and the most that nodes of a mean can deviate.
func cloud(title string, use *result.ResourceUse) template.HTML {
	d := newDrawing(cloudWidth, cloudHeight, "mean and deviation of nodes, "+title, fmt.Sprintf("%d nodes; how far they are from beta distributions is in the table", len(use.Means)))
	x, y := newScale(0, 1, cloudLeft, cloudWidth-cloudRight), newScale(0, mostDeviation, cloudHeight-cloudBottom, cloudTop)
	for _, t := range y.ticks(5) {
		d.f(`<path class="g" d="M%v %vH%v"/><text class="e" x="%v" y="%v">%v</text>`, cloudLeft, y.at(t.value), cloudWidth-cloudRight, cloudLeft-10, y.at(t.value)+7, t.label)
	}
	for _, t := range x.ticks(4) {
		d.f(`<path class="g" d="M%v %vv8"/><text class="m" x="%v" y="%v">%v</text>`, x.at(t.value), cloudHeight-cloudBottom, x.at(t.value), cloudHeight-12, t.label)
	}
	d.WriteString(`<path class="most" d="`)
	for i := range cloudSamples + 1 {
		// Closer at the ends, where the curve is steep.
		mean := (1 - math.Cos(math.Pi*float64(i)/cloudSamples)) / 2
		command := "L"
		if i == 0 {
			command = "M"
		}
		d.f("%v%v %v", command, x.at(mean), y.at(math.Sqrt(mean*(1-mean))))
	}
	d.WriteString(`"/>`)
	for i := range bands {
		d.dots(bands[i].Class, places(use, i, x, y))
	}
	return d.end()
}

// place is where a dot is.
type place struct{ x, y int }

// places returns where the dots of a band are, from left to right in rows.
func places(use *result.ResourceUse, band int, x, y scale) []place {
	var all []place
	for i := range min(len(use.Means), len(use.Deviations), len(use.Distances)) {
		if bandOf(use.Distances[i]) == band {
			all = append(all, place{int(math.Round(x.at(use.Means[i]))), int(math.Round(y.at(use.Deviations[i])))})
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		if a.y != b.y {
			return a.y - b.y
		}
		return a.x - b.x
	})
	return slices.Compact(all)
}

// bandOf returns the band of a distance.
func bandOf(distance float64) int {
	band := 0
	for band < len(bandEdges) && distance > bandEdges[band] {
		band++
	}
	return band
}

// dots draws dots, each as a line of no length from the one before.
func (d *drawing) dots(class string, at []place) {
	if len(at) == 0 {
		return
	}
	d.f(`<path class="dot %v" d="M0 0`, class)
	var last place
	for _, p := range at {
		d.f("m%d %dz", p.x-last.x, p.y-last.y)
		last = p
	}
	d.WriteString(`"/>`)
}

// The size of a histogram.
const (
	histogramWidth  = 200.0
	histogramHeight = 110.0
	histogramSide   = 12.0
	histogramBottom = 18.0
	histogramTop    = 4.0
)

// maxNode is how long names of nodes are in captions.
const maxNode = 40

// histogramOf draws what a node used as bars, and the beta distribution of its mean
// and deviation as a line around the bars that it would have.
func histogramOf(n *result.NotableNode) histogram {
	h := histogram{
		Node: shorten(n.Node, maxNode), Why: strings.Join(n.Reasons, ", "),
		Figures: fmt.Sprintf("mean %s, deviation %s, distance %s", number(n.Mean, maxDecimals), number(n.Deviation, maxDecimals), number(n.Distance, maxDecimals)),
	}
	fit := "no beta distribution: it does not vary, or as much as it can"
	if n.Alpha > 0 && n.Beta > 0 {
		fit = "beta(" + parameter(n.Alpha) + ", " + parameter(n.Beta) + ")"
	}
	h.Figures += "; " + fit
	d := newDrawing(histogramWidth, histogramHeight, "use of "+h.Node, fmt.Sprintf("%d values; %s", n.Steps, h.Figures))
	floor := histogramHeight - histogramBottom
	x := newScale(0, 1, histogramSide, histogramWidth-histogramSide)
	y := newScale(0, most(append(slices.Clone(n.Observed), n.Fitted...)...), floor, histogramTop)
	d.f(`<path class="seen" d="`)
	for i, share := range n.Observed {
		if from, to := bin(x, i, len(n.Observed)); y.at(share) < floor {
			d.f("M%v %vH%vV%vH%vz", from, floor, to, y.at(share), from)
		}
	}
	d.f(`"/><path class="fit" d="M%v %v`, x.at(0), floor)
	for i, share := range n.Fitted {
		_, to := bin(x, i, len(n.Fitted))
		d.f("V%vH%v", y.at(share), to)
	}
	d.f(`V%v"/><path class="g" d="M%v %vH%v"/>`, floor, x.at(0), floor, x.at(1))
	for _, t := range x.ticks(2) {
		d.f(`<text class="m" x="%v" y="%v">%v</text>`, x.at(t.value), histogramHeight-4, t.label)
	}
	h.SVG = d.end()
	return h
}

// bin returns the ends of a bin of so many.
func bin(x scale, i, of int) (from, to float64) {
	return x.at(float64(i) / float64(of)), x.at(float64(i+1) / float64(of))
}

// parameter writes a parameter of a distribution, which may be of any size.
func parameter(v float64) string {
	if finite(v) && (v < 0.001 || v >= 1e6) {
		return fmt.Sprintf("%.2g", v)
	}
	return number(v, decimals(v))
}
