// Package page turns results into pages that people read.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed live.html timeline.html fleet.html
var files embed.FS

// Live is what the demo's page shows of a running cluster.
type Live struct {
	// Kubeconfig by which kubectl reaches the cluster.
	Kubeconfig string
	// Time of this view, as shown.
	Time      string
	Nodes     []LiveNode
	Pending   []string
	Decisions []LiveDecision
	Results   []LiveResult
	// Timeline of the slack scenario, nil before it.
	Timeline *LiveTimeline
	// Fleet of managed clusters, nil before the fleet scenario.
	Fleet *LiveFleet
}

// LiveNode is one node and the pods on it.
type LiveNode struct {
	Name string
	Bars []LiveBar
	Pods []string
}

// LiveBar is one resource of a node. Amounts are text; fractions are of the
// allocatable amount and may exceed 1.
type LiveBar struct {
	Resource, Allocatable string
	Request, Limit        string
	RequestFraction       float64
	LimitFraction         float64
	HasLoad               bool
	LoadMean, LoadStdDev  float64
	UnboundedPods         int64
}

// LiveDecision is where the scheduler took a pod, and why.
type LiveDecision struct {
	Time, Scenario, Profile, Pod, Node, Reason string
	Scores                                     []LiveScore
}

// LiveScore is the total of one node for a pod, or why it was left out.
type LiveScore struct {
	Node, Detail string
	Total        int64
	Chosen       bool
}

// LiveResult is a row of the table of scenarios.
type LiveResult struct {
	Scenario, Shows, Profile, Pod, Node, Want string
	OK, Ours                                  bool
}

// axis is how many times the allocatable amount the bars have room for; what
// is longer is cut.
const axis = 2.0

var live = template.Must(template.New("live.html").Funcs(template.FuncMap{
	// width turns a fraction of the allocatable amount into percent of the bar.
	"width": func(fraction float64) template.CSS {
		return template.CSS(fmt.Sprintf("%.2f%%", 100*min(max(fraction, 0), axis)/axis))
	},
	"over":    func(fraction float64) bool { return fraction > axis },
	"percent": func(fraction float64) string { return fmt.Sprintf("%.0f %%", 100*fraction) },
	"less":    func(a, b float64) float64 { return max(a-b, 0) },
	"plus":    func(a, b float64) float64 { return a + b },
	"twice":   func(a float64) float64 { return 2 * a },
	"chart":   draw,
	"stacks":  stacks,
	"at":      func(place float64) string { return fmt.Sprintf("%.2f%%", place) },
}).ParseFS(files, "live.html", "timeline.html", "fleet.html"))

// WriteLive writes the page, everything from the cluster escaped.
func WriteLive(w io.Writer, view Live) error { return live.Execute(w, view) }
