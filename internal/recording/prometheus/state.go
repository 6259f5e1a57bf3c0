package prometheus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/plural"
	"github.com/plimsoll-k8s/plimsoll/internal/recording"
)

// state is what the recorder knows after a window, with which it continues after a restart.
type state struct {
	Config Config `json:"config"`
	// Key is the key of the pseudonyms, empty without redaction.
	Key []byte `json:"key,omitempty"`
	// Next is the start of the next window.
	Next time.Time `json:"next"`
	// Pods and Nodes were seen in the last window.
	Pods  map[string]*podState  `json:"pods"`
	Nodes map[string]*nodeState `json:"nodes"`
	// SeenUntil is the last time at which any pod was exported, in seconds since 1970.
	SeenUntil int64 `json:"seenUntil"`
	// Objects has the workloads that were written, and whether their owner was known.
	Objects map[string]bool `json:"objects"`
	// Series has the names of the series that had data.
	Series map[string]bool `json:"series"`
	// Checked is true once the names of the labels that the server uses, which are in Config, are known.
	Checked bool   `json:"checked"`
	Counts  counts `json:"counts"`
	// Gaps are parts of the time that lack nodes or pods.
	Gaps []gap `json:"gaps"`
	// Notes are messages of the server.
	Notes []recording.Missing `json:"notes"`
}

// gap is a part of the time that lacks the series of nodes or pods. First is true if nothing was known before.
type gap struct {
	Series string    `json:"series"`
	What   string    `json:"what"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	First  bool      `json:"first"`
}

// missing describes the gap.
func (g *gap) missing() recording.Missing {
	m := recording.Missing{
		What: fmt.Sprintf("%s from %s to %s", g.What, g.From.Format(time.RFC3339), g.To.Format(time.RFC3339)),
		Why:  "no data of " + g.Series + ": they are taken as unchanged",
	}
	if g.First {
		m.Why = "no data of " + g.Series + ": none are recorded"
	}
	return m
}

// podState is a pod that was seen in the last window. Times are in seconds since 1970, 0 if they are unknown.
type podState struct {
	ID        int    `json:"id"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	Created   int64  `json:"created"`
	Scheduled int64  `json:"scheduled,omitempty"`
	Started   int64  `json:"started,omitempty"`
	Ended     int64  `json:"ended,omitempty"`
	LastSeen  int64  `json:"lastSeen"`
	// Hash is that of the object that was written last.
	Hash uint64 `json:"hash"`

	cpu, memory recording.Series
}

// nodeState is a node that was seen in the last window.
type nodeState struct {
	ID       int    `json:"id"`
	Created  int64  `json:"created"`
	LastSeen int64  `json:"lastSeen"`
	Hash     uint64 `json:"hash"`
	Changed  bool   `json:"changed,omitempty"`
	// seen is the node in the last window that had it, nil after a restart.
	seen *seenNode
}

// counts are what the recording lacks, in numbers.
type counts struct {
	Pods  int `json:"pods"`
	Nodes int `json:"nodes"`
	// Samples is the number of recorded values of usage, Expected how many there would be without gaps, and Rejected
	// the number of values that are not amounts.
	Samples  int64 `json:"samples"`
	Expected int64 `json:"expected"`
	Rejected int64 `json:"rejected"`
	// Unassigned is the number of values of usage of pods that kube-state-metrics does not know at that time.
	Unassigned int64 `json:"unassigned"`
	// Reappeared is the number of pods that were not exported in a whole window and then again, Clock that of pods with times
	// after the server's, Unscheduled that of pods without a time of scheduling though they have a node, ChangedNodes that
	// of nodes whose object changed, ChangedPods that of changed pods.
	Reappeared   int `json:"reappeared"`
	Clock        int `json:"clock"`
	ChangedNodes int `json:"changedNodes"`
	ChangedPods  int `json:"changedPods"`
	// Classes has the priority classes whose value is unknown.
	Classes map[string]bool `json:"classes"`
	// Doubtful has the keys of labels that were perhaps changed by kube-state-metrics.
	Doubtful []string `json:"doubtful"`
}

// maxNotes bounds the notes.
const maxNotes = 100

// note adds a note, at most once, and reports whether it was added.
func (s *state) note(what, why string) bool {
	m := recording.Missing{What: what, Why: why}
	if slices.Contains(s.Notes, m) || len(s.Notes) >= maxNotes {
		return false
	}
	s.Notes = append(s.Notes, m)
	return true
}

