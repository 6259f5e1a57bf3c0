package result

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
)

// Backtest compares the measurements in a recording with a simulation of the recording. The difference is the error of
// the model.
type Backtest struct {
	// Profile is the name of the simulated profile, which should be the one that was in force.
	Profile string `json:"profile"`
	// Note states what the recording lacks for a backtest, empty if it lacks nothing.
	Note string `json:"note,omitempty"`
	// Figures are the compared figures: none if the scheduler placed no pod, and none of usage if no usage is recorded.
	Figures []BacktestFigure `json:"figures"`
	// Placements compares the nodes of pods.
	Placements Placements `json:"placements"`
}

// BacktestFigure is a figure as measured and as simulated.
type BacktestFigure struct {
	Name      string  `json:"name"`
	Label     string  `json:"label"`
	Unit      string  `json:"unit,omitempty"`
	Measured  float64 `json:"measured"`
	Simulated float64 `json:"simulated"`
	// Error is the difference as a fraction of the measured value, nil if only that is 0 or the figure is not comparable.
	Error *float64 `json:"error"`
	// Main is set for the figures of the summary.
	Main bool `json:"main"`
}

// Recorded has the additional results of a run over a recording.
type Recorded struct {
	// CPULoad and MemoryLoad are those of the outcome.
	CPULoad    Distribution `json:"cpuLoad"`
	MemoryLoad Distribution `json:"memoryLoad"`
	// Placements counts the pods that the scheduler placed.
	Placements Placements `json:"placements"`
	// PlacedShare is the share of the time of pods on nodes that the scheduler selected in the run, without pods that may run on one node
	// only. The other pods ran at the start, or were placed as recorded.
	PlacedShare float64 `json:"placedShare"`
	// Left is what another run continues with, nil if none does.
	Left *State `json:"left,omitempty"`
	// NodesChanged counts the nodes that appeared or were removed within the time.
	NodesChanged int `json:"nodesChanged,omitempty"`
	// Part is the part of the recording, in the run with the first seed.
	Part *Part `json:"part,omitempty"`
}

// State is what a run leaves at its end.
type State struct {
	// Nodes has the nodes of the pods that run, by namespace and name.
	Nodes map[string]string `json:"nodes"`
	// History is what the scheduler has learned about the usage of workloads.
	History []predict.Past `json:"history,omitempty"`
}

// Part describes a part of a recording.
type Part struct {
	Source
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// MemoryKills counts the containers that were killed for their memory, if the recording has them.
	MemoryKills int `json:"memoryKills"`
	// Missing lists data that the recording lacks.
	Missing []string `json:"missing"`
}

// Placements compares the first node of pods with the node on which they were recorded: whether they are of the same kind, with equal
// amounts, labels and taints.
type Placements struct {
	Same  int `json:"same"`
	Other int `json:"other"`
	// NeverScheduled counts pods that had no node in the recording.
	NeverScheduled int `json:"neverScheduled"`
}

// recorded returns the comparison with the recording, zero without one.
func (r *Run) recorded() Recorded {
	if r.Recorded == nil {
		return Recorded{}
	}
	return *r.Recorded
}

// fewPlaced is the number of placed pods below which a backtest says little.
const fewPlaced = 50

// NewBacktest compares the run with the recorded placements with a run in which a profile placed the pods.
func NewBacktest(profile string, source Source, measured, simulated *Run) *Backtest {
	b := &Backtest{Profile: profile, Figures: []BacktestFigure{}, Placements: simulated.recorded().Placements}
	usage := "usage was recorded for " + format.Part(source.UsageKnown, source.Pods, "pod")
	placed := b.Placements.Same + b.Placements.Other
	switch {
	case placed == 0:
		b.Note = "No backtest: the scheduler placed no pod in the recording, and " + usage + "."
		return b
	case source.UsageKnown == 0:
		b.Note = "No backtest of usage: " + usage + "."
	case placed < fewPlaced:
		b.Note = "This says little about the model: the scheduler placed only " + format.Of(placed, "pod") + "."
	}
	changed := measured.recorded().NodesChanged
	if changed > 0 {
		b.Note = strings.TrimSpace(
			fmt.Sprintf("%s No backtest of pending and unschedulable pods: %s %s or %s removed as recorded, for the "+
				"recorded placements, not when the simulated pods need them.",
				b.Note, format.Of(changed, "node"), format.Form(changed, "appears", "appear"), format.Form(changed, "is", "are")),
		)
	}
	for _, f := range definitions {
		if !f.HasUse(inBacktest) || source.UsageKnown == 0 && isOfUsage(f.Name, f.Unit) {
			continue
		}
		isComparable := changed == 0 || f.Name != "unschedulable" && f.Label != "pending"
		figure := BacktestFigure{
			Name: f.Name, Label: f.Label, Unit: f.Unit, Main: isComparable && f.HasUse(inSummary),
			Measured: f.Value(measured), Simulated: f.Value(simulated),
		}
		switch {
		case !isComparable:
		case f.Unit == "mean seconds" && max(figure.Measured, figure.Simulated) < 1: // runs have whole seconds
			figure.Error = new(0.0)
		default:
			figure.Error = relativeError(figure.Measured, figure.Simulated)
		}
		b.Figures = append(b.Figures, figure)
	}
	return b
}

// isOfUsage reports whether a figure is unknown without usage: overload, saturation and load of nodes are.
func isOfUsage(name, unit string) bool {
	return unit == nodeMinutes || strings.Contains(name, "Load")
}

// relativeError returns the error of a value, nil if it is infinite.
func relativeError(measured, simulated float64) *float64 {
	var e float64
	switch {
	case math.Abs(simulated-measured) <= tolerance*math.Abs(measured):
	case measured == 0:
		return nil
	default:
		e = (simulated - measured) / math.Abs(measured)
	}
	return &e
}

// Title returns the label and the unit.
func (f *BacktestFigure) Title() string { return title(f.Label, f.Unit) }

// ErrorText returns the error in percent, or a dash if there is none.
func (f *BacktestFigure) ErrorText() string {
	switch {
	case f.Error == nil:
		return "-"
	case math.Abs(*f.Error) < 0.0005:
		return "0 %"
	}
	return fmt.Sprintf("%+.1f %%", 100**f.Error)
}

// Summary returns the error of the main figures in one sentence, for the top of reports.
func (b *Backtest) Summary() string {
	if len(b.Figures) == 0 {
		return b.Note
	}
	var parts []string
	for i := range b.Figures {
		f := &b.Figures[i]
		if f.Main {
			parts = append(parts, fmt.Sprintf("%s %s (measured %s, %s)",
				f.Title(), format.Auto(f.Simulated), format.Auto(f.Measured), f.ErrorText()))
		}
	}
	placements := ""
	if n := b.Placements.Same + b.Placements.Other; n > 0 {
		placements = "; " + format.Part(b.Placements.Same, n, "pod") + " on the recorded kind of node"
	}
	return strings.TrimSpace(fmt.Sprintf("Error of the model, if %s was the profile in force: %s%s. %s",
		b.Profile, strings.Join(parts, "; "), placements, b.Note))
}
