package report

import (
	"bytes"
	"fmt"
	"html/template"
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
)

var recommendationPage = template.Must(template.New("recommendation.html").Funcs(template.FuncMap{
	"style": func() template.CSS { return Style }, "plain": format.Plain,
}).ParseFS(files, "recommendation.html"))

// recommendationView is the data of recommendation.html.
type recommendationView struct {
	*recommend.Result
	ConfirmationTable, FrontierTable rowsView
	Charts                           []namedChart
	Text                             string
}

// rowsView is a table of configurations.
type rowsView struct {
	Title, Wait string
	Rows        []recommend.Row
}

// namedChart is a chart with its caption.
type namedChart struct {
	Name string
	SVG  template.HTML
}

// WriteRecommendation writes the page of a recommendation.
func WriteRecommendation(w io.Writer, r *recommend.Result) error {
	wait := "wait"
	if r.WaitPercent > 0 {
		wait = fmt.Sprintf("wait p%g", r.WaitPercent)
	}
	v := recommendationView{
		Result: r, ConfirmationTable: rowsView{"On the last third of the recording", wait, r.Confirmation},
		FrontierTable: rowsView{"Frontier", wait, r.Frontier},
	}
	for _, c := range []struct {
		name  string
		value func(*recommend.Row) float64
	}{
		{"overload, node minutes a day", func(row *recommend.Row) float64 { return row.Overload }},
		{wait + ", seconds", func(row *recommend.Row) float64 { return row.WaitSeconds }},
	} {
		if r.WaitPercent == 0 && len(v.Charts) > 0 {
			break
		}
		v.Charts = append(v.Charts, namedChart{"cost a day against " + c.name, costChart(r.Frontier, c.name, c.value)})
	}
	documents, err := r.Manifests()
	if err != nil {
		return err
	}
	for _, d := range documents {
		v.Text += "# " + d.Name + "\n" + string(d.Text) + "\n"
		if len(v.Text) > MaxSize/10 {
			v.Text += fmt.Sprintf("# %d files in all: plimsoll recommend --write FOLDER writes them.\n", len(documents))
			break
		}
	}
	var page bytes.Buffer
	if err := recommendationPage.Execute(&page, v); err != nil {
		return err
	}
	_, err = page.WriteTo(w)
	return err
}

// costChart draws the cost of configurations against a figure. Both axes begin at 0.
func costChart(rows []recommend.Row, name string, value func(*recommend.Row) float64) template.HTML {
	highestX, highestY := 0.0, 0.0
	for i := range rows {
		highestX, highestY = max(highestX, value(&rows[i])), max(highestY, rows[i].Cost)
	}
	const margin = 1.08
	d := New(frontierWidth, frontierHeight, "cost a day against "+name, "the table has the numbers")
	x := NewScale(0, max(highestX*margin, 1), frontierLeft, frontierRight)
	y := NewScale(0, max(highestY*margin, 1e-9), frontierBottom, frontierTop)
	d.YAxis(y.Ticks(5), y, frontierLeft, frontierRight, 6, 4)
	d.XAxis(x.Ticks(6), x, frontierTop, frontierBottom, frontierBottom+15)
	d.Printf(`<text class="middle" x="%v" y="%v">%v</text>`, (frontierLeft+frontierRight)/2, frontierHeight-6, name)
	d.Printf(`<text x="2" y="%v">cost</text>`, frontierTop-3)
	for i := range rows {
		row := &rows[i]
		fill, atX, atY := "card", x.At(value(row)), y.At(row.Cost)
		if row.Mark != "" {
			fill = "ink"
			d.Printf(`<text x="%v" y="%v">%v</text>`, atX+8, atY-6, row.Mark)
		}
		const circle = `<circle class="point" style="fill:var(--%v)" cx="%v" cy="%v" r="4.5"><title>%v</title></circle>`
		d.Printf(circle, fill, atX, atY, row.Name)
	}
	return d.End()
}
