package scaling

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/slackpolicy"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// NodeType returns the nodes of the autoscaler, which must have one group, for slackpolicy.Search.
func (s Spec) NodeType(in *recording.Input) (slackpolicy.NodeType, error) {
	if len(s.Groups) != 1 {
		return slackpolicy.NodeType{}, fmt.Errorf("found %d groups of nodes: must be 1 to recommend slack", len(s.Groups))
	}
	groups, err := newGroups(s, in.Nodes)
	if err != nil {
		return slackpolicy.NodeType{}, err
	}
	g := &groups[0]
	g.adoptDaemonPods(in.Pods)
	return slackpolicy.NodeType{
		Allocatable: g.allocatable, Boot: g.spec.Boot, Cost: g.spec.Cost, Min: g.spec.Min, Max: g.spec.Max, Loop: s.Loop,
	}, nil
}

// History returns the nodes and pods of an input for slackpolicy.Search, without pods that are bound to a node by their own constraints.
// Inputs without an end last tail seconds after the last arrival. The nodes of the input are the pool: outside is the number of
// pods that ran on other nodes, or that did not run and may not run on any node of the pool. They are left out.
func (s Spec) History(in *recording.Input, tail int64) (h *slackpolicy.History, outside int, err error) {
	groups, err := newGroups(s, in.Nodes)
	if err != nil {
		return nil, 0, err
	}
	h = &slackpolicy.History{Start: in.Clock(0), Seconds: in.End}
	inPool, numbers := map[string]bool{}, map[string]int32{}
	for i := range in.Nodes {
		node := in.Nodes[i].Object
		inPool[node.Name] = true
		if in.Nodes[i].Appeared > 0 { // the autoscaler replaces the recorded autoscaler
			continue
		}
		group, amounts := groupOf(groups, node), allocatable(node)
		h.Nodes = append(h.Nodes,
			slackpolicy.InitialNode{Allocatable: amounts, IsScaled: group != autoscaler.NoGroup, Cost: s.inputCost(groups, group, node)})
		numbers[node.Name] = int32(len(h.Nodes))
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		number := numbers[p.Object.Spec.NodeName]
		if resources.IsNodeBound(p.Object) {
			if number > 0 {
				h.Nodes[number-1].Allocatable = h.Nodes[number-1].Allocatable.Minus(p.Requests)
			}
			continue
		}
		if !mayRun(p, in.Nodes, inPool) {
			outside++
			continue
		}
		pod := slackpolicy.Pod{Arrival: p.Arrival, Duration: p.Duration, Requests: p.Requests, Node: number}
		if p.Object.Spec.NodeName != "" {
			pod.Arrival = -1
		}
		if p.Recorded != nil && p.Recorded.Deleted > 0 { // never scheduled
			pod.Duration = p.Recorded.Deleted - p.Arrival
		}
		if in.End == 0 {
			h.Seconds = max(h.Seconds, p.Arrival+tail)
		}
		h.Pods = append(h.Pods, pod)
	}
	slices.SortStableFunc(h.Pods, func(a, b slackpolicy.Pod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return h, outside, nil
}

// mayRun reports whether a pod ran on one of the nodes with a name, or did not run and may run on one of the nodes.
func mayRun(p *recording.InputPod, nodes []recording.Node, names map[string]bool) bool {
	name := p.Object.Spec.NodeName
	if name == "" && p.Recorded != nil {
		name = p.Recorded.Node
	}
	if name != "" {
		return names[name]
	}
	matches := slack.NodeMatches(&p.Object.Spec)
	return slices.ContainsFunc(nodes, func(n recording.Node) bool { return matches(n.Object) })
}
