package replay

import (
	"cmp"
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Numbers of pods whose decision is recorded.
const (
	spreadPods = 13
	largePods  = 4
	waitedPods = 3
)

const (
	// maxAttempts is how often all nodes are scored for a pending pod. Each time takes as
	// long as several scheduling cycles.
	maxAttempts = 5
	// otherNodes is how many nodes are recorded in addition to the selected one.
	otherNodes = 3
	// maxNodesReasons is how many reasons for rejected nodes are recorded.
	maxNodesReasons = 8
)

// decisions records the nodes of some pods, and the reasons. A nil decisions records nothing.
// Recording scores nodes once more, but does not change the run.
type decisions struct {
	pods map[int32]*decision // by number
	// waited counts the pods that are recorded because they had to wait.
	waited int
	// arrivals has the ordinal number of each pod's arrival, from 1.
	arrivals map[int32]int
}

// decision is the record of one pod.
type decision struct {
	selection string
	attempts  int
	// scores of an attempt that has not ended.
	scores *engine.PodScores
	// last is the record of the last attempt.
	last   result.Decision
	placed int64 // second
}

// newDecisions selects pods by the input alone, so that every profile has the same pods.
func newDecisions(in recording.Input, arrivals []int32) *decisions {
	d := &decisions{pods: map[int32]*decision{}, arrivals: make(map[int32]int, len(arrivals))}
	for i, number := range arrivals {
		d.arrivals[number] = i + 1
	}
	for _, number := range bySize(in, arrivals)[:min(largePods, len(arrivals))] {
		d.pods[number] = &decision{selection: result.LargePod}
	}
	for i := range spreadPods {
		if len(arrivals) == 0 {
			break
		}
		number := arrivals[i*(len(arrivals)-1)/(spreadPods-1)]
		if d.pods[number] == nil {
			d.pods[number] = &decision{selection: result.SpreadPod}
		}
	}
	return d
}

// bySize returns the pods in descending order of their requests, as a fraction of the largest node.
// Of equal pods, the last to arrive is first, as the cluster is fullest then.
func bySize(in recording.Input, arrivals []int32) []int32 {
	var largest resources.Amounts
	for i := range in.Nodes {
		largest = largest.Max(recording.Amounts(in.Nodes[i].Object.Status.Allocatable))
	}
	largest.Pods = 0 // does not count
	size := func(number int32) float64 { return in.Pods[number].Requests.MaxFraction(largest) }
	order := slices.Clone(arrivals)
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(size(b), size(a)) })
	return order
}

// beforeAttempt scores the nodes for a pod that is about to be scheduled, if it is
// recorded.
func (d *decisions) beforeAttempt(ctx context.Context, e *engine.Engine, number int32, pod *v1.Pod, now int64) error {
	if d == nil {
		return nil
	}
	if record := d.pods[number]; record != nil {
		return record.attempt(ctx, e, pod, now)
	}
	return nil
}

// unschedulable records a pod that does not fit on any node. The first such pods are added to the
// recorded pods.
func (d *decisions) unschedulable(ctx context.Context, e *engine.Engine, number int32, pod *v1.Pod, now int64) error {
	if d == nil {
		return nil
	}
	record := d.pods[number]
	if record == nil {
		if d.waited == waitedPods {
			return nil
		}
		d.waited++
		record = &decision{selection: result.WaitedPod}
		d.pods[number] = record
	}
	if record.attempts == 0 {
		if err := record.attempt(ctx, e, pod, now); err != nil {
			return err
		}
	}
	record.endAttempt("")
	return nil
}

// scheduled records the node of a pod.
func (d *decisions) scheduled(number int32, node string, now int64) {
	if d == nil || d.pods[number] == nil {
		return
	}
	record := d.pods[number]
	record.endAttempt(node)
	record.last.Node, record.placed = node, now
}

// attempt scores all nodes, unless the maximum number of attempts is reached.
func (r *decision) attempt(ctx context.Context, e *engine.Engine, pod *v1.Pod, now int64) error {
	if r.attempts == maxAttempts {
		return nil
	}
	scores, err := e.Score(ctx, pod, "")
	if err != nil {
		return err
	}
	r.attempts++
	r.scores, r.last.AttemptSecond = &scores, now
	return nil
}

// endAttempt ends the current attempt, if there is one, with the selected node. It
// keeps the scores of a few nodes.
func (r *decision) endAttempt(node string) {
	if r.scores == nil {
		return
	}
	r.last.Nodes, r.last.Feasible = len(r.scores.Nodes), len(r.scores.Feasible())
	r.last.Reasons, r.last.Scores = nodesReasons(r.scores), nodeScores(r.scores, node)
	r.scores = nil
}

// result returns the recorded decisions in the order of arrival.
func (d *decisions) result(pods []recording.InputPod, now int64) []result.Decision {
	if d == nil {
		return nil
	}
	all := []result.Decision{}
	for number, record := range d.pods {
		if record.attempts == 0 {
			continue // The pod has not arrived.
		}
		p, decision := &pods[number], record.last
		decision.Arrival, decision.Selection, decision.Pod = d.arrivals[number], record.selection, resources.Name(p.Object)
		decision.CPURequest, decision.CPULimit = p.Resources.CPURequest, p.Resources.CPULimit
		decision.MemoryRequest, decision.MemoryLimit = p.Resources.MemoryRequest, p.Resources.MemoryLimit
		decision.ArrivedSecond, decision.WaitedSeconds = p.Arrival, max(now-p.Arrival, 0)
		if decision.Node != "" {
			decision.WaitedSeconds = record.placed - p.Arrival
		}
		all = append(all, decision)
	}
	slices.SortFunc(all, func(a, b result.Decision) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return all
}

// nodesReasons counts rejected nodes by reason, the most frequent first.
func nodesReasons(scores *engine.PodScores) []result.NodesReason {
	reasons := []result.NodesReason{}
	for _, r := range scores.Rejections() {
		reasons = append(reasons, result.NodesReason{Filter: r.Filter, Reason: r.Reason, Nodes: len(r.Nodes)})
	}
	return reasons[:min(len(reasons), maxNodesReasons)]
}

// nodeScores returns the scores of the selected node and of the best other nodes; nodes with equal
// scores are in the order of the input.
func nodeScores(scores *engine.PodScores, selected string) []result.NodeScore {
	feasible := scores.Feasible()
	slices.SortStableFunc(feasible, func(a, b engine.NodeScores) int {
		switch selected {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return 0
	})
	recorded := []result.NodeScore{}
	for _, n := range feasible[:min(len(feasible), 1+otherNodes)] {
		score := result.NodeScore{Node: n.Name, Total: n.Total, Plugins: []result.PluginScore{}}
		for _, name := range slices.Sorted(maps.Keys(n.Plugins)) {
			p := n.Plugins[name]
			score.Plugins = append(score.Plugins, result.PluginScore{Name: name, Raw: p.Raw, Score: p.Score, Weight: p.Weight})
		}
		recorded = append(recorded, score)
	}
	return recorded
}