// neverExported is what kube-state-metrics exports of no cluster.
var neverExported = []recording.Missing{
	{
		What: "affinities, topology spread constraints, host ports, volumes, scheduling gates and resource claims of pods",
		Why:  "not exported by kube-state-metrics: pods are recorded without them",
	},
	{
		What: "services, disruption budgets, priority classes, volumes and claims",
		Why:  "not read: the recording has nodes, pods, ReplicaSets and StatefulSets",
	},
	{
		What: "selectors of ReplicaSets and StatefulSets",
		Why:  "not exported: they select the label " + OwnerLabel + ", which is added to their pods, so that they are spread by default",
	},
	{
		What: "taints of node conditions (" + conditionTaints + "*) and changes of nodes",
		Why:  "not recorded: a node is as in the first window in which it was seen",
	},
}

// missing returns what the recording lacks.
func (s *state) missing() []recording.Missing {
	out := slices.Clone(neverExported)
	add := func(found bool, what, format string, a ...any) {
		if found {
			out = append(out, recording.Missing{What: what, Why: fmt.Sprintf(format, a...)})
		}
	}
	c := &s.Counts
	if c.Pods > 0 {
		for _, d := range described {
			add(d.missing != "" && !s.Series[d.name], "series "+d.name, "no data: %s", d.missing)
		}
		add(!s.Series[podLabels], "labels of pods", "no data of %s: pods have the label %s only; allow labels with "+
			"--metric-labels-allowlist of kube-state-metrics", podLabels, OwnerLabel)
		add(!s.Series[nodeLabels], "labels of nodes", "no data of %s: nodes have the labels of their name and roles only", nodeLabels)
		add(!s.Series[podSelectors], "node selectors", "no data of %s, which is opt-in (--metric-opt-in-list of kube-state-metrics): "+
			"pods have none", podSelectors)
		add(!s.Series[podPhase], "when pods succeeded or failed", "no data of %s in these phases: pods end when they are deleted", podPhase)
		add(
			!s.Series[containerCPU],
			"CPU usage",
			"no data: check that the kubelets' /metrics/cadvisor are scraped, and that the rate window "+
				"of %s contains two samples",
			s.Config.RateWindow,
		)
		add(!s.Series[containerMemory], "memory usage", "no data: check that the kubelets' /metrics/cadvisor are scraped")
	}
	add(len(c.Classes) > 0, "values of priority classes", "not exported: pods of %s have priority 0",
		s.some(slices.Sorted(maps.Keys(c.Classes)), "classes"))
	add(
		len(c.Doubtful) > 0,
		"keys of labels",
		"characters other than letters and digits are exported as underscores: %s may be other keys; "+
			"name them with --label-key",
		s.some(c.Doubtful, "keys"),
	)
	add(c.Expected > c.Samples, "values of usage", "%d of %d are gaps (%.1f %%): a replay repeats the last value",
		c.Expected-c.Samples, c.Expected, 100*float64(c.Expected-c.Samples)/float64(max(c.Expected, 1)))
	add(c.Rejected > 0, "values of usage that are no amounts", "%d were negative, infinite or not numbers: they are gaps", c.Rejected)
	// The usage of a pod is known a little longer than the pod.
	add(
		100*c.Unassigned > c.Samples,
		"usage of unknown pods",
		"%s of no pod that had a node at that time: skipped",
		plural.Of(c.Unassigned, "value"),
	)
	add(c.Reappeared > 0, "pods that were not exported for a time", "%s: each is recorded as two", plural.Of(c.Reappeared, "pod"))
	add(
		c.Clock > 0,
		"times of pods",
		"%s with times after those of the server, as after a clock step: replaced by the time at which the pod was seen",
		plural.Of(c.Clock, "pod"),
	)
	add(
		c.ChangedPods > 0,
		"changes of pods",
		"%s after a pod had started, such as a resize: the last state is recorded",
		plural.Of(c.ChangedPods, "change"),
	)
	add(c.ChangedNodes > 0, "changes of nodes", "%s changed labels, taints or capacity: the first state is recorded",
		plural.Of(c.ChangedNodes, "node"))
	for i := range s.Gaps {
		out = append(out, s.Gaps[i].missing())
	}
	return append(out, s.Notes...)
}

// some returns the first names of a list and how many there are more, or their number only if names are replaced by pseudonyms.
func (s *state) some(names []string, what string) string {
	const shown = 10
	switch {
	case s.Key != nil:
		return fmt.Sprintf("%d %s", len(names), what)
	case len(names) <= shown:
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// byTime compares pods in the order in which they are written.
func byTime(a, b *seenPod) int {
	return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name),
		strings.Compare(a.uid, b.uid))
}
