package scaling

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// NodesExplanation says which nodes of a cluster can go together, and what keeps the others.
type NodesExplanation struct {
	// Rules says whose rules decide, and by what the autoscaler was recognized.
	Rules string `json:"rules"`
	// Nodes are in the order in which their removal is considered: nodes with fewer constraints and pods first.
	Nodes []*ExplainedNode `json:"nodes"`
	// Summary has the sums over all nodes, empty if nodes are named.
	Summary string `json:"summary,omitempty"`
	// Warnings are sentences about the input.
	Warnings []string `json:"warnings,omitempty"`
}

// ExplainedNode says whether a node can go, and what keeps it.
type ExplainedNode struct {
	Name       string `json:"name"`
	Autoscaler string `json:"autoscaler"`
	// State is empty for a node that is ready and schedulable.
	State string `json:"state,omitempty"`
	// Utilization is the fraction of the node that pods request, as Cluster Autoscaler computes it.
	Utilization float64 `json:"utilization"`
	// Pods is the number of pods that have to move if the node goes.
	Pods   int    `json:"pods"`
	Result Result `json:"result"`
	// Constraints are what keeps the node: all of them have to change so that the node can go.
	Constraints []Constraint `json:"constraints,omitempty"`
	// Moves are nodes on which its pods fit together, in addition to the pods of the nodes that can go: then the node can go if its
	// constraints change.
	Moves []Move `json:"moves,omitempty"`

	object *v1.Node
	// free is what pods can request. pods have to move, the largest first.
	free resources.Amounts
	pods []*v1.Pod
	// index among the nodes of the removals.
	index int
}

// Result says whether a node can go.
type Result string

// The results for nodes. A node that takes pods is kept by nothing but the pods of nodes that can go. Nodes that can go after changes can
// go together with these, if their constraints change.
const (
	CanGo          Result = "can go"
	AfterChanges   Result = "can go after changes"
	takesPods      Result = "takes pods"
	isHeld         Result = "held"
	isBeingDeleted Result = "is being deleted"
)

// Text says whether the node can go or, if constraints keep it, which.
func (n *ExplainedNode) Text() string {
	if len(n.Constraints) == 0 {
		return string(n.Result)
	}
	keeps := make([]string, len(n.Constraints))
	for i, c := range n.Constraints {
		keeps[i] = strings.TrimSuffix(c.Kind+" "+c.Object, " "+n.Name)
	}
	return strings.Join(keeps, ", ")
}

// Move is a node on which a pod fits.
type Move struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

// explainer explains the nodes of a cluster.
type explainer struct {
	scaler *Autoscaler
	// nodes are in the order in which their removal is considered.
	nodes    []*ExplainedNode
	probe    *schedulerProbe
	removals *autoscaler.Removals
	isNamed  bool
}

// ExplainNodes says which nodes of the cluster of an engine can go together, and what keeps the others. With names, which must exist, it
// explains these nodes only, each alone, with the reasons of the scheduler's filters for each pod that fits nowhere else.
func ExplainNodes(ctx context.Context, e *engine.Engine, objects *manifest.Objects, names []string) (*NodesExplanation, error) {
	x, out := &explainer{scaler: &Autoscaler{engine: e}, isNamed: len(names) > 0}, &NodesExplanation{}
	pods := make([]recording.InputPod, len(objects.Running))
	for i, pod := range objects.Running {
		pods[i].Object = pod
	}
	x.scaler.compatibility = newCompatibility(e, pods)
	for _, pod := range objects.Running {
		x.scaler.compatibility.addReferences(pod)
	}
	x.addNodes(objects, out)
	x.pack()
	if !x.isNamed {
		out.Nodes, out.Summary = x.nodes, x.removeTogether(ctx)
	}
	for _, name := range names {
		i := slices.IndexFunc(x.nodes, func(n *ExplainedNode) bool { return n.Name == name })
		if i < 0 {
			var known []string
			for _, n := range x.nodes {
				known = append(known, n.Name)
			}
			return nil, fmt.Errorf("nodes %q not found%s", name, format.Suggestion(name, known))
		}
		x.try(ctx, x.nodes[i], false)
		out.Nodes = append(out.Nodes, x.nodes[i])
	}
	x.removals.Revert(ctx)
	err := x.probe.end(ctx)
	for _, n := range out.Nodes {
		for i := range n.Constraints {
			if c := &n.Constraints[i]; c.Kind == kindRoom && err == nil {
				err = x.explainRoom(ctx, n, c)
			}
		}
	}
	return out, err
}

