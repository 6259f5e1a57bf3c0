// Package report writes the report of a what-if: one HTML file that needs neither a network nor
// scripts and that can be archived, sent and printed. The same result gives the same bytes.
//
// # Charts
//
// The package draws charts as SVG: scales that map values to coordinates, axes with round tick
// values, and markup in which every coordinate is finite and every text is escaped.
package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

//go:embed page.html section.html summary.html
var files embed.FS

// Style is the style sheet of reports: the colors, tables, cards, legends and drawings of pages of a what-if.
//
//go:embed style.css
var Style template.CSS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"class": func(a result.Answer) string { return classes[a] },
	"style": func() template.CSS { return Style },
}).ParseFS(files, "*.html"))

// maxSize is the largest size of a report in bytes. Optional parts are omitted to stay within it,
// and the report names them.
const maxSize = 5 << 20

// maxSizeWithSeries is the largest size in bytes of a report whose raw data has the time series. They are the largest
// part of a report, and the charts show them.
const maxSizeWithSeries = 200_000

// detail selects the optional parts of a report.
type detail struct {
	// rawData includes the result as JSON, runs its single runs, and timeSeries the data of the charts.
	rawData, runs, timeSeries bool
	// charts includes the charts over time.
	charts bool
	// omitted describes the omitted content.
	omitted string
}

// details are the levels of detail, from all to the least. Write uses the first that fits.
var details = []detail{
	{timeSeries: true, runs: true, charts: true, rawData: true},
	{runs: true, charts: true, rawData: true, omitted: "The raw data omits time series"},
	{charts: true, rawData: true, omitted: "The raw data omits single runs"},
	{rawData: true, omitted: "Charts and the raw data of single runs are omitted"},
	{omitted: "Charts and the raw data are omitted"},
}

// limit returns the largest size of a report with this level of detail, in bytes.
func (d *detail) limit(maxSize int) int {
	if d.timeSeries {
		return min(maxSize, maxSizeWithSeries)
	}
	return maxSize
}

// Write writes the report of a result.
func Write(w io.Writer, r *result.Result) error { return Document{Result: r}.Write(w) }

// Write writes the page.
func (d Document) Write(w io.Writer) error { return d.writeWithin(w, maxSize) }

// writeWithin writes the page with the highest level of detail whose size is at most maxSize, or with the lowest level if no size is.
func (d Document) writeWithin(w io.Writer, maxSize int) error {
	var report bytes.Buffer
	for _, level := range details {
		view := newView(d, level)
		if level.rawData && len(d.Scenario.Profiles) > 0 && d.Windows == 0 { // a shadow serves it
			raw, err := rawData(d.Result, level)
			if err != nil {
				return err
			}
			view.RawData = raw
		}
		if level.omitted != "" {
			note := level.omitted + " to limit the size of the report. Run with -o json for the complete result."
			if level.rawData && level.charts { // only raw data is omitted
				view.RawNote = note
			} else {
				view.Omitted = note
			}
		}
		report.Reset()
		if err := page.Execute(&report, view); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		if report.Len() <= level.limit(maxSize) {
			break
		}
	}
	_, err := w.Write(report.Bytes())
	return err
}

// rawData returns the result as JSON with the given detail.
func rawData(r *result.Result, d detail) (template.HTML, error) {
	if !d.timeSeries {
		reduced := r.WithoutRuns()
		for i, profile := range r.Scenario.Profiles {
			if !d.runs {
				break
			}
			runs := append([]result.Run{}, profile.Runs...)
			for k := range runs {
				runs[k].TimeSeries, runs[k].Overloaded = nil, nil
			}
			reduced.Scenario.Profiles[i].Runs = runs
		}
		r = reduced
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encoding the raw data of the report: %w", err)
	}
	// Marshal escapes <, > and &, so the JSON contains no markup. Quotes need no escaping in text.
	return template.HTML(raw), nil
}
