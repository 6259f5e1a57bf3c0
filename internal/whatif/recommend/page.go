package recommend

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return report.Style }, "plain": format.Plain, "cost": format.Cost,
}).Parse(pageText))

// maxManifests is the size in bytes from which on a page has no more of what to apply.
const maxManifests = 500_000

// pageView is the data of page.html.
type pageView struct {
	*Result
	ConfirmationTable, FrontierTable rowsView
	Charts                           []namedChart
	Text                             string
}

// rowsView is a table of configurations.
type rowsView struct {
	Title, Wait string
	Rows        []Row
}

// namedChart is a chart with its caption.
type namedChart struct {
	Name string
	SVG  template.HTML
}

// WritePage writes the result as a page.
func (r *Result) WritePage(w io.Writer) error {
	wait := "wait"
	if r.WaitPercent > 0 {
		wait = fmt.Sprintf("wait p%g", r.WaitPercent)
	}
	v := pageView{
		Result: r, ConfirmationTable: rowsView{"On the last third of the recording", wait, r.Confirmation},
		FrontierTable: rowsView{"Frontier", wait, r.Frontier},
	}
	for _, c := range []struct {
		name  string
		value func(*Row) float64
	}{
		{"overload, node minutes a day", func(row *Row) float64 { return row.Overload }},
		{wait + ", seconds", func(row *Row) float64 { return row.WaitSeconds }},
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
	if r.FirstLook {
		documents = nil // of readings that were generated
	}
	for _, d := range documents {
		v.Text += "# " + d.Name + "\n" + string(d.Text) + "\n"
		if len(v.Text) > maxManifests {
			v.Text += fmt.Sprintf("# %d files in all: plimsoll recommend --write FOLDER writes them.\n", len(documents))
			break
		}
	}
	var out bytes.Buffer
	if err := page.Execute(&out, v); err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
}

// costChart draws the cost of configurations against a figure. Both axes begin at 0.
func costChart(rows []Row, name string, value func(*Row) float64) template.HTML {
	highestX, highestY := 0.0, 0.0
	for i := range rows {
		highestX, highestY = max(highestX, value(&rows[i])), max(highestY, rows[i].Cost)
	}
	const margin = 1.08
	d, x, y := report.NewCostChart("cost a day against "+name, name, "cost",
		[2]float64{0, max(highestX*margin, 1)}, [2]float64{0, max(highestY*margin, 1e-9)})
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
