package node

import (
	"embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html page.js style.css
var files embed.FS

// Live is the content of the live page.
type Live struct {
	// Running is the scenario that is running, empty before and after the scenarios.
	Running string
	// Commands are shell commands to try. They are empty until the cluster is the user's.
	Commands []LiveCommand
	// Time is the time of this view.
	Time  string
	Nodes []LiveNode
	// Profiles are the profiles of the scheduler.
	Profiles  []LiveProfile
	Pending   []LivePending
	Decisions []LiveDecision
}

// LiveCommand is a shell command and its purpose.
type LiveCommand struct{ Purpose, Text string }

// LiveProfile is a profile of the scheduler and its score plugins.
type LiveProfile struct{ Name, Plugins string }

// LivePending is a pod without a node and the reason.
type LivePending struct{ Pod, Reason string }

// LiveNode is a node and its pods.
type LiveNode struct {
	Name string
	Bars []LiveBar
	Pods []string
}

// LiveBar is a resource of a node. Amounts are texts. Fractions are fractions of the allocatable
// amount and may exceed 1.
type LiveBar struct {
	Resource, Allocatable string
	Request, Limit        string
	RequestFraction       float64
	LimitFraction         float64
	HasLoad               bool
	LoadMean, LoadStdDev  float64
	UnboundedPods         int64
}

// LiveDecision is the decision of the scheduler on a pod and its reason.
type LiveDecision struct {
	// Node is the selected node, empty if there is none.
	Time, Profile, Pod, Node, Reason string
	// Default is the node that the default profile selects for a pod of the user, empty if it is not known.
	Default string
	// Scores are the scores of the nodes on which the pod fits. It does not fit on Unfit nodes.
	Scores []LiveScore
	Unfit  int
}

// LiveScore is the total score of a node for a pod.
type LiveScore struct {
	Node   string
	Total  int64
	Chosen bool
}

// axis is the length of the bars in multiples of the allocatable amount. Longer bars are cut.
const axis = 2.0

var live = template.Must(template.New("page.html").Funcs(template.FuncMap{
	// width returns a fraction of the allocatable amount as percent of the bar.
	"width": func(fraction float64) template.CSS {
		return template.CSS(fmt.Sprintf("%.2f%%", 100*min(max(fraction, 0), axis)/axis))
	},
	"minus":   func(a, b float64) float64 { return a - b },
	"twice":   func(a float64) float64 { return 2 * a },
	"percent": func(fraction float64) string { return fmt.Sprintf("%.0f\u00a0%%", 100*fraction) },
}).ParseFS(files, "page.html"))

// writeLive writes the page. All texts are escaped.
func writeLive(w io.Writer, view Live) error { return live.Execute(w, view) }
