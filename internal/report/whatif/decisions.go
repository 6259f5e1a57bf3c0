package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// podView is where a pod went with each profile.
type podView struct {
	Arrival, Pod, Asks, Came, Why string
	// Where says in a word whether profiles differ.
	Where    string
	Differ   bool
	Profiles []podProfile
}

// podProfile is where a pod went with one profile, and why.
type podProfile struct {
	Profile, Outcome string
	Nodes            []string
	Totals           []string
	Rows             []scoreRow
	Reasons          []string
	// Nothing names the plugins that have nothing for any of the nodes.
	Nothing, Note string
}

// scoreRow has the scores of one plugin, of the nodes in their order.
type scoreRow struct {
	Plugin string
	Cells  []scoreCell
}

// scoreCell is a score as it counts, and how it came about.
type scoreCell struct {
	Raw, Score     int64
	Weighted, From string
}

// whys say why a pod is shown.
var whys = map[string]string{
	result.SpreadPod: "", result.LargePod: "one of the largest", result.WaitedPod: "one of the first that had to wait",
}

// podsBy returns the decisions of a scenario by pod, in the order in which they came.
func podsBy(s *result.Scenario) []podView {
	byArrival := map[int][]*result.Decision{} // with nil for the profiles that do not have it
	for i := range s.Profiles {
		for j := range decisionsOf(&s.Profiles[i]) {
			is := &decisionsOf(&s.Profiles[i])[j]
			if byArrival[is.Arrival] == nil {
				byArrival[is.Arrival] = make([]*result.Decision, len(s.Profiles))
			}
			byArrival[is.Arrival][i] = is
		}
	}
	var arrivals []int
	for arrival := range byArrival {
		arrivals = append(arrivals, arrival)
	}
	slices.Sort(arrivals)
	var all []podView
	for _, arrival := range arrivals {
		all = append(all, podOf(s, arrival, byArrival[arrival]))
	}
	return all
}

// decisionsOf returns the decisions of the run that recorded them.
func decisionsOf(p *result.Profile) []result.Decision {
	for i := range p.Runs {
		if len(p.Runs[i].Decisions) > 0 {
			return p.Runs[i].Decisions
		}
	}
	return nil
}

// podOf returns what became of one pod with each profile.
func podOf(s *result.Scenario, arrival int, decisions []*result.Decision) podView {
	v := podView{Arrival: count(arrival)}
	var first *result.Decision
	nodes := map[string]bool{}
	for i, is := range decisions {
		if is == nil {
			v.Profiles = append(v.Profiles, podProfile{Profile: s.Profiles[i].Name, Note: "Not among the pods that were recorded with this profile."})
			continue
		}
		first = cmp.Or(first, is)
		nodes[is.Node] = true
		v.Profiles = append(v.Profiles, profileOf(s.Profiles[i].Name, is))
	}
	v.Pod, v.Asks, v.Came, v.Why = shorten(first.Pod, 2*maxNode), asks(first), "came at "+duration(first.ArrivedSecond), whys[first.Selection]
	v.Differ = len(nodes) > 1
	switch {
	case v.Differ && nodes[""]:
		v.Where = "a node with some profiles, none with others"
	case v.Differ:
		v.Where = fmt.Sprintf("%d different nodes", len(nodes))
	case nodes[""]:
		v.Where = "no node"
	case len(s.Profiles) > 1 && !slices.Contains(decisions, nil):
		v.Where = "the same node with all"
	default:
		v.Where = "on " + shorten(first.Node, maxNode)
	}
	return v
}

// asks says what a pod requests, and what it may use.
func asks(is *result.Decision) string {
	limit := func(v float64, text string) string {
		if v == 0 {
			return "no limit"
		}
		return "limit " + text
	}
	return "CPU " + cores(is.CPURequest) + ", " + limit(is.CPULimit, cores(is.CPULimit)) +
		"; memory " + gibibytes(is.MemoryRequest) + ", " + limit(is.MemoryLimit, gibibytes(is.MemoryLimit))
}

func cores(millicores float64) string { return number(millicores/1000, decimals(millicores/1000)) }

func gibibytes(bytes float64) string {
	gib := bytes / (1 << 30)
	return number(gib, min(decimals(gib), 2)) + thin + "GiB"
}

// profileOf says where a pod went with one profile.
func profileOf(profile string, is *result.Decision) podProfile {
	v := podProfile{Profile: profile}
	waited := ""
	if is.WaitedSeconds > 0 {
		waited = " after " + duration(is.WaitedSeconds)
	}
	v.Outcome = "on " + shorten(is.Node, maxNode) + waited
	if is.Node == "" {
		v.Outcome = "no node" + waited
	}
	v.Outcome += fmt.Sprintf("; it fitted %s of %s nodes", count(is.Feasible), count(is.Nodes))
	if is.Node != "" && len(is.Scores) == 0 {
		v.Outcome = strings.Replace(v.Outcome, "it fitted", "when it was last looked at, it fitted", 1)
	}
	v.Reasons = reasonTexts(is.Reasons)
	rows := map[string][]scoreCell{}
	for i, score := range is.Scores {
		v.Nodes, v.Totals = append(v.Nodes, shorten(score.Node, maxNode)), append(v.Totals, count(int(score.Total)))
		if i > 0 && score.Total > is.Scores[0].Total {
			v.Note = "A node that scores higher was not among those that kube-scheduler looked at."
		}
		for _, plugin := range score.Plugins {
			if rows[plugin.Name] == nil {
				rows[plugin.Name] = make([]scoreCell, len(is.Scores))
			}
			rows[plugin.Name][i] = cellOf(plugin)
		}
	}
	var nothing []string
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if slices.ContainsFunc(rows[name], func(cell scoreCell) bool { return cell.Raw != 0 || cell.Score != 0 }) {
			v.Rows = append(v.Rows, scoreRow{name, rows[name]})
		} else {
			nothing = append(nothing, name)
		}
	}
	v.Nothing = strings.Join(nothing, ", ")
	return v
}

// reasonTexts says why the pod does not fit some nodes.
func reasonTexts(reasons []result.NodesReason) []string {
	var texts []string
	for _, reason := range reasons[:min(len(reasons), maxReasons)] {
		text := shorten(reason.Reason, maxReason)
		if reason.Filter != "" {
			text = reason.Filter + ": " + text
		}
		texts = append(texts, count(reason.Nodes)+" nodes: "+text)
	}
	return texts
}

// cellOf says how a score came about: raw, normalised if that changed it, and its
// weight if that is not 1.
func cellOf(p result.PluginScore) scoreCell {
	cell := scoreCell{Raw: p.Raw, Score: p.Score, Weighted: count(int(p.Score * p.Weight))}
	var from []string
	if p.Raw != p.Score {
		from = append(from, count(int(p.Raw)), "→", count(int(p.Score)))
	} else if p.Weight != 1 {
		from = append(from, count(int(p.Score)))
	}
	if p.Weight != 1 {
		from = append(from, "×", count(int(p.Weight)))
	}
	cell.From = strings.Join(from, thin)
	return cell
}
