// Package page serves the live page of the demo.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed live.html style.html script.html views.html timeline.html fleet.html
var files embed.FS

// Live is the content of the live page.
type Live struct {
	// Running is the scenario that is running, empty before and after them.
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
	Results   []LiveResult
	// Timeline is the timeline of the slack scenario, nil before it has run.
	Timeline *LiveTimeline
	// Policies is nil before the slack controller runs.
	Policies *LivePolicies
	// Fleet is nil before the fleet scenario has run.
	Fleet *LiveFleet
}

// LiveCommand is a shell command and what it does.
type LiveCommand struct{ Purpose, Text string }

// LiveProfile is a profile of the scheduler and what it scores nodes by.
type LiveProfile struct{ Name, Plugins string }

// LivePending is a pod without a node and the reason.
type LivePending struct{ Pod, Reason string }

// LivePolicies are the slack policies and a description of the autoscaler.
type LivePolicies struct {
	Autoscaler string
	Policies   []LivePolicy
}

// LivePolicy is the status of a slack policy. Amounts are texts.
type LivePolicy struct {
	Name, Rate, Target, Available, Message string
	Placeholders                           int64
	Ready                                  bool
}

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
	Time, Scenario, Profile, Pod, Node, Reason string
	// Default is the node that the default profile selects for a pod of the user, empty if it is not known.
	Default string
	Scores  []LiveScore
}

// LiveScore is the total score of a node for a pod, or the reason why the pod does not fit.
type LiveScore struct {
	Node, Detail string
	Total        int64
	Chosen       bool
}

// LiveResult is a row of the table of scenarios.
type LiveResult struct {
	Scenario, Profile, Pod, Node, Want string
	OK, Ours                           bool
}

// maxOwn is the number of the user's pods that are shown first.
const maxOwn = 3

// own returns the latest decisions on pods that no scenario has created.
func own(decisions []LiveDecision) []LiveDecision {
	var out []LiveDecision
	for _, d := range decisions {
		if d.Scenario == "" && len(out) < maxOwn {
			out = append(out, d)
		}
	}
	return out
}

// fitting returns the scores of the nodes on which the pod fits.
func fitting(scores []LiveScore) []LiveScore {
	return slices.DeleteFunc(slices.Clone(scores), func(s LiveScore) bool { return s.Detail != "" })
}

// misfits says on how many nodes the pod does not fit, with the name if it is one. It is empty if there is none.
func misfits(scores []LiveScore) string {
	var names []string
	for _, s := range scores {
		if s.Detail != "" {
			names = append(names, s.Node+" "+s.Detail)
		}
	}
	if len(names) > 1 {
		return fmt.Sprintf("%d nodes do not fit", len(names))
	}
	return strings.Join(names, "")
}

// resultPair is the result for a pod with the default profile and with one of Plimsoll, – for one that does not exist.
type resultPair struct {
	Scenario, Pod, Default, Ours, Profile, Want string
	OK                                          bool
}

// pairs combines the results for the same pods, in the order of their first result.
func pairs(results []LiveResult) []resultPair {
	const none = "–"
	var out []resultPair
	for _, r := range results {
		i := slices.IndexFunc(out, func(p resultPair) bool {
			return p.Scenario == r.Scenario && p.Pod == r.Pod && (r.Ours && p.Ours == none || !r.Ours && p.Default == none)
		})
		if i < 0 {
			i = len(out)
			out = append(out, resultPair{Scenario: r.Scenario, Pod: r.Pod, Default: none, Ours: none, OK: true})
		}
		p := &out[i]
		if r.Ours {
			p.Ours, p.Profile = r.Node, r.Profile
		} else {
			p.Default = r.Node
		}
		if !r.OK {
			p.OK, p.Want = false, r.Want
		}
	}
	return out
}

// axis is the length of the bars in multiples of the allocatable amount. Longer bars are cut.
const axis = 2.0

var live = template.Must(template.New("live.html").Funcs(template.FuncMap{
	// width returns a fraction of the allocatable amount as percent of the bar.
	"width": func(fraction float64) template.CSS {
		return template.CSS(fmt.Sprintf("%.2f%%", 100*min(max(fraction, 0), axis)/axis))
	},
	"over":    func(fraction float64) bool { return fraction > axis },
	"percent": func(fraction float64) string { return fmt.Sprintf("%.0f\u00a0%%", 100*fraction) },
	"less":    func(a, b float64) float64 { return max(a-b, 0) },
	"plus":    func(a, b float64) float64 { return a + b },
	"twice":   func(a float64) float64 { return 2 * a },
	"chart":   draw,
	"stacks":  stacks,
	"at":      func(place float64) string { return fmt.Sprintf("%.2f%%", place) },
	"own":     own,
	"pairs":   pairs,
	"fitting": fitting,
	"misfits": misfits,
}).ParseFS(files, "*.html"))

// WriteLive writes the page. All texts are escaped.
func WriteLive(w io.Writer, view Live) error { return live.Execute(w, view) }
