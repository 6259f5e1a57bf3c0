package autoscaler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// NodeType returns the nodes of the autoscaler, which must have one group, for slack.Simulate.
func (s Spec) NodeType(in *recording.Input) (slack.NodeType, error) {
	if len(s.Groups) != 1 {
		return slack.NodeType{}, fmt.Errorf("found %d groups of nodes: must be 1 to recommend slack", len(s.Groups))
	}
	groups, err := newGroups(s, in.Nodes)
	if err != nil {
		return slack.NodeType{}, err
	}
	g := &groups[0]
	g.adoptDaemonPods(in.Pods)
	cost := g.spec.Cost
	if !s.Loop.Priced {
		cost = 1
	}
	return slack.NodeType{
		MilliCPU: g.allocatable[resources.CPU], Memory: g.allocatable[resources.Memory], Slots: g.allocatable[resources.Pods],
		Boot: g.spec.Boot, Interval: s.Loop.Interval, Idle: s.Loop.Idle, AfterAdd: s.Loop.AfterAdd, Utilization: s.Loop.Utilization,
		Cost: cost, Max: g.spec.Max,
	}, nil
}

// HistoryOf returns the pods of an input for slack.Simulate, without pods that are bound to a node by their own constraints. Inputs
// without an end last tail seconds after the last arrival.
func HistoryOf(in *recording.Input, tail int64) *slack.History {
	h := &slack.History{Start: in.Clock(0), Seconds: in.End}
	for i := range in.Pods {
		p := &in.Pods[i]
		if resources.IsNodeBound(p.Object) {
			continue
		}
		pod := slack.HistoryPod{
			Arrival: p.Arrival, Duration: p.Duration, MilliCPU: p.Requests[resources.CPU], Memory: p.Requests[resources.Memory],
		}
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
	slices.SortStableFunc(h.Pods, func(a, b slack.HistoryPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return h
}
