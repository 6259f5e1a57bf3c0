package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// explained is the answer of explain pod, also in JSON.
type explained struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Node that the pod is on, empty if it has none.
	Node string `json:"node"`
	// Selected is the node that it would go to now, empty if it fits none.
	Selected string `json:"selected"`
	// Stays: it is on a node that none is better than.
	Stays bool `json:"stays"`
	// Reason says in a sentence why.
	Reason string `json:"reason"`
	// Load says what is known of the nodes' load, null if nothing is.
	Load *explainedLoad `json:"load"`
	// Nodes, all of them, in the order given.
	Nodes []explainedNode `json:"nodes"`
}

type explainedLoad struct {
	Source        string    `json:"source"`
	Time          time.Time `json:"time"`
	AgeSeconds    float64   `json:"ageSeconds"`
	WindowSeconds float64   `json:"windowSeconds"`
}

type explainedNode struct {
	Name     string `json:"name"`
	Feasible bool   `json:"feasible"`
	// Reason is why the pod does not fit.
	Reason string `json:"reason"`
	// Total is the sum of what plugins score by their weights.
	Total   int64                      `json:"total"`
	Plugins map[string]explainedPlugin `json:"plugins"`
	// CPU and Memory are how busy the node is, null where that is not known.
	CPU    *topUtilization `json:"cpu"`
	Memory *topUtilization `json:"memory"`

	scores engine.NodeScores
}

// explainedPlugin is what a plugin says of a node: Weighted is Score x Weight.
type explainedPlugin struct {
	engine.PluginScore

	Weighted int64 `json:"weighted"`
}

