package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// maxNameLength is the largest length of a name in a table.
const maxNameLength = 40

// podView shows the decisions for a pod with each profile.
type podView struct {
	Arrival, Pod, Resources, Arrived, Selection string
	// Placement summarizes on which nodes the profiles place the pod.
	Placement string
	// Differs is true if the profiles place the pod differently.
	Differs  bool
	Profiles []podDecision
}

// podDecision shows the decision for a pod with one profile.
type podDecision struct {
	Profile, Outcome string
	Nodes            []string
	Totals           []string
	Rows             []scoreRow
	Reasons          []string
	// ZeroPlugins names the plugins that score all nodes 0.
	ZeroPlugins string
	Note        string
}

// scoreRow has the scores of one plugin for each node.
type scoreRow struct {
	Plugin string
	Cells  []scoreCell
}

// scoreCell is the weighted score of a plugin for a node and its derivation.
type scoreCell struct {
	Raw, Score           int64
	Weighted, Derivation string
}

// selections describes the reasons for which pods are shown.
var selections = map[string]string{
	result.SpreadPod: "", result.LargePod: "one of the largest", result.WaitedPod: "one of the first that had to wait",
}

// podViews returns the recorded decisions of a scenario by pod, in the order of arrival.
func podViews(s *result.Scenario) []podView {
	byArrival := map[int][]*result.Decision{} // By profile, nil if it did not record the pod.
	for i := range s.Profiles {
		decisions := recordedRun(&s.Profiles[i]).Decisions
		for j := range decisions {
			d := &decisions[j]
			if byArrival[d.Arrival] == nil {
				byArrival[d.Arrival] = make([]*result.Decision, len(s.Profiles))
			}
			byArrival[d.Arrival][i] = d
		}
	}
	var views []podView
	for _, arrival := range slices.Sorted(maps.Keys(byArrival)) {
		views = append(views, newPodView(s, arrival, byArrival[arrival]))
	}
	return views
}

// newPodView returns the view of the decisions for a pod, one for each profile or nil.
func newPodView(s *result.Scenario, arrival int, decisions []*result.Decision) podView {
	v := podView{Arrival: format.Count(arrival)}
	var first *result.Decision
	nodes := map[string]bool{}
	for i, d := range decisions {
		if d == nil {
			v.Profiles = append(v.Profiles, podDecision{Profile: s.Profiles[i].Name, Note: "This profile did not record the pod."})
			continue
		}
		first = cmp.Or(first, d)
		nodes[d.Node] = true
		v.Profiles = append(v.Profiles, newPodDecision(s.Profiles[i].Name, d))
	}
	v.Pod, v.Resources = shorten(first.Pod, 2*maxNameLength), resourcesText(first)
	v.Arrived, v.Selection = "arrived at "+format.Duration(first.ArrivedSecond), selections[first.Selection]
	v.Differs = len(nodes) > 1
	switch {
	case v.Differs && nodes[""]:
		v.Placement = "placed by some profiles, unschedulable with others"
	case v.Differs:
		v.Placement = fmt.Sprintf("%d different nodes", len(nodes))
	case nodes[""]:
		v.Placement = "unschedulable"
	case len(s.Profiles) > 1 && !slices.Contains(decisions, nil):
		v.Placement = "the same node with all profiles"
	default:
		v.Placement = "on " + shorten(first.Node, maxNameLength)
	}
	return v
}

// resourcesText formats the requests and limits of a pod.
func resourcesText(d *result.Decision) string {
	limit := func(v float64, text string) string {
		if v == 0 {
			return "no limit"
		}
		return "limit " + text
	}
	return "CPU " + coresText(d.CPURequest) + ", " + limit(d.CPULimit, coresText(d.CPULimit)) +
		"; memory " + gibibytesText(d.MemoryRequest) + ", " + limit(d.MemoryLimit, gibibytesText(d.MemoryLimit))
}

func coresText(millicores float64) string { return format.Auto(millicores / 1000) }

func gibibytesText(bytes float64) string {
	gib := bytes / (1 << 30)
	return format.Format(gib, min(format.Decimals(gib), 2)) + format.ThinSpace + "GiB"
}

// newPodDecision returns the view of a decision.
func newPodDecision(profile string, d *result.Decision) podDecision {
	v := podDecision{Profile: profile, Outcome: outcomeText(d), Reasons: reasonTexts(d.Reasons)}
	rows := map[string][]scoreCell{}
	for i, score := range d.Scores {
		v.Nodes, v.Totals = append(v.Nodes, shorten(score.Node, maxNameLength)), append(v.Totals, format.Count(int(score.Total)))
		if i > 0 && score.Total > d.Scores[0].Total {
			v.Note = "kube-scheduler did not score all nodes: a node with a higher score was not among them."
		}
		for _, plugin := range score.Plugins {
			if rows[plugin.Name] == nil {
				rows[plugin.Name] = make([]scoreCell, len(d.Scores))
			}
			rows[plugin.Name][i] = newScoreCell(plugin)
		}
	}
	var zero []string
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if slices.ContainsFunc(rows[name], func(cell scoreCell) bool { return cell.Raw != 0 || cell.Score != 0 }) {
			v.Rows = append(v.Rows, scoreRow{name, rows[name]})
		} else {
			zero = append(zero, name)
		}
	}
	v.ZeroPlugins = strings.Join(zero, ", ")
	return v
}

// outcomeText describes the outcome of a decision.
func outcomeText(d *result.Decision) string {
	text := "on " + shorten(d.Node, maxNameLength)
	if d.Node == "" {
		text = "unschedulable"
	}
	if d.WaitedSeconds > 0 {
		text += " after " + format.Duration(d.WaitedSeconds)
	}
	text += fmt.Sprintf("; %s of %s feasible", format.Count(d.Feasible), format.Things(d.Nodes, "node"))
	if d.Node != "" && len(d.Scores) == 0 {
		text += " in the last recorded attempt"
	}
	return text
}

// reasonTexts describes why the pod does not fit nodes.
func reasonTexts(reasons []result.NodesReason) []string {
	var texts []string
	for _, reason := range reasons[:min(len(reasons), maxReasons)] {
		text := shorten(reason.Reason, maxReasonLength)
		if reason.Filter != "" {
			text = reason.Filter + ": " + text
		}
		texts = append(texts, format.Things(reason.Nodes, "node")+": "+text)
	}
	return texts
}

// newScoreCell returns the cell of a score. Its derivation has the raw score if normalization changed
// it, and the weight if it is not 1.
func newScoreCell(p result.PluginScore) scoreCell {
	cell := scoreCell{Raw: p.Raw, Score: p.Score, Weighted: format.Count(int(p.Score * p.Weight))}
	var derivation []string
	if p.Raw != p.Score {
		derivation = append(derivation, format.Count(int(p.Raw)), "→", format.Count(int(p.Score)))
	} else if p.Weight != 1 {
		derivation = append(derivation, format.Count(int(p.Score)))
	}
	if p.Weight != 1 {
		derivation = append(derivation, "×", format.Count(int(p.Weight)))
	}
	cell.Derivation = strings.Join(derivation, format.ThinSpace)
	return cell
}
