package shadow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Report states what the candidates would have changed over the last days. In its result, each window is a seed, and the first profile is
// the one that was in force in the last window.
type Report struct {
	*result.Result
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Began is the start of the window that is being recorded, zero if it is not known.
	Began time.Time `json:"-"`
	// Newest is the newest window that was replayed, nil if there is none.
	Newest *Window `json:"-"`
	// Hours is the length of the windows that are compared.
	Hours float64 `json:"hours"`
	// Excluded states why windows are not compared, with their number.
	Excluded []string `json:"excluded"`
	// MeasuredMinutes is the overload with the recorded placements, ModelMinutes with the simulated profile in force, in node minutes.
	MeasuredMinutes float64 `json:"measuredOverloadMinutes"`
	ModelMinutes    float64 `json:"modelOverloadMinutes"`
	// Error is the error of the model: the difference of both.
	Error    Estimate  `json:"errorOfModel"`
	Verdicts []Verdict `json:"verdicts"`
	// MemoryKills counts the containers that were killed for their memory.
	MemoryKills int `json:"memoryKills"`
	// Missing lists data that recordings lack.
	Missing []string `json:"missing"`
	// LowestCost is the last recommendation over the recordings, nil if there is none.
	LowestCost *recommend.Result `json:"lowestCost,omitempty"`
}

// MarshalJSON returns the report without single runs.
func (r *Report) MarshalJSON() ([]byte, error) {
	type fields Report
	out := fields(*r)
	out.Result = r.WithoutRuns()
	return json.Marshal(out)
}

// Estimate is a sum over windows. Half is half the width of its confidence interval, nil with fewer than two windows.
type Estimate struct {
	Sum  float64  `json:"sum"`
	Half *float64 `json:"half,omitempty"`
}

// String returns a text such as "412 ± 60".
func (e Estimate) String() string {
	if e.Half == nil || format.Plain(*e.Half) == "0" {
		return format.Plain(e.Sum)
	}
	return format.Plain(e.Sum) + " ± " + format.Plain(*e.Half)
}

// addMissing adds texts to others, each once and at most result.MaxOverloaded.
func addMissing(all, texts []string) []string {
	for _, text := range texts {
		if !slices.Contains(all, text) && len(all) < result.MaxOverloaded {
			all = append(all, text)
		}
	}
	return all
}

// estimate returns the sum of values.
func estimate(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{}
	}
	n := float64(len(values))
	d := result.PairedDifference(make([]float64, len(values)), values)
	e := Estimate{Sum: d.Mean * n}
	if d.Interval != nil {
		e.Half = new((d.Interval.High - d.Mean) * n)
	}
	return e
}

// Verdict states what a candidate would have changed.
type Verdict struct {
	result.Verdict
	// Avoided and Caused are the overload that only the profile in force, or only the candidate, has in the same minutes, in node minutes.
	// Difference is Caused less Avoided.
	Avoided    Estimate `json:"avoided"`
	Caused     Estimate `json:"caused"`
	Difference Estimate `json:"difference"`
	// Placed is the number of pods that were created and placed, Elsewhere of those that the candidate places on nodes of another kind.
	Placed    int `json:"placed"`
	Elsewhere int `json:"elsewhere"`
}

// NewReport compares windows, which are in the order of their start, from one time to another.
func NewReport(windows []*Window, from, to time.Time) *Report {
	r := &Report{
		Result: &result.Result{
			APIVersion: result.APIVersion, Kind: result.Kind, Assumed: []string{}, Profiles: []string{}, Seeds: []uint64{},
			Settings: result.Settings{StepSeconds: replay.Step, Metrics: Metrics, Level: result.Level},
		},
		From: from.UTC(), To: to.UTC(), Excluded: []string{}, Verdicts: []Verdict{}, Missing: []string{},
	}
	if len(windows) > 0 && windows[0].From.After(from) { // nothing was watched before
		r.From = windows[0].From.UTC()
	}
	for _, w := range windows {
		if w.Error != "" {
			continue
		}
		r.Newest, r.Source, r.Profiles = w, w.Source, []string{w.Current.Profile}
		for _, candidate := range w.Candidates {
			r.Profiles = append(r.Profiles, candidate.Profile)
		}
	}
	r.Source.Name = "windows of a shadow"
	compared, why := r.compared(windows)
	var errors []float64
	for _, w := range compared {
		r.MeasuredMinutes += w.Measured.OverloadMinutes
		r.ModelMinutes += w.Current.Run.OverloadMinutes
		errors = append(errors, w.Current.Run.OverloadMinutes-w.Measured.OverloadMinutes)
		r.Hours += w.To.Sub(w.From).Hours()
		r.MemoryKills += w.MemoryKills
		r.Missing = addMissing(r.Missing, w.Missing)
	}
	r.Windows, r.Error = len(compared), estimate(errors)
	if len(r.Profiles) > 0 {
		r.judge(compared, why)
	}
	r.Notes = []string{}
	for _, excluded := range r.Excluded {
		r.Notes = append(r.Notes, "Not compared: "+excluded+".")
	}
	return r
}

