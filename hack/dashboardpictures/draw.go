package main

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
)

// Dimensions of a picture in pixels.
const (
	width       = 900.0
	gap         = 10.0
	statHeight  = 78.0
	panelHeight = 188.0
	top         = 44.0
	axisWidth   = 58.0
	// perRow are the panels in a row, statsPerRow those with one value.
	perRow, statsPerRow = 2, 4
	// maxLegend is the number of legends that are shown.
	maxLegend = 4
	colors    = 6
)

//go:embed style.css
var style string

// raw is markup that Printf does not escape.
type raw string

// area is the place of a panel.
type area struct{ x, y, width, height float64 }

// draw returns a picture of the panels of a dashboard that have data.
func draw(d *dashboard) string {
	var places []area
	var panels []*panel
	x, y, row := gap, top, 0.0
	for _, p := range d.Panels {
		if len(p.Series) == 0 {
			continue
		}
		count, height := float64(perRow), panelHeight
		if p.Type == "stat" {
			count, height = statsPerRow, statHeight
		}
		w := (width - gap*(count+1)) / count
		if x+w > width || row != 0 && row != height {
			x, y = gap, y+row+gap
		}
		row = height
		places, panels = append(places, area{x, y, w, height}), append(panels, p)
		x += w + gap
	}
	height := y + row + gap
	o := &svg.Drawing{}
	o.Printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" role="img">`, width, height, width, height)
	o.Printf("<title>%v: panels drawn from data of a run of the demo</title><style>\n%v</style>", d.Title, raw(style))
	o.Printf(`<rect class="page" width="%v" height="%v" rx="8"/><text class="head" x="%v" y="29">%v</text>`, width, height, gap+4, d.Title)
	seconds := d.End.Sub(d.Start).Seconds()
	for i, p := range panels {
		a := places[i]
		o.Printf(`<g><rect class="card" x="%v" y="%v" width="%v" height="%v" rx="4"/>`, a.x, a.y, a.width, a.height)
		o.Printf(`<text class="title" x="%v" y="%v">%v</text>`, a.x+10, a.y+18, shorten(p.Title, int((a.width-20)/7.2)))
		switch p.Type {
		case "stat":
			p.drawValue(o, a)
		case "heatmap":
			p.drawHeatmap(o, a, seconds)
		default:
			p.drawLines(o, a, seconds)
		}
		o.Printf(`</g>`)
	}
	return string(o.End()) + "\n"
}

// drawValue draws the last value of the first series in the color of its threshold.
func (p *panel) drawValue(o *svg.Drawing, a area) {
	points := p.Series[0].Points
	last, color := points[len(points)-1].Value, ""
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value != nil && last >= *step.Value {
			color = step.Color
		}
	}
	o.Printf(`<text class="value %v" x="%v" y="%v">%v</text>`, color, a.x+10, a.y+56, p.format(last))
}

// plot is the part of an area inside of the axes.
func (a area) plot(legend float64) (left, right, plotTop, bottom float64) {
	return a.x + axisWidth, a.x + a.width - 12, a.y + 32, a.y + a.height - 20 - legend
}

// drawLines draws all series over time.
func (p *panel) drawLines(o *svg.Drawing, a area, seconds float64) {
	left, right, plotTop, bottom := a.plot(18)
	low, high := 0.0, 0.0
	for _, s := range p.Series {
		for _, v := range s.Points {
			low, high = min(low, v.Value), max(high, v.Value)
		}
	}
	if high == low {
		high = low + 1
	}
	x, y := svg.NewScale(0, seconds, left, right), svg.NewScale(low, low+1.08*(high-low), bottom, plotTop)
	p.drawAxes(o, x, y, seconds, left, right, bottom)
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value != nil && *step.Value > low && *step.Value < low+1.08*(high-low) {
			o.Printf(`<path class="limit %v" d="M%v %vH%v"/>`, step.Color, left, y.At(*step.Value), right)
		}
	}
	at := left - axisWidth + 10
	length := int(((right-at)/float64(min(len(p.Series), maxLegend)) - 30) / 6)
	for i, s := range p.Series {
		o.Printf(`<path class="s s%v" d="%v"/>`, i%colors, raw(path(s.Points, x, y)))
		if text := shorten(s.Legend, length); i < maxLegend {
			o.Printf(`<path class="s s%v" d="M%v %vh12"/><text x="%v" y="%v">%v</text>`,
				i%colors, at, bottom+30-4, at+16, bottom+30, text)
			at += 30 + 6*float64(len([]rune(text)))
		}
	}
}

