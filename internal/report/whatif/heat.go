package whatif

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// heatScale is the one scale of colours of a report: bins of equal width, blue
// where nodes have at least what they promise, orange where they promise more. 1
// is the end of a bin, so that the colour changes at the line.
type heatScale struct {
	low, step float64
	bins      int
}

// The most bins that eyes can tell apart, and the part of all values that the bins
// are made for: few outliers share the last one.
const (
	maxBins = 12
	inBins  = 0.995
)

// newHeatScale returns a scale for all nodes of all courses.
func newHeatScale(r *result.Result) heatScale {
	var values []float64
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Profiles {
			if c := courseOf(&r.Scenarios[i].Profiles[j]); c != nil {
				values = append(values, c.CPULimitRatios...)
				values = append(values, c.MemoryLimitRatios...)
			}
		}
	}
	values = slices.DeleteFunc(values, func(v float64) bool { return !finite(v) || v < 0 })
	if len(values) == 0 {
		return heatScale{0, 0.25, 4}
	}
	slices.Sort(values)
	low, high := values[0], values[int(inBins*float64(len(values)-1))]
	step := min(niceStep(high-low, maxBins-1), 1)
	if high-low < 0.01 {
		step = 0.01
	}
	low = math.Floor(low/step+1e-9) * step
	return heatScale{low, step, min(max(int(math.Ceil((high-low)/step-1e-9)), 1), maxBins)}
}

// bin returns the bin of a value.
func (s heatScale) bin(v float64) int {
	if !finite(v) {
		return 0
	}
	return int(min(max(math.Floor((v-s.low)/s.step+1e-9), 0), float64(s.bins-1)))
}

// over reports whether a bin is above 1.
func (s heatScale) over(bin int) bool { return s.low+float64(bin)*s.step >= 1-1e-9 }

// The ends of the two ramps, red, green and blue. Blue and orange differ to all
// eyes, and in lightness too.
var (
	belowFrom, belowTo = [3]float64{214, 230, 244}, [3]float64{33, 102, 172}
	aboveFrom, aboveTo = [3]float64{253, 198, 120}, [3]float64{166, 54, 3}
)

// color returns the colour of a bin.
func (s heatScale) color(bin int) template.CSS {
	below := 0
	for below < s.bins && !s.over(below) {
		below++
	}
	from, to, at, of := belowFrom, belowTo, bin, below
	if s.over(bin) {
		from, to, at, of = aboveFrom, aboveTo, bin-below, s.bins-below
	}
	part := 0.5
	if of > 1 {
		part = float64(at) / float64(of-1)
	}
	mix := func(i int) int { return int(math.Round(from[i] + part*(to[i]-from[i]))) }
	return template.CSS(fmt.Sprintf("#%02x%02x%02x", mix(0), mix(1), mix(2)))
}

// heatKey is an entry of the legend.
type heatKey struct {
	Color template.CSS
	Label string
}

// legend says what the colours mean.
func (s heatScale) legend() []heatKey {
	digits := stepDecimals(s.step)
	keys := make([]heatKey, s.bins)
	for i := range keys {
		from, to := number(s.low+float64(i)*s.step, digits), number(s.low+float64(i+1)*s.step, digits)
		keys[i] = heatKey{s.color(i), from + " to " + to}
	}
	keys[s.bins-1].Label = number(s.low+float64(s.bins-1)*s.step, digits) + " and more"
	return keys
}

// heatWidth is how wide a heatmap is, in pixels.
const heatWidth = 300

// gridPart is how many times as wide as the lines between them cells are.
const gridPart = 8

// cellSize returns how large the cells of so many nodes are: with few nodes each
// can be seen by itself, and many still fit on a screen.
func cellSize(nodes int) int {
	for _, size := range []int{20, 15, 12, 10, 6, 5, 4} {
		if nodes <= heatWidth/size*(heatWidth/2/size) {
			return size
		}
	}
	return 3
}

// heatmap draws a cell for each node, the most loaded first, and the nodes that
// had no pods as empty ones. The cells of a colour follow one another, so that they
// are drawn together, and a map of many nodes is as small as one of few.
func heatmap(s heatScale, title string, ratios []float64, nodes int) template.HTML {
	nodes = max(nodes, len(ratios))
	size := cellSize(nodes)
	columns := heatWidth / size
	rows := max((nodes+columns-1)/columns, 1)
	sorted := slices.SortedFunc(slices.Values(ratios), func(a, b float64) int { return s.bin(b) - s.bin(a) })
	over := 0
	for _, v := range sorted {
		if v > 1 {
			over++
		}
	}
	d := newDrawing(heatWidth, float64(rows*size), title, fmt.Sprintf("%d of %d nodes promise more than they have, %d had no pods", over, nodes, nodes-len(ratios)))
	run := func(class string, style template.CSS, from, to int) {
		if from == to {
			return
		}
		d.f(`<path class="%v" fill="%v" d="`, class, string(style))
		for from < to {
			row, column := from/columns, from%columns
			// Whole rows are one rectangle.
			wide, high := min(columns-column, to-from), 1
			if column == 0 && to-from >= columns {
				high = (to - from) / columns
			}
			d.f("M%d %dh%dv%dh-%dz", column*size, row*size, wide*size, high*size, wide*size)
			from += wide * high
		}
		d.WriteString(`"/>`)
	}
	begin := 0
	for i := range sorted {
		if i+1 == len(sorted) || s.bin(sorted[i+1]) != s.bin(sorted[i]) {
			run("", s.color(s.bin(sorted[i])), begin, i+1)
			begin = i + 1
		}
	}
	run("none", "none", len(sorted), nodes)
	d.f(`<path class="grid" stroke-width="%v" d="`, float64(size)/gridPart)
	for i := 0; i <= columns; i++ {
		d.f("M%d 0v%d", i*size, rows*size)
	}
	for i := 0; i <= rows; i++ {
		d.f("M0 %dh%d", i*size, columns*size)
	}
	d.WriteString(`"/>`)
	return d.end()
}

// courseOf returns the course of the run that has one.
func courseOf(p *result.Profile) *result.TimeSeries {
	for i := range p.Runs {
		if p.Runs[i].TimeSeries != nil {
			return p.Runs[i].TimeSeries
		}
	}
	return nil
}
