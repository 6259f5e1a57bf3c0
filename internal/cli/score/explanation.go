package score

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// explanation is the result of explain pod, also in JSON and YAML.
type explanation struct {
	engine.Explanation

	// Load describes the load of the nodes, null if it is unknown.
	Load *loadInfo `json:"load"`
	// Expected has the expectations of plugins for the pod, by plugin.
	Expected map[string]string `json:"expected,omitempty"`
	// Nodes are all nodes in the order of the input.
	Nodes []explainedNode `json:"nodes"`
}

// loadInfo describes where the load is from.
type loadInfo struct {
	Source        string    `json:"source"`
	Time          time.Time `json:"time"`
	AgeSeconds    float64   `json:"ageSeconds"`
	WindowSeconds float64   `json:"windowSeconds"`

	isCurrent bool
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
}

// weightedPlugin is the score of a plugin for a node. Weighted is Score x Weight.
type weightedPlugin struct {
	engine.PluginScore

	Weighted int64 `json:"weighted"`
}

// newExplanation adds the load of the nodes to an explanation.
func newExplanation(explained *engine.Explanation, state engine.State) *explanation {
	e := &explanation{Explanation: *explained, Expected: explained.Scores.Expected, Nodes: []explainedNode{}}
	if state.Load != nil {
		e.Load = &loadInfo{
			Source: state.Load.Source, Time: state.Load.Time.UTC(), WindowSeconds: state.Load.Window.Seconds(),
			isCurrent: state.Load.IsCurrent(), AgeSeconds: state.Now.Sub(state.Load.Time).Round(time.Millisecond).Seconds(),
		}
	}
	for _, node := range explained.Scores.Nodes {
		e.Nodes = append(e.Nodes, explainNode(node, state.Load))
	}
	return e
}

// findPod returns a pod.
func findPod(objects *manifest.Objects, key types.NamespacedName) (*v1.Pod, error) {
	for _, pod := range slices.Concat(objects.Pending, objects.Running) {
		if pod.Namespace == key.Namespace && pod.Name == key.Name {
			return pod, nil
		}
	}
	names := podNames(objects)
	hint := format.Suggestion(key.String(), names)
	for _, name := range names {
		if strings.HasSuffix(name, "/"+key.Name) {
			hint = "; did you mean " + name + "?"
		}
	}
	return nil, fmt.Errorf("pods %q not found in namespace %q, or finished%s", key.Name, key.Namespace, hint)
}

func explainNode(node engine.NodeScores, reading *load.Reading) explainedNode {
	e := explainedNode{
		Name: node.Name, Feasible: node.Feasible, Reason: node.Reason, Total: node.Total,
		Plugins: map[string]weightedPlugin{},
	}
	for name, plugin := range node.Plugins {
		e.Plugins[name] = weightedPlugin{plugin, plugin.Score * plugin.Weight}
	}
	if reading != nil {
		e.CPU, e.Memory = input.UtilizationOf(reading.Nodes[node.Name])
	}
	return e
}
