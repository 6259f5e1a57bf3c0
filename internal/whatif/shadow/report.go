package shadow

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// reportKind is the kind of a report.
const reportKind = "ShadowReport"

// Report states what the candidates would have changed over the last days.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	// Profile is the profile in force in the last window.
	Profile string `json:"profile"`
	// Began is the start of the window that is being recorded, zero if it is not known.
	Began time.Time `json:"-"`
	// Windows counts the windows that are compared, Hours is their length.
	Windows int     `json:"windows"`
	Hours   float64 `json:"hours"`
	// Excluded states why windows are not compared, with their number.
	Excluded []string `json:"excluded"`
	// MeasuredMinutes is the overload with the recorded placements, ModelMinutes with the simulated profile in force, in node minutes.
	MeasuredMinutes float64 `json:"measuredOverloadMinutes"`
	ModelMinutes    float64 `json:"modelOverloadMinutes"`
	// Error is the error of the model: the difference of both.
	Error    Estimate  `json:"errorOfModel"`
	Verdicts []Verdict `json:"verdicts"`
	// Nodes and Workloads had the longest overload with the recorded placements.
	Nodes     []result.OverloadTime `json:"nodes"`
	Workloads []result.OverloadTime `json:"workloads"`
	// MemoryKills counts the containers that were killed for their memory.
	MemoryKills int              `json:"memoryKills"`
	Outcomes    MeasuredOutcomes `json:"further"`
	// Missing lists data that recordings lack.
	Missing []string `json:"missing"`
	// Recommendation is the last recommendation over the recordings, nil if there is none.
	Recommendation *recommend.Result `json:"recommendation,omitempty"`
}

// Estimate is a sum over windows. Half is half the width of its confidence interval, nil with fewer than two windows.
type Estimate struct {
	Sum  float64  `json:"sum"`
	Half *float64 `json:"half,omitempty"`
}

// String returns a text such as "412 ± 60".
func (e Estimate) String() string {
	if e.Half == nil || number(*e.Half) == "0" {
		return number(e.Sum)
	}
	return number(e.Sum) + " ± " + number(*e.Half)
}

// number returns a number without digits that mean nothing.
func number(v float64) string {
	decimals := 0
	if math.Abs(v) < 100 && math.Abs(v-math.Round(v)) >= 0.05 {
		decimals = 1
	}
	return format.ToPlain(format.Format(v, decimals))
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
		half := (d.Interval.High - d.Mean) * n
		e.Half = &half
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
	// Others are the differences of other figures.
	Others []FigureDifference `json:"others"`
	// Nodes and Workloads have the longest overload with the candidate.
	Nodes     []result.OverloadTime `json:"nodes"`
	Workloads []result.OverloadTime `json:"workloads"`
}

// FigureDifference is the difference of a figure from the profile in force, summed over windows.
type FigureDifference struct {
	Figure  string   `json:"figure"`
	Label   string   `json:"label"`
	Current float64  `json:"current"`
	Change  Estimate `json:"change"`
}

