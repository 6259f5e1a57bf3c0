package main

import (
	_ "embed"
	"fmt"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
)

// Dimensions of the picture in pixels.
const (
	width, height = 880.0, 372.0
	margin        = 24.0
	panelWidth    = (width - 3*margin) / 2
	panelTop      = 92.0
	nodeHeight    = 92.0
	// axis is the length of a bar in multiples of the allocatable amount.
	axis = 2.0
)

// style has the colors, light and dark, and the animation: each scene is visible for a third of the time.
//
//go:embed style.css
var style string

// alternative describes the picture to users who cannot see it.
const alternative = "What Plimsoll does for a cluster: it places a pod by limits and by measured load where the default profile selects " +
	"the other node, and with slack a burst of pods does not wait for a new node."

// draw returns the picture as an SVG file.
func draw(p picture) string {
	d := &svg.Drawing{}
	d.Printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" role="img">`, width, height, width, height)
	d.Printf(`<title>%v</title>`, alternative)
	d.Printf("<style>\n%v</style>", raw(style))
	d.Printf(`<rect class="card" x="0.5" y="0.5" width="%v" height="%v" rx="10"/>`, width-1, height-1)
	for i := range 3 {
		d.Printf(`<circle class="dot" cx="%v" cy="%v" r="4"/>`, dotAt(i), height-18)
	}
	const source = "recorded by make demo-picture from the demo: real kube-scheduler and API server, simulated nodes"
	d.Printf(`<text class="small dim" x="%v" y="%v">%s</text>`, margin, height-14, source)
	scene(d, 0, "Which node? By the limits of its pods", "The same pod "+p.Limits.Pod+" in the same cluster, with two profiles.")
	p.Limits.draw(d, limitText)
	d.Printf(`</g>`)
	scene(d, 1, "Which node? By what the nodes really use",
		"Requests and limits are equal, so the default profile takes either node. With Plimsoll the measured load decides.")
	p.Load.draw(d, loadText)
	d.Printf(`</g>`)
	scene(d, 2, "How much spare capacity? As much as the policy says",
		"A burst of 4 pods without slack, and the same burst with a ResourceSlack policy; nodes boot in 3 s.")
	p.Slack.draw(d)
	d.Printf(`</g>`)
	return string(d.End()) + "\n"
}

// raw is markup that Printf does not escape.
type raw string

// dotAt returns the position of the dot of a scene.
func dotAt(i int) float64 { return width - margin - 20*float64(2-i) }

// scene begins a scene with its title.
func scene(d *svg.Drawing, i int, title, subtitle string) {
	d.Printf(`<g class="scene scene%v"><circle class="now" cx="%v" cy="%v" r="4"/>`, i+1, dotAt(i), height-18)
	d.Printf(`<text class="title" x="%v" y="40">%v</text><text class="dim" x="%v" y="66">%v</text>`, margin, title, margin, subtitle)
}

// draw draws both sides. describe returns the text below the bar of a node and its class.
func (c *comparison) draw(d *svg.Drawing, describe func(page.LiveBar) (text, class string)) {
	x := width - margin - 330
	for _, key := range []struct{ class, text string }{
		{"request", "requests"}, {"limit", "limits"}, {"mark", "allocatable"}, {"load", "load"},
	} {
		x = drawKey(d, x, 40, key.class, key.text)
	}
	for i, s := range []side{c.Default, c.Ours} {
		x, name := margin+float64(i)*(panelWidth+margin), "default profile"
		if i > 0 {
			name = "with Plimsoll: " + s.Profile
		}
		d.Printf(`<rect class="panel" x="%v" y="%v" width="%v" height="%v" rx="8"/>`, x, panelTop, panelWidth, 2*nodeHeight+46)
		d.Printf(`<text class="bold" x="%v" y="%v">%v</text>`, x+16, panelTop+26, name)
		for j, n := range s.Nodes {
			s.drawNode(d, x+16, panelTop+40+float64(j)*nodeHeight, n, c.Pod, describe)
		}
	}
}

// drawNode draws a node and its CPU.
func (s *side) drawNode(d *svg.Drawing, x, y float64, n page.LiveNode, pod string, describe func(page.LiveBar) (text, class string)) {
	const barWidth = panelWidth - 32
	bar := n.Bars[0]
	at := func(fraction float64) float64 { return barWidth * math.Min(math.Max(fraction, 0), axis) / axis }
	if n.Name == s.Selected {
		d.Printf(`<rect class="chosen" x="%v" y="%v" width="%v" height="%v" rx="6"/>`, x-8, y, barWidth+16, nodeHeight-6)
		d.Printf(`<text class="bold end request" x="%v" y="%v">%v is placed here</text>`, x+barWidth, y+20, pod)
	}
	d.Printf(`<text class="bold" x="%v" y="%v">%v <tspan class="dim">%v CPUs</tspan></text>`, x, y+20, n.Name, bar.Allocatable)
	d.Printf(`<rect class="track" x="%v" y="%v" width="%v" height="26" rx="3"/>`, x, y+29, barWidth)
	d.Printf(`<rect class="limit" x="%v" y="%v" width="%v" height="20" rx="2"/>`, x, y+32, at(bar.LimitFraction))
	d.Printf(`<rect class="request" x="%v" y="%v" width="%v" height="10" rx="2"/>`, x, y+37, at(bar.RequestFraction))
	if bar.HasLoad {
		from, to := at(bar.LoadMean-bar.LoadStdDev), at(bar.LoadMean+bar.LoadStdDev)
		d.Printf(`<rect class="load" x="%v" y="%v" width="%v" height="2"/>`, x+from, y+41, to-from)
		d.Printf(`<rect class="load" x="%v" y="%v" width="3" height="16"/>`, x+at(bar.LoadMean)-1, y+34)
	}
	d.Printf(`<rect class="mark" x="%v" y="%v" width="2" height="26"/>`, x+barWidth/axis-1, y+29)
	text, class := describe(bar)
	d.Printf(`<text class="small %v" x="%v" y="%v">%v</text>`, raw(class), x, y+73, text)
	d.Printf(`<text class="small dim end" x="%v" y="%v">requests %v</text>`, x+barWidth, y+73, bar.Request)
}

