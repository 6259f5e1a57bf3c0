package replay

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// How many pods' decisions are kept: of those that the input chooses, and of those
// that fit no node when they come.
const (
	spreadPods = 13
	largePods  = 4
	waitedPods = 3
)

// maxTrials is how often all nodes are scored for a pod that waits: each takes as
// long as several scheduling cycles.
const maxTrials = 5

// otherNodes is how many nodes are kept beside the one that a pod went to.
const otherNodes = 3

// maxNodesReasons is how many reasons are kept for which nodes were left out.
const maxNodesReasons = 8

// decisions records where some pods go, and why. A nil one records nothing.
// Recording scores nodes once more, and changes nothing of the run.
type decisions struct {
	kept map[int32]*decision
	// waited is how many are kept because they had to wait.
	waited int
	// numbers of the pods in the order in which they come, from 1.
	numbers map[int32]int
}

// decision is what is known of one pod.
type decision struct {
	why    string
	trials int
	// scores are those of a trial that goes on.
	scores *engine.PodScores
	// found is what is to be kept of the last trial.
	found  result.Decision
	placed int64
}

// newDecisions chooses pods: by the input alone, so that every profile has the same.
func newDecisions(input Input, arrivals []int32) *decisions {
	d := &decisions{kept: map[int32]*decision{}, numbers: make(map[int32]int, len(arrivals))}
	for i, number := range arrivals {
		d.numbers[number] = i + 1
	}
	for _, number := range largest(input, arrivals)[:min(largePods, len(arrivals))] {
		d.kept[number] = &decision{why: result.LargePod}
	}
	for i := range spreadPods {
		if len(arrivals) == 0 {
			break
		}
		number := arrivals[i*(len(arrivals)-1)/(spreadPods-1)]
		if d.kept[number] == nil {
			d.kept[number] = &decision{why: result.SpreadPod}
		}
	}
	return d
}

// largest returns the pods in the order of how much they ask for, as a part of the
// most that any node has of that; of equal ones the last to come, which finds the
// fullest cluster, is first.
func largest(input Input, arrivals []int32) []int32 {
	var most trace.Amounts
	for i := range input.Nodes {
		free := newNode(input.Nodes[i].Object).free
		most = trace.Amounts{CPU: max(most.CPU, free.CPU), Memory: max(most.Memory, free.Memory), GPU: max(most.GPU, free.GPU)}
	}
	of := func(a, b int64) float64 { return part(float64(a), float64(b)) }
	size := func(number int32) float64 {
		p := &input.Pods[number].Needs
		return max(of(p.CPU, most.CPU), of(p.Memory, most.Memory), of(p.GPU, most.GPU))
	}
	order := slices.Clone(arrivals)
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(size(b), size(a)) })
	return order
}

// before scores the nodes for a pod that is about to be scheduled, if it is one to
// be kept.
func (d *decisions) before(ctx context.Context, r *run, number int32) error {
	if d == nil {
		return nil
	}
	if kept := d.kept[number]; kept != nil {
		return kept.try(ctx, r, number)
	}
	return nil
}

// stuck notes a pod that fits no node: the first of them are kept.
func (d *decisions) stuck(ctx context.Context, r *run, number int32) error {
	if d == nil {
		return nil
	}
	kept := d.kept[number]
	if kept == nil {
		if d.waited == waitedPods {
			return nil
		}
		d.waited++
		kept = &decision{why: result.WaitedPod}
		d.kept[number] = kept
	}
	if kept.trials == 0 {
		if err := kept.try(ctx, r, number); err != nil {
			return err
		}
	}
	kept.end("")
	return nil
}

// placed notes where a pod went.
func (d *decisions) placed(r *run, number int32, node string) {
	if d == nil || d.kept[number] == nil {
		return
	}
	kept := d.kept[number]
	kept.end(node)
	kept.found.Node, kept.placed = node, r.now
}

// try scores all nodes, unless that has been done often enough.
func (k *decision) try(ctx context.Context, r *run, number int32) error {
	if k.trials == maxTrials {
		return nil
	}
	scores, err := r.engine.Score(ctx, r.Pods[number].Object, "")
	if err != nil {
		return err
	}
	k.trials++
	k.scores, k.found.AttemptSecond = &scores, r.now
	return nil
}

// end ends a trial, if one goes on, with the node that the pod went to: a few of
// the scores are kept, as those of all nodes take much room.
func (k *decision) end(node string) {
	if k.scores == nil {
		return
	}
	k.found.Nodes, k.found.Feasible = len(k.scores.Nodes), 0
	for i := range k.scores.Nodes {
		if k.scores.Nodes[i].Feasible {
			k.found.Feasible++
		}
	}
	k.found.Reasons, k.found.Scores = reasonsOf(k.scores), scoresOf(k.scores, node)
	k.scores = nil
}

// result returns what was recorded, in the order in which the pods came.
func (d *decisions) result(r *run) []result.Decision {
	if d == nil {
		return nil
	}
	all := []result.Decision{}
	for number, kept := range d.kept {
		if kept.trials == 0 {
			continue // it has not come
		}
		p, is := &r.Pods[number], kept.found
		is.Arrival, is.Selection, is.Pod = d.numbers[number], kept.why, facts.Name(p.Object)
		is.CPURequest, is.CPULimit = p.Wants.CPURequest, p.Wants.CPULimit
		is.MemoryRequest, is.MemoryLimit = p.Wants.MemoryRequest, p.Wants.MemoryLimit
		is.ArrivedSecond, is.WaitedSeconds = p.Arrival, max(r.now-p.Arrival, 0)
		if is.Node != "" {
			is.WaitedSeconds = kept.placed - p.Arrival
		}
		all = append(all, is)
	}
	slices.SortFunc(all, func(a, b result.Decision) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return all
}

// reasonsOf counts the reasons for which nodes were left out, that of most nodes
// first.
func reasonsOf(scores *engine.PodScores) []result.NodesReason {
	counts := map[result.NodesReason]int{}
	for i := range scores.Nodes {
		if n := &scores.Nodes[i]; !n.Feasible {
			counts[result.NodesReason{Filter: n.Filter, Reason: n.Reason}]++
		}
	}
	reasons := []result.NodesReason{}
	for reason, nodes := range maps.All(counts) {
		reason.Nodes = nodes
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b result.NodesReason) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Filter, b.Filter), cmp.Compare(a.Reason, b.Reason))
	})
	return reasons[:min(len(reasons), maxNodesReasons)]
}

// scoresOf returns the scores of the node that was chosen and of the best others,
// of equal ones the first in the input.
func scoresOf(scores *engine.PodScores, chosen string) []result.NodeScore {
	var feasible []*engine.NodeScores
	for i := range scores.Nodes {
		if scores.Nodes[i].Feasible {
			feasible = append(feasible, &scores.Nodes[i])
		}
	}
	rank := func(n *engine.NodeScores) int64 {
		if n.Name == chosen {
			return -1
		}
		return 0
	}
	slices.SortStableFunc(feasible, func(a, b *engine.NodeScores) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Total, a.Total))
	})
	kept := []result.NodeScore{}
	for _, n := range feasible[:min(len(feasible), 1+otherNodes)] {
		score := result.NodeScore{Node: n.Name, Total: n.Total, Plugins: []result.PluginScore{}}
		for _, name := range slices.Sorted(maps.Keys(n.Plugins)) {
			p := n.Plugins[name]
			score.Plugins = append(score.Plugins, result.PluginScore{Name: name, Raw: p.Raw, Score: p.Score, Weight: p.Weight})
		}
		kept = append(kept, score)
	}
	return kept
}