// compared returns the windows with usage and with the profile in force of the report, and why there are none.
func (r *Report) compared(windows []*Window) (compared []*Window, why string) {
	failed, unused, other := 0, 0, 0
	for _, w := range windows {
		switch {
		case w.Error != "":
			failed++
			why = "the replay failed: " + w.Error
		case w.Current.Profile != r.Profiles[0]:
			other++
		case !w.hasUsage():
			unused++
			why = "usage is missing: it was recorded for " + format.Part(w.UsageKnown, w.Pods, "pod")
		default:
			compared = append(compared, w)
		}
	}
	exclude := func(n int, reason string) {
		if n > 0 {
			r.Excluded = append(r.Excluded, format.Of(n, "window")+": "+reason)
		}
	}
	exclude(failed, "could not be replayed")
	exclude(unused, "usage of fewer than half of the pods")
	exclude(other, "another profile was in force")
	return compared, why
}

// judge compares the candidates with the profile in force over windows, and sets the verdicts. why states why there are no windows.
func (r *Report) judge(compared []*Window, why string) {
	if len(compared) == 0 {
		for _, name := range r.Profiles[1:] {
			v := result.Verdict{Candidate: name, Answer: result.CannotTell, Reason: cmp.Or(why, "no window is complete")}
			v.Sentence = fmt.Sprintf("Cannot tell what %s would have changed in the last %s: %s.", name, r.span(), v.Reason)
			r.Verdicts = append(r.Verdicts, Verdict{Verdict: v})
		}
		return
	}
	measured := &result.Profile{Name: "measured", Runs: []result.Run{}}
	s := result.Scenario{Usage: "recorded, or else " + generate.Beta, Measured: measured}
	for i, name := range r.Profiles {
		p := result.Profile{Name: name, Runs: []result.Run{}}
		v := Verdict{}
		var avoided, caused, difference []float64
		overloaded := 0.0
		for j, w := range compared {
			seed, with := uint64(j+1), &w.Current
			if i == 0 {
				r.Seeds = append(r.Seeds, seed)
				measured.Runs = append(measured.Runs, w.run(&w.Measured, seed))
			} else if with = w.candidate(name); with == nil {
				continue
			}
			p.Runs = append(p.Runs, w.run(&with.Run, seed))
			less, more := byMinute(&w.Current.Run, &with.Run)
			avoided, caused = append(avoided, less), append(caused, more)
			difference = append(difference, with.Run.OverloadMinutes-w.Current.Run.OverloadMinutes)
			overloaded += with.Run.OverloadMinutes + w.Current.Run.OverloadMinutes
			v.Placed, v.Elsewhere = v.Placed+with.Placed, v.Elsewhere+with.Elsewhere
		}
		p.Overloaded = result.SumOverloaded(p.Runs)
		if v.Avoided, v.Caused, v.Difference = estimate(avoided), estimate(caused), estimate(difference); i > 0 {
			if overloaded > 0 {
				p.Effect = r.effect(name, &v)
			}
			r.Verdicts = append(r.Verdicts, v)
		}
		s.Profiles = append(s.Profiles, p)
	}
	measured.Overloaded = result.SumOverloaded(measured.Runs)
	s.Compare()
	r.Scenario = s
	r.Conclude()
	for i := range r.Verdicts {
		r.Verdicts[i].Verdict = *s.Profiles[i+1].Verdict
	}
}

// effect states what a candidate would have changed.
func (r *Report) effect(name string, v *Verdict) string {
	text := fmt.Sprintf("In the last %s %s would have avoided %s node minutes of overload, and caused %s.",
		r.span(), name, v.Avoided, v.Caused)
	if v.Placed > 0 {
		text += " It would have placed " + format.Part(v.Elsewhere, v.Placed, "pod") + " on another kind of node."
	}
	return text
}

// byMinute returns the node minutes of overload that only a has, and that only b has, counted in each interval of their time series.
func byMinute(a, b *result.Run) (less, more float64) {
	change := b.OverloadMinutes - a.OverloadMinutes
	if a.TimeSeries == nil || b.TimeSeries == nil || len(a.TimeSeries.OverloadedNodes) != len(b.TimeSeries.OverloadedNodes) {
		return max(-change, 0), max(change, 0)
	}
	minutes := float64(a.TimeSeries.EverySeconds) / 60
	for i, before := range a.TimeSeries.OverloadedNodes {
		d := (b.TimeSeries.OverloadedNodes[i] - before) * minutes
		less, more = less+max(-d, 0), more+max(d, 0)
	}
	return less, more
}

