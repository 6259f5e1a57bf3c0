package slack

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

//go:embed frontier.html
var frontierText string

var frontierPage = template.Must(template.New("frontier").Funcs(template.FuncMap{
	"style": func() template.CSS { return report.Style }, "plain": format.Plain, "of": format.Of[int64],
}).Parse(frontierText))

// frontierView is the data of frontier.html.
type frontierView struct {
	*recommendResult
	TimeName, Policy string
	Chart            template.HTML
	Rows             []candidateResult
}

// writeFrontier writes a page with the frontier of wait against cost, the recommended policy and the cheapest rate.
func writeFrontier(out io.Writer, r *recommendResult, goal *slack.Goal, found *slack.Recommendation) error {
	v := frontierView{recommendResult: r, TimeName: fmt.Sprintf("wait p%v, seconds", goal.Percent)}
	candidates := slices.Clone(found.Frontier)
	isSame := func(c, other *slack.Candidate) bool { return other != nil && c.Policy == other.Policy }
	for _, marked := range []*slack.Candidate{found.Best, found.Rate} { // may have the same cost or wait as one of the frontier
		if marked != nil && !slices.ContainsFunc(candidates, func(c slack.Candidate) bool { return isSame(&c, marked) }) {
			candidates = append(candidates, *marked)
		}
	}
	var points []result.FrontierPoint
	for i := range candidates {
		row := newCandidateResult(&candidates[i], goal)
		switch isBest, isRate := isSame(&candidates[i], found.Best), isSame(&candidates[i], found.Rate); {
		case isBest && isRate:
			row.Mark = "recommended rate"
		case isBest:
			row.Mark = "recommended"
		case isRate:
			row.Mark = "cheapest rate"
		}
		v.Rows, points = append(v.Rows, row), append(points, result.FrontierPoint{Cost: row.Cost, Pending: row.WaitSeconds})
	}
	v.Chart = v.chart(points, len(found.Frontier), goal.Wait.Seconds())
	slices.SortStableFunc(v.Rows, func(a, b candidateResult) int { return cmp.Compare(a.Cost, b.Cost) })
	if r.Recommended != nil {
		var policy bytes.Buffer
		if err := printPolicy(&policy, r.Recommended, r.Annotate); err != nil {
			return err
		}
		v.Policy = policy.String()
	}
	return frontierPage.Execute(out, v)
}

// chart draws the points of the rows, a line through the first of them, and the wait of the goal.
func (v *frontierView) chart(points []result.FrontierPoint, line int, wait float64) template.HTML {
	d, x, y := report.NewFrontierChart(points, v.TimeName, "cost")
	longest := slices.MaxFunc(points, func(a, b result.FrontierPoint) int { return cmp.Compare(a.Pending, b.Pending) })
	if wait < longest.Pending {
		d.Printf(`<path class="s2" d="M%v %vV%v"/>`, x.At(wait), y.At(math.Inf(-1)), y.At(math.Inf(1)))
	}
	atX, atY := func(i int) float64 { return x.At(points[i].Pending) }, func(i int) float64 { return y.At(points[i].Cost) }
	d.Line(report.LineClass(0), line, atX, atY)
	labelY := y.At(math.Inf(-1))
	for i, row := range v.Rows {
		if row.Mark != "" {
			labelY = max(8, min(atY(i)-6, labelY-13)) // above the label of a cheaper policy, within the chart
			d.Printf(`<text x="%v" y="%v">%v</text>`, atX(i)+8, labelY, row.Mark)
		}
	}
	for i, row := range v.Rows { // Above all labels.
		fill := "card"
		if row.Mark != "" {
			fill = "ink"
		}
		const circle = `<circle class="point" style="fill:var(--%v)" cx="%v" cy="%v" r="4.5"><title>%v</title></circle>`
		d.Printf(circle, fill, atX(i), atY(i), row.Name)
	}
	return d.End()
}
