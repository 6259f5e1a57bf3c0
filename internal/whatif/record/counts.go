package record

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// gap is a part of the time that lacks the series of nodes or pods. First is true if nothing was known before.
type gap struct {
	Series, What string
	From, To     time.Time
	First        bool
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

// counts are the numbers of recorded and of missing objects and values.
type counts struct {
	Pods, Nodes int
	// Samples is the number of recorded values of usage, Expected the number without gaps, and Rejected the number
	// of values that are not amounts.
	Samples, Expected, Rejected int64
	// Unassigned is the number of values of usage of pods that kube-state-metrics does not know at that time.
	Unassigned int64
	// Reappeared counts pods that were not exported in a whole window and then again, Clock pods with times after the
	// server's time, ChangedPods pods whose object changed.
	Reappeared, Clock, ChangedPods int
	// Sidecars counts sidecar containers.
	Sidecars int
	// Classes has the priority classes whose value is unknown.
	Classes map[string]bool
}

// maxNotes bounds the notes in a recording.
const maxNotes = 100

// notes are data that a recording lacks, as observed while it is written.
type notes []recording.Missing

// add adds a note, at most once, and reports whether it was added.
func (n *notes) add(what, why string) bool {
	m := recording.Missing{What: what, Why: why}
	if slices.Contains(*n, m) || len(*n) >= maxNotes {
		return false
	}
	*n = append(*n, m)
	return true
}

// neverExported lists the data that kube-state-metrics does not export.
var neverExported = []recording.Missing{
	{
		What: "affinities, topology spread constraints, host ports, volumes, scheduling gates and resource claims of pods",
		Why:  "not exported by kube-state-metrics: pods are recorded without them",
	},
	{
		What: "pod-level resources (spec.resources)",
		Why:  "not exported by kube-state-metrics: pods request the sum of their containers",
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
		What: "VerticalPodAutoscalers, and the owners and the types of metrics of HorizontalPodAutoscalers",
		Why:  "not exported by kube-state-metrics: recommend keeps requests by which use is divided, and does not know VerticalPodAutoscalers",
	},
	{
		What: "taints of node conditions (" + conditionTaints + "*)",
		Why:  "not recorded: nodes have none",
	},
}

// missing lists the data that the recording lacks.
func (r *recorder) missing() []recording.Missing {
	out := slices.Clone(neverExported)
	add := func(found bool, what, format string, a ...any) {
		if found {
			out = append(out, recording.Missing{What: what, Why: fmt.Sprintf(format, a...)})
		}
	}
	c, doubtful := &r.counts, slices.Sorted(maps.Keys(r.keys.doubtful))
	if c.Pods > 0 {
		for _, d := range described {
			add(d.missing != "" && !r.series[d.name], "series "+d.name, "no data: %s", d.missing)
		}
		add(!r.series[podLabels], "labels of pods", "no data of %s: pods have the label %s only; allow labels with "+
			"--metric-labels-allowlist of kube-state-metrics", podLabels, OwnerLabel)
		add(!r.series[nodeLabels], "labels of nodes", "no data of %s: nodes have the labels of their name and roles only", nodeLabels)
		add(!r.series[podSelectors], "node selectors", "no data of %s, which is opt-in (--metric-opt-in-list of kube-state-metrics): "+
			"pods have none", podSelectors)
		add(!r.series[podPhase], "when pods succeeded or failed", "no data of %s in these phases: pods end when they are deleted", podPhase)
		add(r.series[initContainerInfo] && c.Sidecars == 0, "sidecars",
			"no init container has the label restart_policy, which kube-state-metrics exports from 2.11 on: of an earlier version, the "+
				"requests of sidecars count as those of init containers")
		add(!r.series[containerCPU], "CPU usage", "no data: check that the kubelets' /metrics/cadvisor are scraped, and that the rate "+
			"window of %s contains two samples", r.config.Server.RateWindow.Duration)
		add(!r.series[containerMemory], "memory usage", "no data: check that the kubelets' /metrics/cadvisor are scraped")
	}
	add(len(c.Classes) > 0, "values of priority classes", "not exported: pods of %s have priority 0, and count as load",
		r.listNames(slices.Sorted(maps.Keys(c.Classes)), "classes"))
	add(len(doubtful) > 0, "keys of labels", "characters other than letters and digits are exported as underscores: %s may be other "+
		"keys; name them with --label-key", r.listNames(doubtful, "keys"))
	add(c.Expected > c.Samples, "values of usage", "%d of %d are gaps (%.1f %%): a replay repeats the last value",
		c.Expected-c.Samples, c.Expected, 100*float64(c.Expected-c.Samples)/float64(max(c.Expected, 1)))
	add(c.Rejected > 0, "values of usage that are no amounts", "%d were negative, infinite or not numbers: they are gaps", c.Rejected)
	// The usage of a pod is known a little longer than the pod.
	add(100*c.Unassigned > c.Samples, "usage of unknown pods", "%s of no pod that had a node at that time: skipped",
		format.Of(c.Unassigned, "value"))
	add(c.Reappeared > 0, "pods that were not exported for a time", "%s: each is recorded as two", format.Of(c.Reappeared, "pod"))
	add(c.Clock > 0, "times of pods", "%s with times after those of the server, as after a clock step: replaced by the time at which "+
		"the pod was seen", format.Of(c.Clock, "pod"))
	add(c.ChangedPods > 0, "changes of pods", "%s after a pod had started, such as a resize: the last state is recorded",
		format.Of(c.ChangedPods, "change"))
	for i := range r.gaps {
		out = append(out, r.gaps[i].missing())
	}
	return append(out, r.notes...)
}

// listNames returns the first names of a list and the number of remaining names. If names are replaced by pseudonyms, it returns only their
// number.
func (r *recorder) listNames(names []string, what string) string {
	if r.Redact {
		return fmt.Sprintf("%d %s", len(names), what)
	}
	return format.Abbreviate(names, 10, ", ")
}