// NewReport compares windows, which are in the order of their start, from one time to another.
func NewReport(windows []*Window, from, to time.Time) *Report {
	r := &Report{
		APIVersion: APIVersion, Kind: reportKind, From: from.UTC(), To: to.UTC(), Excluded: []string{}, Verdicts: []Verdict{},
		Missing: []string{},
	}
	if len(windows) > 0 && windows[0].From.After(from) { // nothing was watched before
		r.From = windows[0].From.UTC()
	}
	var last *Window // that was replayed
	for _, w := range windows {
		if w.Error == "" {
			last = w
			r.Profile = w.Current.Profile
		}
	}
	compared, why := r.compared(windows)
	var errors []float64
	var measured []*result.Overloaded
	for _, w := range compared {
		r.MeasuredMinutes += w.Measured.OverloadMinutes
		r.ModelMinutes += w.Current.Run.OverloadMinutes
		errors = append(errors, w.Current.Run.OverloadMinutes-w.Measured.OverloadMinutes)
		measured = append(measured, w.Measured.Overloaded)
		r.Hours += w.To.Sub(w.From).Hours()
		r.MemoryKills += w.MemoryKills
		r.Outcomes.add(&w.Outcomes)
		r.Missing = addMissing(r.Missing, w.Missing)
	}
	r.Windows, r.Error = len(compared), estimate(errors)
	r.Nodes, r.Workloads = merge(measured)
	if last != nil {
		for _, candidate := range last.Candidates {
			r.Verdicts = append(r.Verdicts, r.verdict(candidate.Profile, compared, why))
		}
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
		case w.Current.Profile != r.Profile:
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

// verdict compares a candidate with the profile in force, over the windows that have it.
func (r *Report) verdict(name string, compared []*Window, why string) Verdict {
	v := Verdict{Verdict: result.Verdict{Candidate: name, Answer: result.CannotTell}, Others: []FigureDifference{}}
	var avoided, caused, difference, errors []float64
	var overloaded []*result.Overloaded
	var current, candidate []*result.Run
	for _, w := range compared {
		of := w.candidate(name)
		if of == nil {
			continue
		}
		a, b := &w.Current.Run, &of.Run
		v.Placed, v.Elsewhere = v.Placed+of.Placed, v.Elsewhere+of.Elsewhere
		less, more := byMinute(a, b)
		avoided, caused, difference = append(avoided, less), append(caused, more), append(difference, b.OverloadMinutes-a.OverloadMinutes)
		errors = append(errors, a.OverloadMinutes-w.Measured.OverloadMinutes)
		overloaded, current, candidate = append(overloaded, b.Overloaded), append(current, a), append(candidate, b)
	}
	v.Avoided, v.Caused, v.Difference = estimate(avoided), estimate(caused), estimate(difference)
	v.Nodes, v.Workloads = merge(overloaded)
	for _, d := range result.Figures {
		if !d.HasUse(result.InShadow) {
			continue
		}
		f := FigureDifference{Figure: d.Name, Label: d.Title()}
		var changes []float64
		for i := range current {
			f.Current += d.Value(current[i])
			changes = append(changes, d.Value(candidate[i])-d.Value(current[i]))
		}
		f.Change = estimate(changes)
		v.Others = append(v.Others, f)
	}
	r.setAnswer(&v, len(difference), math.Abs(estimate(errors).Sum), why)
	return v
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

// setAnswer sets the answer and the sentence of a verdict over a number of windows, in which the model has an error.
func (r *Report) setAnswer(v *Verdict, windows int, modelError float64, why string) {
	change := math.Abs(v.Difference.Sum)
	switch {
	case windows == 0 && why != "":
		v.Reason = why
	case windows == 0:
		v.Reason = "no window is complete"
	case r.MeasuredMinutes == 0 && v.Avoided.Sum == 0 && v.Caused.Sum == 0:
		v.Reason = "nothing was overloaded"
	case v.Avoided.Sum == 0 && v.Caused.Sum == 0:
		v.Reason = "no overload differs"
	case windows == 1:
		v.Reason = "one window has no interval"
	case modelError > change:
		v.Reason = fmt.Sprintf("the error of the model, %s node minutes, is larger than the difference, %s",
			number(modelError), number(change))
	case change <= *v.Difference.Half:
		v.Reason = fmt.Sprintf("the difference, %s node minutes, can be chance", v.Difference)
	case v.Difference.Sum < 0:
		v.Answer = result.Better
	default:
		v.Answer = result.Worse
	}
	if v.Answer == result.CannotTell {
		v.Sentence = fmt.Sprintf("Cannot tell what %s would have changed in the last %s: %s.", v.Candidate, r.span(), v.Reason)
	} else {
		v.Sentence = fmt.Sprintf("In the last %s %s would have avoided %s node minutes of overload, and caused %s.",
			r.span(), v.Candidate, v.Avoided, v.Caused)
	}
	if v.Placed > 0 {
		v.Sentence += " It would have placed " + format.Part(v.Elsewhere, v.Placed, "pod") + " on another kind of node."
	}
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
	length := number(r.Hours) + " h"
	if r.Hours < 1 {
		length = number(60*r.Hours) + " min"
	}
	return fmt.Sprintf("%s of %s in total, with %s in force: %s node minutes of overload measured, %s simulated. Error of the model: %s.",
		format.Of(r.Windows, "window"), length, r.Profile, number(r.MeasuredMinutes),
		number(r.ModelMinutes), r.Error)
}

// merge adds the times of windows, and returns the longest.
func merge(windows []*result.Overloaded) (nodes, workloads []result.OverloadTime) {
	var ofNodes, ofWorkloads [][]result.OverloadTime
	for _, o := range windows {
		if o != nil {
			ofNodes, ofWorkloads = append(ofNodes, o.Nodes), append(ofWorkloads, o.Workloads)
		}
	}
	return sum(ofNodes), sum(ofWorkloads)
}

// sum adds the minutes of each node or workload in lists, and returns the longest.
func sum(lists [][]result.OverloadTime) []result.OverloadTime {
	minutes := map[result.OverloadTime]float64{}
	for _, t := range slices.Concat(lists...) {
		minutes[result.OverloadTime{Name: t.Name, Kind: t.Kind}] += t.Minutes
	}
	sums := []result.OverloadTime{}
	for key, m := range minutes {
		key.Minutes = m
		sums = append(sums, key)
	}
	sums, _ = result.Longest(sums)
	return sums
}
