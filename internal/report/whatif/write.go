// Package whatif turns the result of a what-if into a report: one HTML file that
// needs no network and no scripts, to be kept, sent and printed. The same result
// gives the same bytes.
package whatif

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

//go:embed page.html nodeuse.html decisions.html
var files embed.FS

var page = template.Must(template.ParseFS(files, "page.html", "nodeuse.html", "decisions.html"))

// MaxSize is what a report takes at most, in bytes; what can be left out is left
// out for it, and the report says so.
const MaxSize = 5 << 20

// keep says what a report has beside its verdicts and tables.
type keep struct {
	// courses and runs in the raw data, charts of courses on the page, raw data at
	// all.
	courses, runs, charts, raw bool
	// use is in how many scenarios it is shown what nodes used, decisions in how many
	// where pods went.
	use, decisions int
	// without names what is left out.
	without string
}

// all is more scenarios than there are.
const all = math.MaxInt

// keeps are tried one after the other until the report is small enough.
var keeps = []keep{
	{courses: true, runs: true, charts: true, raw: true, use: all, decisions: all},
	{runs: true, charts: true, raw: true, use: all, decisions: all, without: "The raw data is without what charts are drawn from and where pods went"},
	{charts: true, raw: true, use: all, decisions: all, without: "The raw data is without its single runs"},
	{charts: true, raw: true, use: all, decisions: 4, without: "Where pods went is shown in the first four scenarios only, and the raw data is without its single runs"},
	{charts: true, raw: true, use: all, decisions: 1, without: "Where pods went is shown in the first scenario only, and the raw data is without its single runs"},
	{charts: true, raw: true, use: 1, decisions: 1, without: "What nodes used and where pods went is shown in the first scenario only, and the raw data is without its single runs"},
	{charts: true, raw: true, without: "What nodes used, where pods went and the raw data of single runs are left out"},
	{raw: true, without: "Charts, heatmaps, where pods went and the raw data of single runs are left out"},
	{without: "Charts, heatmaps, where pods went and the raw data are left out"},
}

// Write writes the report of a result.
func Write(w io.Writer, r *result.Result) error {
	return writeWithin(w, r, MaxSize)
}

func writeWithin(w io.Writer, r *result.Result, size int) error {
	var made bytes.Buffer
	for _, k := range keeps {
		view := newView(r, k)
		if k.raw {
			raw, err := rawData(r, k)
			if err != nil {
				return err
			}
			view.Raw = raw
		}
		if k.without != "" {
			view.Without = k.without + ", to keep the report small: -o json has everything."
		}
		made.Reset()
		if err := page.Execute(&made, view); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		if made.Len() <= size {
			break
		}
	}
	_, err := w.Write(made.Bytes())
	return err
}

// rawData returns the result as JSON, without what is not to be kept.
func rawData(r *result.Result, k keep) (template.HTML, error) {
	short := *r
	short.Scenarios = make([]result.Scenario, len(r.Scenarios))
	for i := range r.Scenarios {
		short.Scenarios[i] = r.Scenarios[i]
		profiles := make([]result.Profile, len(r.Scenarios[i].Profiles))
		for j, profile := range r.Scenarios[i].Profiles {
			switch {
			case !k.runs:
				profile.Runs = []result.Run{}
			case !k.courses:
				profile.Runs = append([]result.Run(nil), profile.Runs...)
				for run := range profile.Runs {
					profile.Runs[run].TimeSeries, profile.Runs[run].NodeUse, profile.Runs[run].Decisions = nil, nil, nil
				}
			}
			profiles[j] = profile
		}
		short.Scenarios[i].Profiles = profiles
	}
	raw, err := json.Marshal(short)
	if err != nil {
		return "", fmt.Errorf("the raw data of the report: %w", err)
	}
	// Marshal writes <, > and & as \u003c and so on: no markup can be in it, and
	// quotes, which are many, may stay as they are in text.
	return template.HTML(raw), nil
}
