package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PodScores are the scores of all nodes for one pod.
type PodScores struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Selected is the nominated node, or the first node with the highest total, empty if the pod fits on no node.
	Selected string `json:"selected"`
	// Nominated is set if Selected is the nominated node, which kube-scheduler tries first.
	Nominated bool `json:"nominated,omitempty"`
	// Expected has the expectations of plugins for the pod, by plugin. Few plugins have expectations.
	Expected map[string]string `json:"expected,omitempty"`
	// Nodes in the order in which they were added for the first time.
	Nodes []NodeScores `json:"nodes"`
}

// Feasible returns the feasible nodes, the highest total first; equal totals are in the order of Nodes.
func (p PodScores) Feasible() []NodeScores {
	feasible := slices.DeleteFunc(slices.Clone(p.Nodes), func(n NodeScores) bool { return !n.Feasible })
	slices.SortStableFunc(feasible, func(a, b NodeScores) int { return cmp.Compare(b.Total, a.Total) })
	return feasible
}

// Rejection is a reason for which nodes were rejected.
type Rejection struct {
	// Filter and Reason as in NodeScores.
	Filter, Reason string
	// Nodes are the names of the nodes, in the order of PodScores.Nodes.
	Nodes []string
}

// Rejections returns the reasons for which nodes were rejected, the reasons of most nodes first.
func (p PodScores) Rejections() []Rejection {
	var rejections []Rejection
	for _, node := range p.Nodes {
		if node.Feasible {
			continue
		}
		i := slices.IndexFunc(rejections, func(r Rejection) bool { return r.Filter == node.Filter && r.Reason == node.Reason })
		if i < 0 {
			i = len(rejections)
			rejections = append(rejections, Rejection{Filter: node.Filter, Reason: node.Reason})
		}
		rejections[i].Nodes = append(rejections[i].Nodes, node.Name)
	}
	slices.SortFunc(rejections, func(a, b Rejection) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Filter, b.Filter), cmp.Compare(a.Reason, b.Reason))
	})
	return rejections
}

// NodeScores are the scores of one node for one pod.
type NodeScores struct {
	Name string `json:"name"`
	// Feasible is set if the node passed all filters. Otherwise Reason is the message
	// and Filter the plugin that rejected it, if there is one.
	Feasible bool   `json:"feasible"`
	Reason   string `json:"reason"`
	Filter   string `json:"filter,omitempty"`
	// Total is the sum over the plugins of score x weight.
	Total int64 `json:"total"`
	// Plugins by name; empty if the node is not feasible. Plugins that skip the pod are
	// omitted.
	Plugins map[string]PluginScore `json:"plugins"`
}

// PluginScore is the score of one node by one plugin.
type PluginScore struct {
	// Raw is the score before normalization, Score after it, in [0, 100].
	Raw   int64 `json:"raw"`
	Score int64 `json:"score"`
	// Weight of the plugin in the profile.
	Weight int64 `json:"weight"`
	// Why is the reason for the score, empty if the plugin does not explain it.
	Why string `json:"why,omitempty"`
}

// Score scores every feasible node for a pod, with the profile of a scheduler name. If the name is
// empty, it uses the only profile, or the profile that the pod's spec names. A scheduling cycle
// scores only a sample of many nodes, and none but the nominated node of a pod if it is feasible. Score does not affect later calls of
// Schedule.
func (e *Engine) Score(ctx context.Context, pod *v1.Pod, schedulerName string) (PodScores, error) {
	profile, err := e.profile(pod, schedulerName)
	if err != nil {
		return PodScores{}, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if err := e.scheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), e.snapshot); err != nil {
		return PodScores{}, err
	}
	result, err := e.score(ctx, profile, pod)
	if err != nil {
		return PodScores{}, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	slices.SortFunc(result.Nodes, func(a, b NodeScores) int { return cmp.Compare(e.position[a.Name], e.position[b.Name]) })
	best := int64(-1)
	for _, node := range result.Nodes {
		switch isNominated := node.Name == pod.Status.NominatedNodeName; {
		case !node.Feasible:
		case isNominated:
			result.Selected, result.Nominated, best = node.Name, true, math.MaxInt64
		case node.Total > best:
			result.Selected, best = node.Name, node.Total
		}
	}
	return result, nil
}

func (e *Engine) score(ctx context.Context, profile framework.Framework, pod *v1.Pod) (PodScores, error) {
	result := PodScores{Namespace: pod.Namespace, Name: pod.Name}
	nodes, err := e.snapshot.NodeInfos().List()
	if err != nil {
		return result, err
	}
	state := framework.NewCycleState()
	feasible, err := result.filter(nodes, filters(ctx, profile, state, pod))
	if err != nil {
		return result, err
	}
	if len(feasible) == 0 {
		return result, nil
	}
	if status := profile.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return result, status.AsError()
	}
	scored, status := profile.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return result, status.AsError()
	}
	weights := map[string]int64{}
	for _, plugin := range profile.ListPlugins().Score.Enabled {
		weights[plugin.Name] = int64(plugin.Weight)
	}
	explainers := e.explainers[profile.ProfileName()]
	for name, plugin := range explainers {
		if _, scores := weights[name]; scores {
			if result.Expected == nil {
				result.Expected = map[string]string{}
			}
			result.Expected[name] = plugin.ExplainPod(state, pod)
		}
	}
	for i, node := range scored {
		scores := NodeScores{
			Name: node.Name, Feasible: true, Total: node.TotalScore,
			Plugins: make(map[string]PluginScore, len(node.Scores)),
		}
		for j, plugin := range node.Scores {
			weight := max(weights[plugin.Name], 1)
			score := PluginScore{Raw: node.RawScores[j].Score, Score: plugin.Score / weight, Weight: weight}
			if explainer, ok := explainers[plugin.Name]; ok {
				score.Why = explainer.ExplainNode(state, pod, feasible[i])
			}
			scores.Plugins[plugin.Name] = score
		}
		result.Nodes = append(result.Nodes, scores)
	}
	return result, nil
}

// filter returns the nodes on which the pod fits, and adds the other nodes with the reason.
func (p *PodScores) filter(nodes []fwk.NodeInfo, statusOn func(node fwk.NodeInfo) *fwk.Status) (feasible []fwk.NodeInfo, err error) {
	for _, node := range nodes {
		switch status := statusOn(node); {
		case status.IsSuccess():
			feasible = append(feasible, node)
		case status.IsRejected():
			p.Nodes = append(p.Nodes, NodeScores{
				Name: node.Node().Name, Reason: status.Message(), Filter: status.Plugin(), Plugins: map[string]PluginScore{},
			})
		default:
			return nil, status.AsError()
		}
	}
	return feasible, nil
}

// filters runs what filters compute for a pod once for all nodes, and returns a function that runs the filters on a node.
func filters(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod) func(node fwk.NodeInfo) *fwk.Status {
	allowed, status, _ := profile.RunPreFilterPlugins(ctx, state, pod)
	return func(node fwk.NodeInfo) *fwk.Status {
		if !status.IsSuccess() {
			return status
		}
		if !allowed.AllNodes() && !allowed.NodeNames.Has(node.Node().Name) {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) didn't match the pod's constraints")
		}
		return profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	}
}