// addNodes adds the nodes with their pods and what keeps these.
func (x *explainer) addNodes(objects *manifest.Objects, out *NodesExplanation) {
	budgets, warnings := budgetsByPod(objects)
	if n := len(objects.Pending); n > 0 {
		warnings = append(warnings, format.Are(n, "pod")+" pending: autoscalers remove no node that a pending pod needs")
	}
	byName, daemons, managed := map[string]*ExplainedNode{}, map[string]resources.Amounts{}, 0
	for _, node := range objects.Nodes {
		n := &ExplainedNode{Name: node.Name, Autoscaler: clusterAutoscaler, Result: isHeld, object: node, free: allocatable(node)}
		if _, found := node.Labels[karpenterLabel]; found {
			n.Autoscaler = karpenter
			managed++
		}
		n.setState()
		byName[node.Name] = n
		x.nodes = append(x.nodes, n)
	}
	for _, pod := range objects.Running {
		n, requests := byName[pod.Spec.NodeName], recording.PodAmounts(pod)
		if n == nil {
			continue
		}
		n.free = n.free.Minus(requests)
		n.add(podConstraints(pod, budgets[pod], n.Autoscaler, x.scaler.engine.Now()))
		switch {
		case resources.IsNodeBound(pod):
			daemons[n.Name] = daemons[n.Name].Add(requests)
		case pod.DeletionTimestamp == nil && !resources.HasFixedNode(pod):
			n.pods = append(n.pods, pod)
		}
	}
	for _, n := range x.nodes {
		shared := allocatable(n.object).Minus(daemons[n.Name])
		n.Utilization, n.Pods = autoscaler.Utilization(shared.Minus(n.free), shared), len(n.pods)
		n.add(nodeConstraints(n.object, n.Autoscaler, n.Utilization))
		size := func(pod *v1.Pod) float64 { return recording.PodAmounts(pod).MaxFraction(shared) }
		slices.SortStableFunc(n.pods, func(a, b *v1.Pod) int { return cmp.Compare(size(b), size(a)) })
	}
	slices.SortStableFunc(x.nodes, func(a, b *ExplainedNode) int {
		return cmp.Or(cmp.Compare(len(a.Constraints), len(b.Constraints)), cmp.Compare(a.Pods, b.Pods),
			cmp.Compare(a.Utilization, b.Utilization))
	})
	var rules []string
	if managed > 0 {
		rules = append(rules, fmt.Sprintf("Karpenter for %s with the label %s", format.Of(managed, "node"), karpenterLabel))
	}
	if others := len(x.nodes) - managed; others > 0 {
		rules = append(rules, "Cluster Autoscaler for "+format.Of(others, "node"))
	}
	out.Warnings, out.Rules = warnings, "Rules of "+strings.Join(rules, ", of ")
}

// setState sets the state of a node that takes no pods.
func (n *ExplainedNode) setState() {
	isTaint := func(t v1.Taint) bool { return resources.IsScaleDownTaint(t.Key) }
	ready := resources.ReadyStatus(n.object)
	switch {
	case n.object.DeletionTimestamp != nil || slices.ContainsFunc(n.object.Spec.Taints, isTaint):
		n.State, n.Result = "being deleted", isBeingDeleted
	case ready != "" && ready != v1.ConditionTrue:
		n.State = "not ready"
	case n.object.Spec.Unschedulable:
		n.State = "cordoned"
	}
}

// add adds constraints. Pods that one object keeps have one constraint.
func (n *ExplainedNode) add(constraints []Constraint) {
	for _, c := range constraints {
		i := slices.IndexFunc(n.Constraints, func(other Constraint) bool { return other.Kind == c.Kind && other.Object == c.Object })
		if i < 0 {
			n.Constraints = append(n.Constraints, c)
		} else {
			n.Constraints[i].Pods = append(n.Constraints[i].Pods, c.Pods...)
		}
	}
}

// pack prepares the removal of nodes. The nodes that are considered last are the first to take pods, so that nodes with few pods become
// empty.
func (x *explainer) pack() {
	x.probe = &schedulerProbe{scaler: x.scaler}
	nodes, items := make([]autoscaler.PackedNode, len(x.nodes)), []autoscaler.Item(nil)
	for i := range nodes {
		n := x.nodes[len(nodes)-1-i]
		if n.index = i; n.State == "" {
			nodes[i].Free = n.free
		}
		for _, pod := range n.pods {
			requests := recording.PodAmounts(pod)
			item := autoscaler.Item{Requests: requests, Class: x.scaler.compatibility.podClass(pod, requests)}
			nodes[i].Pods, items = append(nodes[i].Pods, len(items)), append(items, item)
			x.probe.add(pod, item)
		}
		kind := x.scaler.compatibility.nodeKind(n.object)
		x.probe.nodes = append(x.probe.nodes, probedNode{object: n.object, kind: kind, inScheduler: true})
	}
	x.removals = autoscaler.NewRemovals(nodes, items, x.probe)
}