// limitText describes the limits of a node.
func limitText(bar page.LiveBar) (text, class string) {
	class = "dim"
	if bar.LimitFraction > 1.5 {
		class = "bad"
	}
	return fmt.Sprintf("limits %s of %s CPUs (%.0f %%)", bar.Limit, bar.Allocatable, 100*bar.LimitFraction), class
}

// loadText describes the load of a node.
func loadText(bar page.LiveBar) (text, class string) {
	class = "dim"
	if bar.LoadMean > 0.5 {
		class = "bad"
	}
	return fmt.Sprintf("measured load %.0f %% ± %.0f %%", 100*bar.LoadMean, 100*bar.LoadStdDev), class
}

// draw draws the target and the available slack over time.
func (b *burst) draw(d *svg.Drawing) {
	const top, bottom, left, right = 130.0, 300.0, margin + 40, width - margin - 8
	points := b.Timeline.Points
	end, amount := points[len(points)-1].Seconds, 1.0
	for _, p := range points {
		amount = max(amount, p.Target, p.Available)
	}
	x, y := svg.NewScale(0, end, left, right), svg.NewScale(0, math.Ceil(amount/4)*4, bottom, top)
	for i := 0; i < len(points)-1; i++ {
		from := points[i]
		if from.Waiting == 0 {
			continue
		}
		for i < len(points)-1 && points[i].Waiting > 0 {
			i++
		}
		d.Printf(`<rect class="wait" x="%v" y="%v" width="%v" height="%v"/>`,
			x.At(from.Seconds), top, x.At(points[i].Seconds)-x.At(from.Seconds), bottom-top)
	}
	for _, t := range y.Multiples(4) {
		d.Printf(`<path class="grid" d="M%v %vH%v"/><text class="small dim end" x="%v" y="%v">%v</text>`,
			left, y.At(t.Value), right, left-8, y.At(t.Value)+4, fmt.Sprint(t.Value))
	}
	available := func(p page.TimelinePoint) float64 { return y.At(p.Available) }
	d.Printf(`<path class="area" d="%vV%vH%vZ"/>`, raw(stairs(points, x, available)), bottom, x.At(points[0].Seconds))
	d.Printf(`<path class="target" d="%v"/>`, raw(stairs(points, x, func(p page.TimelinePoint) float64 { return y.At(p.Target) })))
	b.label(d, "creating a burst", x, top, bottom, fmt.Sprintf("burst: %.2f s pending", b.Without), "bad")
	b.label(d, "creating the same burst", x, top, bottom, fmt.Sprintf("same burst: %.2f s", b.With), "good")
	d.Printf(`<text class="small dim end" x="%v" y="%v">%v s</text><text class="small dim" x="%v" y="%v">0 s</text>`,
		right, bottom+16, fmt.Sprintf("%.0f", end), left, bottom+16)
	b.legend(d, bottom+34)
}

// label marks an event with a text.
func (b *burst) label(d *svg.Drawing, event string, x svg.Scale, top, bottom float64, text, class string) {
	if seconds, ok := b.mark(event); ok {
		d.Printf(`<path class="event" d="M%v %vV%v"/>`, x.At(seconds), top-18, bottom)
		d.Printf(`<text class="bold %v" x="%v" y="%v">%v</text>`, raw(class), x.At(seconds)+6, top-8, text)
	}
}

// legend draws the legend of the slack.
func (b *burst) legend(d *svg.Drawing, y float64) {
	x := margin + 40
	for _, key := range []struct{ class, text string }{
		{"mark", "slack that the policy asks for, CPUs"}, {"request", "slack that is available"}, {"wait", "pods are pending"},
	} {
		x = drawKey(d, x, y, key.class, key.text)
	}
}

// drawKey draws an entry of a legend, and returns the position of the next one.
func drawKey(d *svg.Drawing, x, y float64, class, text string) float64 {
	d.Printf(`<rect class="%v" x="%v" y="%v" width="14" height="10" rx="2"/><text class="small" x="%v" y="%v">%v</text>`,
		raw(class), x, y-9, x+20, y, text)
	return x + 34 + 7*float64(len(text))
}

// stairs returns a path in which each value is constant until the next point. Points without a change are left out.
func stairs(points []page.TimelinePoint, x svg.Scale, y func(page.TimelinePoint) float64) string {
	var path strings.Builder
	last := y(points[0])
	fmt.Fprintf(&path, "M%.1f %.1f", x.At(points[0].Seconds), last)
	for _, p := range points[1:] {
		if now := y(p); now != last {
			fmt.Fprintf(&path, "H%.1fV%.1f", x.At(p.Seconds), now)
			last = now
		}
	}
	fmt.Fprintf(&path, "H%.1f", x.At(points[len(points)-1].Seconds))
	return path.String()
}
