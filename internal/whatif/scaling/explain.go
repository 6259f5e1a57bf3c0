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
	// Nodes are the nodes in the order in which their removal is considered: nodes that nothing but room can keep first, and nodes with few
	// pods before others.
	Nodes []ExplainedNode `json:"nodes"`
	// Summary has the sums over all nodes.
	Summary string `json:"summary"`
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
	// IsFreed is set if the node could go in addition to the nodes before it if all its constraints changed; Moves are nodes on which its
	// pods fit then. It is always set for a node that can go.
	IsFreed bool   `json:"freedByChanges"`
	Moves   []Move `json:"moves,omitempty"`
}

// Result says whether a node can go.
type Result string

// The results for nodes.
const (
	CanGo       Result = "can go"
	TakesPods   Result = "takes pods of nodes that can go"
	IsHeld      Result = "held"
	IsBeingLost Result = "is being deleted"
)

// Move is a node on which a pod fits.
type Move struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

// explainer explains the nodes of a cluster.
type explainer struct {
	scaler *Autoscaler
	named  map[string]bool
	// nodes are in the order in which their removal is considered.
	nodes []*explained
	in    autoscaler.ScaleDownInput
}

// explained is a node while it is explained.
type explained struct {
	ExplainedNode

	object *v1.Node
	// free is what a pod can request; usable is false for nodes that take no pods.
	free     resources.Amounts
	isUsable bool
	// pods have to move, the largest first.
	pods []*v1.Pod
}

// ExplainNodes says which nodes of the cluster of an engine can go together, and what keeps the others. The nodes with the names, which
// must exist, are considered before others, and their pods that find no room are explained by the scheduler's filters.
func ExplainNodes(ctx context.Context, e *engine.Engine, objects *manifest.Objects, names []string) (*NodesExplanation, error) {
	x := &explainer{scaler: &Autoscaler{engine: e}, named: map[string]bool{}}
	known := map[string]bool{}
	for _, node := range objects.Nodes {
		known[node.Name] = true
	}
	for _, name := range names {
		if x.named[name] = true; !known[name] {
			return nil, fmt.Errorf("nodes %q not found%s", name, format.Suggestion(name, slices.Sorted(maps.Keys(known))))
		}
	}
	pods := make([]recording.InputPod, len(objects.Running))
	for i, pod := range objects.Running {
		pods[i].Object = pod
	}
	x.scaler.compatibility = newCompatibility(e, pods)
	for _, pod := range objects.Running {
		x.scaler.compatibility.addReferences(pod)
	}
	out := &NodesExplanation{}
	out.Warnings = x.addNodes(objects, out)
	if err := x.remove(ctx); err != nil {
		return nil, err
	}
	for _, n := range x.nodes {
		out.Nodes = append(out.Nodes, n.ExplainedNode)
	}
	out.Summary = summarize(out.Nodes)
	return out, nil
}

// addNodes adds the nodes with their pods and what keeps these, and returns sentences about the input.
func (x *explainer) addNodes(objects *manifest.Objects, out *NodesExplanation) (warnings []string) {
	rules, text := recognize(objects)
	budgets, warnings := newBudgets(objects)
	out.Rules = text
	if n := len(objects.Pending); n > 0 {
		warnings = append(warnings, format.Are(n, "pod")+" pending: autoscalers remove no node that a pending pod needs")
	}
	byName, daemons := map[string]*explained{}, map[string]resources.Amounts{}
	for _, node := range objects.Nodes {
		n := &explained{ExplainedNode: ExplainedNode{Name: node.Name, Autoscaler: rules(node)}, object: node, free: allocatable(node)}
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
		n.add(budgets.constraintsOf(pod, n.Autoscaler))
		switch isBound := resources.IsNodeBound(pod); {
		case isBound:
			daemons[n.Name] = daemons[n.Name].Add(requests)
		case pod.DeletionTimestamp == nil && !resources.HasFixedNode(pod):
			n.pods = append(n.pods, pod)
		}
	}
	for _, n := range x.nodes {
		shared := allocatable(n.object).Minus(daemons[n.Name])
		n.Utilization, n.Pods = autoscaler.Utilization(shared.Minus(n.free), shared), len(n.pods)
		if c, found := nodeConstraint(n.object, n.Autoscaler, n.Utilization); found {
			n.Constraints = append(n.Constraints, c)
		}
		size := func(pod *v1.Pod) float64 { return recording.PodAmounts(pod).MaxFraction(allocatable(n.object)) }
		slices.SortStableFunc(n.pods, func(a, b *v1.Pod) int { return cmp.Compare(size(b), size(a)) })
		n.isUsable = n.State == ""
	}
	slices.SortStableFunc(x.nodes, func(a, b *explained) int {
		first := map[bool]int{true: -1}
		return cmp.Or(first[x.named[a.Name]]-first[x.named[b.Name]], cmp.Compare(len(a.Constraints), len(b.Constraints)),
			cmp.Compare(a.Pods, b.Pods), cmp.Compare(a.Utilization, b.Utilization))
	})
	return warnings
}