// drawAxes draws the grid of the values and the ends of the time.
func (p *panel) drawAxes(o *svg.Drawing, x, y svg.Scale, seconds, left, right, bottom float64) {
	for _, t := range y.Ticks(4) {
		o.Printf(`<path class="grid" d="M%v %vH%v"/><text class="end" x="%v" y="%v">%v</text>`,
			left, y.At(t.Value), right, left-6, y.At(t.Value)+4, p.format(t.Value))
	}
	o.Printf(`<text x="%v" y="%v">0 s</text><text class="end" x="%v" y="%v">%v s</text>`,
		x.At(0), bottom+14, x.At(seconds), bottom+14, strconv.Itoa(int(seconds)))
}

// positions is a scale.
type positions interface{ At(value float64) float64 }

// path returns a line through points, with a gap where values are missing.
func path(points []point, x, y positions) string {
	var b strings.Builder
	for i, v := range points {
		command := "L"
		if i == 0 || v.Seconds-points[i-1].Seconds > 5 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, x.At(v.Seconds), y.At(v.Value))
	}
	return b.String()
}

// drawHeatmap draws the counts of the buckets of a histogram over time: the darker, the more.
func (p *panel) drawHeatmap(o *svg.Drawing, a area, seconds float64) {
	left, right, plotTop, bottom := a.plot(0)
	rows, highest := buckets(p.Series)
	x := svg.NewScale(0, seconds, left, right)
	height := (bottom - plotTop) / float64(max(len(rows), 1))
	for i, row := range rows {
		y := bottom - float64(i+1)*height
		if i%2 == 0 {
			o.Printf(`<text class="end" x="%v" y="%v">&#8804; %v</text>`, left-6, y+height/2+4, row.Legend)
		}
		for j, v := range row.Points {
			if v.Value <= 0 {
				continue
			}
			end := seconds
			if j+1 < len(row.Points) {
				end = row.Points[j+1].Seconds
			}
			o.Printf(`<rect class="heat" x="%v" y="%v" width="%v" height="%v" opacity="%v"/>`, x.At(v.Seconds), y,
				math.Max(x.At(end)-x.At(v.Seconds), 1), height-1, raw(fmt.Sprintf("%.2f", 0.15+0.85*v.Value/highest)))
		}
	}
	o.Printf(`<text x="%v" y="%v">0 s</text><text class="end" x="%v" y="%v">%v s</text>`,
		left, bottom+14, right, bottom+14, strconv.Itoa(int(seconds)))
}

// buckets returns the counts of each bucket, which is not cumulative, by its upper bound, and the highest count. Times at
// which nothing changes are left out, as are buckets that are always empty above the last one that is not.
func buckets(cumulative []series) (rows []series, highest float64) {
	bound := func(s series) float64 {
		v, err := strconv.ParseFloat(s.Legend, 64)
		if err != nil {
			return math.Inf(1)
		}
		return v
	}
	sorted := append([]series{}, cumulative...)
	for i := range sorted {
		for j := i; j > 0 && bound(sorted[j]) < bound(sorted[j-1]); j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	before, used := map[float64]float64{}, 0
	for i, s := range sorted {
		row := series{Legend: s.Legend}
		last := -1.0
		for _, v := range s.Points {
			count := v.Value - before[v.Seconds]
			before[v.Seconds] = v.Value
			highest = max(highest, count)
			if count > 0 {
				used = i + 1
			}
			if count != last {
				row.Points = append(row.Points, point{v.Seconds, count})
			}
			last = count
		}
		rows = append(rows, row)
	}
	return rows[:used], highest
}

// format formats a value in the unit of the panel. Bytes are given in GiB.
func (p *panel) format(v float64) string {
	number := func(v float64) string {
		if math.Abs(v) >= 1000 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	switch p.FieldConfig.Defaults.Unit {
	case "percentunit":
		return number(100*v) + " %"
	case "s":
		if v != 0 && math.Abs(v) < 1 {
			return number(1000*v) + " ms"
		}
		return number(v) + " s"
	case "bytes":
		return number(v) + " GiB"
	case "ops":
		return number(v) + "/s"
	}
	return number(v)
}

// shorten shortens a text to a number of characters.
func shorten(text string, length int) string {
	runes := []rune(text)
	if len(runes) <= length {
		return text
	}
	return string(runes[:length-1]) + "…"
}
