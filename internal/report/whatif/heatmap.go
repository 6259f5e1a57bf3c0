package whatif

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/plural"
	"github.com/plimsoll-k8s/plimsoll/internal/report/number"
	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// heatScale maps limit ratios to colors for all heatmaps of a report: bins of equal width, blue up to
// 1 and orange above. 1 is always a boundary of bins.
type heatScale struct {
	low, step float64
	bins      int
}

const (
	// maxBins is the largest number of colors, as many as can be distinguished.
	maxBins = 12
	// binnedFraction is the fraction of the values that the bins cover; outliers share the last one.
	binnedFraction = 0.995
)

// newHeatScale returns a scale for the nodes of all scenarios and profiles.
func newHeatScale(r *result.Result) heatScale {
	var values []float64
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Profiles {
			if t := timeSeries(&r.Scenarios[i].Profiles[j]); t != nil {
				values = append(values, t.CPULimitRatios...)
				values = append(values, t.MemoryLimitRatios...)
			}
		}
	}
	values = slices.DeleteFunc(values, func(v float64) bool { return !number.IsFinite(v) || v < 0 })
	if len(values) == 0 {
		return heatScale{0, 0.25, 4}
	}
	slices.Sort(values)
	low, high := values[0], values[int(binnedFraction*float64(len(values)-1))]
	step := min(svg.Step(high-low, maxBins-1), 1)
	if high-low < 0.01 {
		step = 0.01
	}
	low = math.Floor(low/step+1e-9) * step
	return heatScale{low, step, min(max(int(math.Ceil((high-low)/step-1e-9)), 1), maxBins)}
}

// bin returns the bin of a value.
func (s heatScale) bin(v float64) int {
	if !number.IsFinite(v) {
		return 0
	}
	return int(min(max(math.Floor((v-s.low)/s.step+1e-9), 0), float64(s.bins-1)))
}

// aboveOne reports whether the values of a bin are above 1.
func (s heatScale) aboveOne(bin int) bool { return s.low+float64(bin)*s.step >= 1-1e-9 }

// The ends of the two color ramps, as red, green and blue. Blue and orange can be distinguished with
// any color vision, and differ in lightness.
var (
	belowFrom, belowTo = [3]float64{214, 230, 244}, [3]float64{33, 102, 172}
	aboveFrom, aboveTo = [3]float64{253, 198, 120}, [3]float64{166, 54, 3}
)

// color returns the color of a bin.
func (s heatScale) color(bin int) template.CSS {
	below := 0
	for below < s.bins && !s.aboveOne(below) {
		below++
	}
	from, to, index, bins := belowFrom, belowTo, bin, below
	if s.aboveOne(bin) {
		from, to, index, bins = aboveFrom, aboveTo, bin-below, s.bins-below
	}
	fraction := 0.5
	if bins > 1 {
		fraction = float64(index) / float64(bins-1)
	}
	mix := func(i int) int { return int(math.Round(from[i] + fraction*(to[i]-from[i]))) }
	return template.CSS(fmt.Sprintf("#%02x%02x%02x", mix(0), mix(1), mix(2)))
}

// heatKey is an entry of the legend.
type heatKey struct {
	Color template.CSS
	Label string
}

// legend returns an entry for each bin.
func (s heatScale) legend() []heatKey {
	bound := func(bin int) string { return number.Format(s.low+float64(bin)*s.step, svg.StepDecimals(s.step)) }
	keys := make([]heatKey, s.bins)
	for i := range keys {
		keys[i] = heatKey{s.color(i), bound(i) + " to " + bound(i+1)}
	}
	keys[s.bins-1].Label = bound(s.bins-1) + " and more"
	return keys
}

const (
	// heatmapWidth is the width of a heatmap in pixels.
	heatmapWidth = 300
	// cellsPerGridLine is the width of a cell relative to that of the lines between cells.
	cellsPerGridLine = 8
)

// cellSize returns the size of a cell in pixels for a number of nodes: as large as possible while the
// heatmap is at most half as high as wide.
func cellSize(nodes int) int {
	for _, size := range []int{20, 15, 12, 10, 6, 5, 4} {
		if nodes <= heatmapWidth/size*(heatmapWidth/2/size) {
			return size
		}
	}
	return 3
}

// heatmap draws a cell for each node, the highest limit ratio first, and empty cells for nodes
// without pods. Cells of one color are adjacent and drawn as one path, so that the size of the markup
// does not depend on the number of nodes.
func heatmap(s heatScale, title string, ratios []float64, nodes int) template.HTML {
	nodes = max(nodes, len(ratios))
	size := cellSize(nodes)
	columns := heatmapWidth / size
	rows := max((nodes+columns-1)/columns, 1)
	sorted := slices.SortedFunc(slices.Values(ratios), func(a, b float64) int { return s.bin(b) - s.bin(a) })
	over := 0
	for _, v := range sorted {
		if v > 1 {
			over++
		}
	}
	d := svg.New(heatmapWidth, float64(rows*size), title,
		fmt.Sprintf("%s %s limits above the allocatable resources, %d had no pods",
			plural.Part(over, nodes, "node"), plural.Form(over, "has", "have"), nodes-len(ratios)))
	// fill draws the cells of one color.
	fill := func(class string, color template.CSS, from, to int) {
		if from == to {
			return
		}
		d.Printf(`<path class="%v" fill="%v" d="`, class, string(color))
		for from < to {
			row, column := from/columns, from%columns
			// Complete rows are one rectangle.
			width, height := min(columns-column, to-from), 1
			if column == 0 && to-from >= columns {
				height = (to - from) / columns
			}
			d.Printf("M%d %dh%dv%dh-%dz", column*size, row*size, width*size, height*size, width*size)
			from += width * height
		}
		d.Printf(`"/>`)
	}
	start := 0
	for i := range sorted {
		if i+1 == len(sorted) || s.bin(sorted[i+1]) != s.bin(sorted[i]) {
			fill("", s.color(s.bin(sorted[i])), start, i+1)
			start = i + 1
		}
	}
	fill("none", "none", len(sorted), nodes)
	d.Printf(`<path class="grid" stroke-width="%v" d="`, float64(size)/cellsPerGridLine)
	for i := 0; i <= columns; i++ {
		d.Printf("M%d 0v%d", i*size, rows*size)
	}
	for i := 0; i <= rows; i++ {
		d.Printf("M0 %dh%d", i*size, columns*size)
	}
	d.Printf(`"/>`)
	return d.End()
}