// explain judges all nodes for a pod, as if it had none.
func explain(ctx context.Context, is *situation, cfg *internalconfig.KubeSchedulerConfiguration, schedulerName, namespace, name string) (*explained, error) {
	pod, objects, err := lift(is.objects, namespace, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	without := *is
	without.objects = objects
	engine, err := without.engine(ctx, cfg)
	if err != nil {
		return nil, err
	}
	free := pod.DeepCopy()
	free.Spec.NodeName = ""
	free.Status.NominatedNodeName = ""
	free.DeletionTimestamp = nil
	scores, err := engine.Score(ctx, free, schedulerName)
	if err != nil {
		return nil, err
	}
	e := &explained{Namespace: namespace, Name: name, Node: pod.Spec.NodeName, Selected: scores.Selected, Nodes: []explainedNode{}}
	if is.load != nil {
		e.Load = &explainedLoad{
			Source: is.load.Source, Time: is.load.Time.UTC(), WindowSeconds: is.load.Window.Seconds(),
			AgeSeconds: is.now.Sub(is.load.Time).Round(time.Millisecond).Seconds(),
		}
	}
	for _, node := range scores.Nodes {
		e.Nodes = append(e.Nodes, explainNode(node, is.load))
	}
	e.conclude(scores, pod)
	return e, nil
}

// lift returns a pod, and the objects without it.
func lift(objects *manifest.Objects, namespace, name string) (*v1.Pod, *manifest.Objects, error) {
	is := func(pod *v1.Pod) bool { return pod.Namespace == namespace && pod.Name == name }
	if i := slices.IndexFunc(objects.Pending, is); i >= 0 {
		return objects.Pending[i], objects, nil
	}
	i := slices.IndexFunc(objects.Running, is)
	if i < 0 {
		return nil, nil, fmt.Errorf("pod %s/%s: not found, or it has ended%s", namespace, name, nearNames(namespace, name, podNames(objects)))
	}
	without := *objects
	without.Running = slices.Delete(slices.Clone(objects.Running), i, i+1)
	return objects.Running[i], &without, nil
}

// nearest is how many names an error offers.
const nearest = 3

// nearNames offers the pods whose names begin most like one.
func nearNames(namespace, name string, all []string) string {
	alike := map[string]int{}
	for _, other := range all {
		space, its, _ := strings.Cut(other, "/")
		common := commonPrefix(name, its)
		if common < min(3, len(name)) && !strings.Contains(its, name) {
			continue
		}
		alike[other] = 2 * common
		if space == namespace {
			alike[other]++
		}
	}
	near := slices.SortedFunc(maps.Keys(alike), func(a, b string) int {
		return cmp.Or(cmp.Compare(alike[b], alike[a]), cmp.Compare(a, b))
	})
	if len(near) == 0 {
		return fmt.Sprintf(" (there are %d pods)", len(all))
	}
	return "; did you mean " + strings.Join(near[:min(len(near), nearest)], ", ") + "?"
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func explainNode(node engine.NodeScores, reading *load.Reading) explainedNode {
	e := explainedNode{Name: node.Name, Feasible: node.Feasible, Reason: node.Reason, Total: node.Total, Plugins: map[string]explainedPlugin{}, scores: node}
	for name, plugin := range node.Plugins {
		e.Plugins[name] = explainedPlugin{plugin, plugin.Score * plugin.Weight}
	}
	if reading == nil {
		return e
	}
	busy := reading.Nodes[node.Name]
	if busy.HasCPU {
		e.CPU = &topUtilization{busy.CPU.Mean, busy.CPU.StdDev}
	}
	if busy.HasMemory {
		e.Memory = &topUtilization{busy.Memory.Mean, busy.Memory.StdDev}
	}
	return e
}

// conclude says what comes of it.
func (e *explained) conclude(scores engine.PodScores, pod *v1.Pod) {
	total := func(name string) int64 {
		i := slices.IndexFunc(e.Nodes, func(n explainedNode) bool { return n.Name == name && n.Feasible })
		if i < 0 {
			return -1
		}
		return e.Nodes[i].Total
	}
	chosen := e.Selected
	switch {
	case e.Node == "" && e.Selected == "":
	case e.Node == "":
		e.Reason = fmt.Sprintf("It would go to %s: ", e.Selected)
	case e.Selected == "":
		e.Reason = fmt.Sprintf("It is on %s, where it would not get again: ", e.Node)
	case total(e.Node) == total(e.Selected):
		e.Stays, chosen = true, e.Node
		e.Reason = fmt.Sprintf("It is on %s, and could go there again: ", e.Node)
		if e.Node == e.Selected {
			e.Reason = fmt.Sprintf("It is on %s, and would go there again: ", e.Node)
		}
	default:
		e.Reason = fmt.Sprintf("It is on %s, and would now go to %s: ", e.Node, e.Selected)
	}
	why := scores.Reason(chosen)
	if e.Reason != "" && !strings.HasPrefix(why, chosen+" ") {
		why = strings.ToLower(why[:1]) + why[1:] // the sentence goes on
	}
	e.Reason += why
	if gates := len(pod.Spec.SchedulingGates); gates > 0 && pod.Spec.NodeName == "" {
		e.Reason += fmt.Sprintf(" It has %d scheduling gates, and is not tried until they are gone.", gates)
	}
}

// where says where the pod is.
func (e *explained) where() string {
	if e.Node == "" {
		return "which has no node"
	}
	return "on " + e.Node
}

// parted returns the nodes that the pod fits, the best first, and why the others are
// out: a line for each reason.
func (e *explained) parted() (feasible []explainedNode, out []string) {
	names := map[string][]string{}
	for _, node := range e.Nodes {
		if node.Feasible {
			feasible = append(feasible, node)
		} else {
			names[node.Reason] = append(names[node.Reason], node.Name)
		}
	}
	slices.SortStableFunc(feasible, func(a, b explainedNode) int { return cmp.Compare(b.Total, a.Total) })
	reasons := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(names[b]), len(names[a])), cmp.Compare(a, b))
	})
	for _, reason := range reasons {
		out = append(out, fmt.Sprintf("out, %d: %s: %s", len(names[reason]), reason, some(names[reason])))
	}
	return feasible, out
}

// some lists names, as many as fit a line.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// table returns the table of some of the nodes that the pod fits.
func (e *explained) table(shown, feasible []explainedNode) scoreTable {
	t := scoreTable{cell: describeWeighted}
	for _, node := range shown {
		t.nodes = append(t.nodes, node.scores)
	}
	for _, node := range feasible {
		t.all = append(t.all, node.scores)
	}
	if e.Load == nil {
		return t
	}
	t.more = []string{"CPU %", "memory %"}
	t.say = func(name string) []string {
		i := slices.IndexFunc(e.Nodes, func(n explainedNode) bool { return n.Name == name })
		return []string{busy(e.Nodes[i].CPU), busy(e.Nodes[i].Memory)}
	}
	return t
}

func busy(u *topUtilization) string {
	if u == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f ± %.0f", 100*u.Mean, 100*u.StdDev)
}

// describeWeighted returns what a plugin said: its raw score, the normalised one,
// and what that is by its weight.
func describeWeighted(s engine.PluginScore) string {
	description := fmt.Sprint(s.Score)
	if s.Weight != 1 {
		description += fmt.Sprintf(" x%d = %d", s.Weight, s.Score*s.Weight)
	}
	if s.Raw != s.Score {
		description = fmt.Sprintf("%d ->\n%s", s.Raw, description)
	}
	return description
}