// removeTogether tries to remove all nodes, one after the other: first those without constraints, then, as if their constraints had
// changed, those kept by budgets only, and at last all others. It returns the sums.
func (x *explainer) removeTogether(ctx context.Context) string {
	can, withBudgets, others, objects := 0, 0, 0, map[string]bool{}
	var held []*ExplainedNode
	for _, n := range x.nodes {
		if isFreed := x.try(ctx, n, len(n.Constraints) == 0); n.Result == CanGo {
			can++
		} else if isFreed {
			held = append(held, n)
		}
	}
	onlyBudgets := func(n *ExplainedNode) bool {
		return !slices.ContainsFunc(n.Constraints, func(c Constraint) bool { return c.Kind != kindBudget })
	}
	for _, budgets := range []bool{true, false} {
		for _, n := range held {
			if onlyBudgets(n) != budgets || !x.removals.Try(ctx, n.index, true, false).Succeeds() {
				continue
			}
			if n.Result = AfterChanges; !budgets {
				others++
				continue
			}
			withBudgets++
			for _, c := range n.Constraints {
				objects[c.Object] = true
			}
		}
	}
	text := format.Part(can, len(x.nodes), "node") + " can go now, one after the other"
	if withBudgets > 0 {
		text += fmt.Sprintf(", %d more if %s allowed a disruption: %s", withBudgets, format.Of(len(objects), "budget"),
			format.Abbreviate(slices.Sorted(maps.Keys(objects)), 3, ", "))
	}
	if others > 0 {
		text += fmt.Sprintf("; %d more after other changes", others)
	}
	return text
}

// try tries to remove a node as if its constraints had changed, sets its result, and reports whether the node could go then.
func (x *explainer) try(ctx context.Context, n *ExplainedNode, remove bool) bool {
	if n.Result != isHeld || slices.ContainsFunc(n.Constraints, func(c Constraint) bool { return c.Kind == kindNode }) {
		return false
	}
	r := x.removals.Try(ctx, n.index, remove, x.isNamed)
	switch {
	case len(n.Constraints) > 0:
	case r.IsNeeded:
		n.Result = takesPods
	case r.Succeeds():
		n.Result = CanGo
	}
	for i, to := range r.Moves {
		if r.Succeeds() {
			n.Moves = append(n.Moves, Move{resources.Name(n.pods[i]), x.probe.nodes[to].object.Name})
		}
	}
	for _, i := range r.Unfit {
		pod := resources.Name(x.probe.pods[i].object)
		n.add([]Constraint{{kindRoom, pod, "", "make room for " + pod, []string{pod}}})
	}
	return r.Succeeds()
}

// explainRoom sets the text of the constraint that a pod fits on no other node: the node that lacks least of what it requests and, if nodes
// are named, the reasons of the scheduler's filters, before any pod has moved.
func (x *explainer) explainRoom(ctx context.Context, n *ExplainedNode, c *Constraint) error {
	pod := n.pods[slices.IndexFunc(n.pods, func(pod *v1.Pod) bool { return resources.Name(pod) == c.Object })]
	requests, highest := recording.PodAmounts(pod), 0.0
	var best *ExplainedNode
	for _, other := range x.nodes {
		share := 1.0
		for r, amount := range requests.All() {
			share = min(share, float64(other.free.Get(r))/float64(amount))
		}
		if other != n && other.State == "" && (best == nil || share > highest) {
			best, highest = other, share
		}
	}
	if best == nil {
		c.Text = "no other node is ready"
	} else {
		c.Text = "nodes with room, such as " + best.Name + ", refuse it or get other pods"
		for r, amount := range requests.All() {
			if free := best.free.Get(r); free < amount {
				c.Text = fmt.Sprintf("needs %s, nearest is %s with %s", formatAmount(r, amount), best.Name, formatAmount(r, max(free, 0)))
			}
		}
	}
	if !x.isNamed {
		return nil
	}
	bound, err := x.scaler.engine.UnassignPod(ctx, pod)
	if err != nil {
		return err
	}
	scores, err := x.scaler.engine.Score(ctx, recording.Unbind(pod), "")
	scores.Nodes = slices.DeleteFunc(scores.Nodes, func(s engine.NodeScores) bool { return s.Name == n.Name })
	for _, r := range scores.Rejections() {
		c.Text += fmt.Sprintf("; %s: %s", format.Of(len(r.Nodes), "node"), r.Reason)
	}
	if feasible := len(scores.Feasible()); feasible > 0 {
		c.Text += "; " + format.Of(feasible, "node") + ": no room beside other pods of " + n.Name
	}
	return cmp.Or(err, x.scaler.engine.AssignPod(ctx, bound))
}

// formatAmount returns an amount with the name of its resource.
func formatAmount(r resources.Resource, amount int64) string {
	switch r {
	case resources.CPUResource:
		return format.Cores(amount) + " CPU"
	case resources.MemoryResource:
		return format.Bytes(amount) + " memory"
	}
	return fmt.Sprintf("%d %s", amount, r.Name())
}
