package score

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

	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// explanation is the result of explain pod, also in JSON and YAML.
type explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Node is the node of the pod, empty if it has none.
	Node string `json:"node"`
	// Selected is the node that the scheduler selects now, empty if no node is feasible.
	Selected string `json:"selected"`
	// Stays reports whether no node is better than the node of the pod.
	Stays bool `json:"stays"`
	// Reason explains the result in one sentence.
	Reason string `json:"reason"`
	// Load describes the load of the nodes, null if it is unknown.
	Load *loadInfo `json:"load"`
	// Nodes are all nodes in the order of the input.
	Nodes []explainedNode `json:"nodes"`
}

// loadInfo describes where the load is from.
type loadInfo struct {
	Source        string    `json:"source"`
	Time          time.Time `json:"time"`
	AgeSeconds    float64   `json:"ageSeconds"`
	WindowSeconds float64   `json:"windowSeconds"`
}

// explainedNode is the evaluation of a node.
type explainedNode struct {
	Name     string `json:"name"`
	Feasible bool   `json:"feasible"`
	// Reason is why the node is infeasible.
	Reason string `json:"reason"`
	// Total is the sum of the weighted scores.
	Total   int64                     `json:"total"`
	Plugins map[string]weightedPlugin `json:"plugins"`
	// CPU and Memory are the utilization of the node, null if it is unknown.
	CPU    *input.Utilization `json:"cpu"`
	Memory *input.Utilization `json:"memory"`

	scores engine.NodeScores
}

// weightedPlugin is the score of a plugin for a node. Weighted is Score x Weight.
type weightedPlugin struct {
	engine.PluginScore

	Weighted int64 `json:"weighted"`
}

// explain evaluates all nodes for a pod as if it were pending.
func explain(ctx context.Context, state *input.ClusterState, cfg *internalconfig.KubeSchedulerConfiguration,
	schedulerName, namespace, name string,
) (*explanation, error) {
	pod, others, err := removePod(state.Objects, namespace, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	scheduler, err := newEngine(ctx, &input.ClusterState{Objects: others, Load: state.Load, Now: state.Now}, cfg)
	if err != nil {
		return nil, err
	}
	pending := pod.DeepCopy()
	pending.Spec.NodeName = ""
	pending.Status.NominatedNodeName = ""
	pending.DeletionTimestamp = nil
	scores, err := scheduler.Score(ctx, pending, schedulerName)
	if err != nil {
		return nil, err
	}
	e := &explanation{Namespace: namespace, Name: name, Node: pod.Spec.NodeName, Selected: scores.Selected, Nodes: []explainedNode{}}
	if state.Load != nil {
		e.Load = &loadInfo{
			Source: state.Load.Source, Time: state.Load.Time.UTC(), WindowSeconds: state.Load.Window.Seconds(),
			AgeSeconds: state.Now.Sub(state.Load.Time).Round(time.Millisecond).Seconds(),
		}
	}
	for _, node := range scores.Nodes {
		e.Nodes = append(e.Nodes, explainNode(node, state.Load))
	}
	e.setReason(scores, pod)
	return e, nil
}

// removePod returns a pod and the objects without it.
func removePod(objects *manifest.Objects, namespace, name string) (*v1.Pod, *manifest.Objects, error) {
	matches := func(pod *v1.Pod) bool { return pod.Namespace == namespace && pod.Name == name }
	if i := slices.IndexFunc(objects.Pending, matches); i >= 0 {
		return objects.Pending[i], objects, nil
	}
	i := slices.IndexFunc(objects.Running, matches)
	if i < 0 {
		return nil, nil, fmt.Errorf("pod %s/%s: not found, or finished%s",
			namespace, name, suggestNames(namespace, name, podNames(objects)))
	}
	others := *objects
	others.Running = slices.Delete(slices.Clone(objects.Running), i, i+1)
	return objects.Running[i], &others, nil
}

// maxSuggestions is the number of names that an error suggests.
const maxSuggestions = 3

// suggestNames returns the end of an error message with the pods whose names are most similar.
func suggestNames(namespace, name string, all []string) string {
	similarity := map[string]int{}
	for _, other := range all {
		otherNamespace, otherName, _ := strings.Cut(other, "/")
		common := commonPrefix(name, otherName)
		if common < min(3, len(name)) && !strings.Contains(otherName, name) {
			continue
		}
		similarity[other] = 2 * common
		if otherNamespace == namespace {
			similarity[other]++
		}
	}
	similar := slices.SortedFunc(maps.Keys(similarity), func(a, b string) int {
		return cmp.Or(cmp.Compare(similarity[b], similarity[a]), cmp.Compare(a, b))
	})
	if len(similar) == 0 {
		return fmt.Sprintf(" (found %d pods)", len(all))
	}
	return "; did you mean " + strings.Join(similar[:min(len(similar), maxSuggestions)], ", ") + "?"
}

// commonPrefix returns the length of the common prefix of two names.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func explainNode(node engine.NodeScores, reading *load.Reading) explainedNode {
	e := explainedNode{
		Name: node.Name, Feasible: node.Feasible, Reason: node.Reason, Total: node.Total,
		Plugins: map[string]weightedPlugin{}, scores: node,
	}
	for name, plugin := range node.Plugins {
		e.Plugins[name] = weightedPlugin{plugin, plugin.Score * plugin.Weight}
	}
	if reading != nil {
		e.CPU, e.Memory = input.UtilizationOf(reading.Nodes[node.Name])
	}
	return e
}

// setReason compares the node of the pod with the selected one.
func (e *explanation) setReason(scores engine.PodScores, pod *v1.Pod) {
	total := func(name string) int64 {
		i := slices.IndexFunc(e.Nodes, func(n explainedNode) bool { return n.Name == name && n.Feasible })
		if i < 0 {
			return -1
		}
		return e.Nodes[i].Total
	}
	subject := e.Selected
	switch {
	case e.Node == "" && e.Selected == "":
	case e.Node == "":
		e.Reason = fmt.Sprintf("The scheduler would select %s: ", e.Selected)
	case e.Selected == "":
		e.Reason = fmt.Sprintf("It is on %s, which is not feasible now: ", e.Node)
	case total(e.Node) == total(e.Selected):
		e.Stays, subject = true, e.Node
		e.Reason = fmt.Sprintf("It is on %s, which has the highest total, like others: ", e.Node)
		if e.Node == e.Selected {
			e.Reason = fmt.Sprintf("It is on %s, which would be selected again: ", e.Node)
		}
	default:
		e.Reason = fmt.Sprintf("It is on %s, and %s would be selected now: ", e.Node, e.Selected)
	}
	why := scores.Reason(subject)
	if e.Reason != "" && !strings.HasPrefix(why, subject+" ") {
		why = strings.ToLower(why[:1]) + why[1:] // continues the sentence
	}
	e.Reason += why
	if gates := len(pod.Spec.SchedulingGates); gates > 0 && pod.Spec.NodeName == "" {
		e.Reason += fmt.Sprintf(" It has %d scheduling gates, and is not scheduled until they are removed.", gates)
	}
}