// setState sets the state of a node that is not ready, or takes no pods.
func (n *explained) setState() {
	isTaint := func(t v1.Taint) bool { return resources.IsScaleDownTaint(t.Key) }
	ready := resources.ReadyStatus(n.object)
	switch {
	case n.object.DeletionTimestamp != nil || slices.ContainsFunc(n.object.Spec.Taints, isTaint):
		n.State, n.Result = "being deleted", IsBeingLost
	case ready != "" && ready != v1.ConditionTrue:
		n.State = "not ready"
	case n.object.Spec.Unschedulable:
		n.State = "cordoned"
	}
}

// add adds constraints of a pod. Pods that one object keeps have one constraint.
func (n *explained) add(constraints []Constraint) {
	for _, c := range constraints {
		i := slices.IndexFunc(n.Constraints, func(other Constraint) bool { return other.Kind == c.Kind && other.Object == c.Object })
		if i < 0 {
			n.Constraints = append(n.Constraints, c)
		} else {
			n.Constraints[i].Pods = append(n.Constraints[i].Pods, c.Pods...)
		}
	}
}

// remove tries to remove all nodes in their order, as if their constraints had changed, and sets the results. The nodes that are considered
// last are the first to take pods, so that nodes with few pods become empty.
func (x *explainer) remove(ctx context.Context) error {
	probe, last := &schedulerProbe{scaler: x.scaler}, len(x.nodes)-1
	x.in.Removable = []int{len(x.nodes)}
	var order []int
	var pods []*v1.Pod
	for i := range x.nodes {
		n := x.nodes[last-i]
		node := autoscaler.PackedNode{Name: n.Name, Utilization: n.Utilization}
		if n.isUsable {
			node.Free = n.free
		}
		isFixed := slices.ContainsFunc(n.Constraints, func(c Constraint) bool { return c.Kind == KindNode })
		if !isFixed && n.Result == "" {
			order = append(order, i)
			for _, pod := range n.pods {
				requests := recording.PodAmounts(pod)
				item := autoscaler.Item{Requests: requests, Class: x.scaler.compatibility.podClass(pod, requests)}
				node.Pods = append(node.Pods, len(pods))
				probe.add(pod, item)
				x.in.Pods, pods = append(x.in.Pods, item), append(pods, pod)
			}
		}
		n.Result = cmp.Or(n.Result, IsHeld)
		x.in.Nodes = append(x.in.Nodes, node)
		probe.nodes = append(probe.nodes, probedNode{object: n.object, kind: x.scaler.compatibility.nodeKind(n.object), inScheduler: true})
	}
	slices.Reverse(order)
	results := x.in.Remove(ctx, probe, order, true)
	if err := probe.end(ctx); err != nil {
		return err
	}
	for _, r := range results {
		n := x.nodes[last-r.Node]
		n.IsFreed = r.Succeeds()
		switch {
		case len(n.Constraints) > 0:
		case r.IsNeeded:
			n.Result = TakesPods
		case r.Succeeds():
			n.Result = CanGo
		}
		for i, to := range r.Moves {
			n.Moves = append(n.Moves, Move{resources.Name(pods[x.in.Nodes[r.Node].Pods[i]]), x.in.Nodes[to].Name})
		}
		if len(r.Unfit) > 0 {
			var unfit []*v1.Pod
			for _, pod := range r.Unfit {
				unfit = append(unfit, pods[pod])
			}
			if err := x.addRoom(ctx, n, unfit); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRoom adds the constraint of pods that fit on no other node, the largest first: one, or one for each pod if the node is named.
func (x *explainer) addRoom(ctx context.Context, n *explained, unfit []*v1.Pod) error {
	for i, pod := range unfit {
		name := resources.Name(pod)
		c := Constraint{Kind: KindRoom, Object: name, Pods: []string{name}, Text: x.nearest(n, pod), Change: "make room for " + name}
		if !x.named[n.Name] {
			for _, other := range unfit[1:] {
				c.Pods = append(c.Pods, resources.Name(other))
			}
			if more := len(unfit) - 1; more > 0 {
				c.Change += fmt.Sprintf(" and %d more", more)
			}
		} else if refusals, err := x.refusals(ctx, n, pod); err != nil {
			return err
		} else if refusals != "" {
			c.Text += "; " + refusals
		}
		n.Constraints = append(n.Constraints, c)
		if i == 0 && !x.named[n.Name] {
			break
		}
	}
	return nil
}

// nearest returns a text about the other node that lacks least of what a pod requests.
func (x *explainer) nearest(n *explained, pod *v1.Pod) string {
	requests := recording.PodAmounts(pod)
	var best *explained
	share := func(other *explained) float64 {
		least := 1.0
		for r, amount := range requests.All() {
			least = min(least, float64(other.free.Get(r))/float64(amount))
		}
		return least
	}
	highest := 0.0
	for _, other := range x.nodes {
		if s := share(other); other != n && other.isUsable && (best == nil || s > highest) {
			best, highest = other, s
		}
	}
	if best == nil {
		return "no other node is ready"
	}
	for r, amount := range requests.All() {
		if free := best.free.Get(r); free < amount {
			return fmt.Sprintf("needs %s, nearest is %s with %s", formatAmount(r, amount), best.Name, formatAmount(r, max(free, 0)))
		}
	}
	return fmt.Sprintf("needs %s: nodes with room, such as %s, refuse it or get other pods", requests, best.Name)
}

// formatAmount returns an amount with the name of its resource.
func formatAmount(r resources.Resource, amount int64) string {
	switch r.Index() {
	case resources.CPU:
		return format.Cores(amount) + " CPU"
	case resources.Memory:
		return format.Bytes(amount) + " memory"
	default:
		return fmt.Sprintf("%d %s", amount, r.Name())
	}
}

// refusals returns why the scheduler's filters refuse a pod on the other nodes, as they are now.
func (x *explainer) refusals(ctx context.Context, n *explained, pod *v1.Pod) (string, error) {
	bound, err := x.scaler.engine.UnassignPod(ctx, pod)
	if err != nil {
		return "", err
	}
	scores, err := x.scaler.engine.Score(ctx, recording.Unbind(pod), "")
	if assigned := x.scaler.engine.AssignPod(ctx, bound); err == nil {
		err = assigned
	}
	if err != nil {
		return "", err
	}
	scores.Nodes = slices.DeleteFunc(scores.Nodes, func(s engine.NodeScores) bool { return s.Name == n.Name })
	var texts []string
	for _, r := range scores.Rejections() {
		texts = append(texts, fmt.Sprintf("%s: %s", format.Of(len(r.Nodes), "node"), r.Reason))
	}
	if feasible := scores.Feasible(); len(feasible) > 0 {
		texts = append(texts, format.Of(len(feasible), "node")+": no room beside other pods of "+n.Name)
	}
	return strings.Join(texts, "; "), nil
}

// summarize returns the sums over nodes.
func summarize(nodes []ExplainedNode) string {
	can, withBudgets, others, objects := 0, 0, 0, map[string]bool{}
	for _, n := range nodes {
		switch {
		case n.Result == CanGo:
			can++
		case !n.IsFreed:
		case slices.ContainsFunc(n.Constraints, func(c Constraint) bool { return c.Kind != KindBudget }):
			others++
		default:
			withBudgets++
			for _, c := range n.Constraints {
				objects[c.Object] = true
			}
		}
	}
	text := format.Part(can, len(nodes), "node") + " can go now, one after the other"
	if withBudgets > 0 {
		text += fmt.Sprintf(", %d more if %s allowed a disruption: %s", withBudgets, format.Of(len(objects), "budget"),
			format.Abbreviate(slices.Sorted(maps.Keys(objects)), 3, ", "))
	}
	if others > 0 {
		text += fmt.Sprintf("; %d more after other changes", others)
	}
	return text
}