// span returns the time of the report in words.
func (r *Report) span() string {
	if days := int(r.To.Sub(r.From).Hours()+0.5) / 24; days > 1 {
		return format.Of(days, "day")
	}
	return "day"
}

// Basis states what the verdicts compare, and the error of the model.
func (r *Report) Basis() string {
	switch {
	case r.Windows == 0 && len(r.Excluded) > 0:
		return "No window is compared."
	case r.Windows == 0:
		began := "The first result follows"
		if !r.Began.IsZero() {
			began = "The current window began at " + r.Began.UTC().Format("2006-01-02 15:04") + " UTC: its result follows"
		}
		return "Cannot tell: no window is complete. " + began + " after one window, an hour unless --every is set."
	}
	length := format.Plain(r.Hours) + " h"
	if r.Hours < 1 {
		length = format.Plain(60*r.Hours) + " min"
	}
	return fmt.Sprintf("%s of %s in total, with %s in force: %s node minutes of overload measured, %s simulated. Error of the model: %s.",
		format.Of(r.Windows, "window"), length, r.Profiles[0], format.Plain(r.MeasuredMinutes),
		format.Plain(r.ModelMinutes), r.Error)
}

// Document returns the page of the report.
func (r *Report) Document() report.Document {
	const minute = "2006-01-02 15:04"
	d := report.Document{
		Result: r.Result,
		Title:  "What other profiles would have done to this cluster",
		About: fmt.Sprintf(
			"%s From %s to %s (UTC). ± is the %.0f %% confidence interval, paired over windows. Pods that ran at the start of a "+
				"window are where the profile left them in the window before. Nothing in the cluster is changed.",
			r.Basis(),
			r.From.Format(minute),
			r.To.Format(minute),
			100*result.Level,
		),
	}
	if len(r.Scenario.Profiles) == 0 {
		for i := range r.Verdicts {
			d.Boxes = append(d.Boxes, report.Box{Title: r.Verdicts[i].Candidate, Text: []string{r.Verdicts[i].Sentence}})
		}
	}
	if r.LowestCost != nil {
		v := &r.LowestCost.Verdict
		d.Boxes = append(d.Boxes, report.Box{Title: "Lowest cost: " + string(v.Answer), Text: []string{v.Sentence}})
		d.Sections = r.LowestCost.Sections(false)[1:]
		d.Sections[0].Title = "Cost against overload and wait"
	}
	nodes := r.overloadSection("Overloaded nodes, minutes", func(o *result.Overloaded) []result.OverloadTime { return o.Nodes })
	workloads := r.overloadSection(
		"Affected workloads, pod minutes",
		func(o *result.Overloaded) []result.OverloadTime { return o.Workloads },
	)
	for _, section := range []*report.Section{nodes, workloads} {
		if len(section.Rows) > 0 {
			d.Sections = append(d.Sections, section)
		}
	}
	d.Sections = append(d.Sections, &report.Section{Title: "Measured besides overload", Items: []string{
		"Containers killed for their memory: " + format.Plain(float64(r.MemoryKills)),
	}})
	if len(r.Missing) > 0 {
		d.Sections = append(d.Sections, &report.Section{Title: "Missing in the recordings", Items: r.Missing})
	}
	return d
}

// overloadSection has a table of the nodes or workloads with the longest times: measured, and with each profile.
func (r *Report) overloadSection(title string, times func(*result.Overloaded) []result.OverloadTime) *report.Section {
	section := &report.Section{Title: title, Head: []string{"name"}}
	if len(r.Scenario.Profiles) == 0 {
		return section
	}
	s := &r.Scenario
	var columns []result.Run
	for _, p := range append([]result.Profile{*s.Measured}, s.Profiles...) {
		section.Head = append(section.Head, p.Name)
		columns = append(columns, result.Run{Overloaded: p.Overloaded})
	}
	for _, row := range times(result.SumOverloaded(columns)) {
		cells := []string{row.Name}
		if row.Kind != "" {
			cells[0] += " (" + row.Kind + ")"
		}
		for i := range columns {
			minutes := 0.0
			for _, t := range times(columns[i].Overloaded) {
				if t.Name == row.Name && t.Kind == row.Kind {
					minutes = t.Minutes
				}
			}
			cells = append(cells, format.Plain(minutes))
		}
		section.Rows = append(section.Rows, cells)
	}
	return section
}
