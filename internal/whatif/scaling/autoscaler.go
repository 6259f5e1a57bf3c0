// Package scaling simulates a cluster autoscaler, which adds nodes for pending
// pods and for the placeholders of a slack policy, and removes nodes that are not
// needed. It reads the state of the cluster and returns changes; the run executes
// them.
package scaling

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// Config configures an autoscaler.
type Config struct {
	Spec Spec `json:"spec"`
	// Slack is the policy whose placeholders the autoscaler maintains, nil for none.
	Slack *v1alpha1.ResourceSlack `json:"slack,omitempty"`
}

// Check returns an error if the configuration cannot be used with the nodes of an input. Otherwise it returns whether one of them, or a
// node of a group, is in the pool of the slack policy, which else reserves nothing.
func (c *Config) Check(nodes []recording.Node) (hasPool bool, err error) {
	groups, err := newGroups(c.Spec, nodes)
	if err == nil && c.Slack != nil {
		_, err = newPlaceholders(c, &recording.Input{})
	}
	if err != nil {
		return false, err
	}
	inPool := func(node *v1.Node) bool { return c.Slack != nil && slack.InPool(node, c.Slack.Spec.Pool) }
	hasPool = slices.ContainsFunc(groups, func(g nodeGroup) bool { return inPool(g.template) })
	for i := range nodes {
		hasPool = hasPool || inPool(nodes[i].Object)
	}
	return hasPool, nil
}

// inputCost returns the cost of a node of the input per hour. A node that is in no group costs as much as the nodes of a group with equal
// allocatable or, if there is none, in proportion to those of the first group.
func (s Spec) inputCost(groups []nodeGroup, group int, node *v1.Node) float64 {
	switch {
	case !s.IsPriced:
		return 1
	case s.CountsCPUs:
		return node.Status.Allocatable.Cpu().AsApproximateFloat64()
	}
	if group != autoscaler.NoGroup && groups[group].contains(node) {
		return groups[group].spec.Cost
	}
	amounts := allocatable(node)
	for i := range groups {
		other := allocatable(groups[i].template)
		other.Pods = amounts.Pods
		if other == amounts {
			return groups[i].spec.Cost
		}
	}
	amounts.Pods = 0
	return groups[0].spec.Cost * amounts.MaxFraction(allocatable(groups[0].template))
}

// Cluster is the state of a run that the autoscaler reads.
type Cluster struct {
	// Now is the current second.
	Now int64
	// Nodes and Pods of the run. Their indexes are their numbers.
	Nodes []recording.Node
	Pods  []recording.InputPod
	// Ready are the ready nodes. Booting are the numbers of the booting nodes in the order in which
	// they become ready.
	Ready   []NodeState
	Booting []int32
	// Pending are the numbers of the pending pods, in the order of the queue.
	Pending []int32
}

// NodeState is the state of a node that is ready.
type NodeState struct {
	// Number of the node.
	Number int32
	// Free is allocatable less the requests of the pods.
	Free resources.Amounts
	// Pods are the numbers of the pods on the node.
	Pods []int32
}

// Autoscaler is a simulated autoscaler. It must be used by one goroutine only.
type Autoscaler struct {
	config    Config
	groups    []nodeGroup
	nodes     []nodeInfo // by number
	inputSize int        // number of nodes of the input
	// inputNames are the names of the nodes of the input.
	inputNames    map[string]bool
	initial       []recording.Node
	scaleDown     autoscaler.ScaleDown
	engine        *engine.Engine
	compatibility *compatibility
	placeholders  *placeholders // nil without a policy
	// nextPass is the second of the next pass, lastAdded the second of the last pass that added
	// nodes.
	nextPass, lastAdded int64
	// podOutcomes of the last pass, by pod number.
	podOutcomes map[int32]autoscaler.PodOutcome
	totals      result.Scaling
}

// nodeInfo describes a node for the autoscaler.
type nodeInfo struct {
	group int // autoscaler.NoGroup if it belongs to no group
	kind  int
	// allocatable amounts less the requests of DaemonSet pods.
	allocatable resources.Amounts
	// added and removed are the seconds at which the node was added and removed.
	added, removed int64
	costPerHour    float64
}

// New returns an autoscaler for an input.
func New(config Config, in recording.Input) (*Autoscaler, error) {
	groups, err := newGroups(config.Spec, in.Nodes)
	if err != nil {
		return nil, err
	}
	a := &Autoscaler{
		config: config, groups: groups, inputSize: len(in.Nodes), inputNames: map[string]bool{},
		podOutcomes: map[int32]autoscaler.PodOutcome{}, lastAdded: -recording.Never,
	}
	if config.Slack != nil {
		if a.placeholders, err = newPlaceholders(&config, &in); err != nil {
			return nil, err
		}
	}
	for i := range in.Nodes {
		node := in.Nodes[i].Object
		a.inputNames[node.Name] = true
		group := groupOf(groups, node)
		if group != autoscaler.NoGroup {
			groups[group].size++
		}
		a.addNodeInfo(group, in.Nodes[i].Appeared, allocatable(node))
		a.nodes[i].costPerHour = config.Spec.inputCost(groups, group, node)
	}
	for i := range groups {
		groups[i].adoptDaemonPods(in.Pods)
		for groups[i].size < groups[i].spec.Min {
			a.initial = append(a.initial, a.newNode(i, 0, 0))
		}
	}
	return a, nil
}

// InitialNodes returns the nodes that are added at the start so that each group has
// its minimum size.
func (a *Autoscaler) InitialNodes() []recording.Node { return a.initial }

// newNode returns a new node of a group, with a unique name.
func (a *Autoscaler) newNode(group int, added, boot int64) recording.Node {
	g := &a.groups[group]
	g.size++
	a.addNodeInfo(group, added, g.allocatable)
	for {
		g.lastName++
		if name := fmt.Sprintf("%s-%05d", g.spec.Name, g.lastName); !a.inputNames[name] {
			return recording.Node{Object: g.node(name), Appeared: boot, Gone: recording.Never}
		}
	}
}

// addNodeInfo adds the nodeInfo of the node with the next number.
func (a *Autoscaler) addNodeInfo(group int, added int64, amounts resources.Amounts) {
	n := nodeInfo{group: group, added: added, removed: recording.Never, allocatable: amounts}
	if group != autoscaler.NoGroup {
		n.kind, n.costPerHour = a.groups[group].kind, a.groups[group].spec.Cost
	}
	a.nodes = append(a.nodes, n)
}

// Start sets the scheduler that evaluates constraints, and reads the nodes and pods
// that exist at the start.
func (a *Autoscaler) Start(e *engine.Engine, c Cluster) {
	a.engine = e
	a.compatibility = newCompatibility(e, c.Pods)
	for i := range a.nodes {
		a.nodes[i].kind = a.compatibility.nodeKind(c.Nodes[i].Object)
	}
	for i := range c.Ready {
		n := &a.nodes[c.Ready[i].Number]
		for _, pod := range c.Ready[i].Pods {
			if resources.IsNodeBound(c.Pods[pod].Object) {
				n.allocatable = n.allocatable.Minus(c.Pods[pod].Requests)
			}
		}
	}
	for i := range a.groups {
		a.groups[i].kind = a.compatibility.nodeKind(a.groups[i].template)
	}
}

// DaemonPods returns the DaemonSet pods that start on a node of the autoscaler when it
// becomes ready.
func (a *Autoscaler) DaemonPods(c Cluster, number int32) []recording.InputPod {
	if int(number) < a.inputSize {
		return nil
	}
	name := c.Nodes[number].Object.Name
	var pods []recording.InputPod
	for _, model := range a.groups[a.nodes[number].group].daemonPods {
		pod := c.Pods[model]
		object := recording.Bind(pod.Object, name)
		object.Name = fmt.Sprintf("%s-%s", pod.Object.Name, name)
		object.UID = types.UID(fmt.Sprintf("%s on %s", pod.Object.UID, name))
		object.CreationTimestamp = metav1.NewTime(recording.Time(c.Now))
		pod.Object, pod.Arrival = object, c.Now
		pods = append(pods, pod)
	}
	return pods
}

// NextPass returns the second of the next pass.
func (a *Autoscaler) NextPass() int64 { return a.nextPass }

// Pass reads the state of the cluster and returns the nodes to add, in the order of their numbers, and the numbers of the nodes to
// remove, with their pods. The scheduler is unchanged when it returns.
func (a *Autoscaler) Pass(ctx context.Context, c Cluster) (add []recording.Node, remove []int32, err error) {
	interval := a.config.Spec.Loop.Interval
	a.nextPass = (c.Now/interval + 1) * interval
	p := newPass(a, c)
	if err := p.assignPlaceholders(ctx); err != nil {
		return nil, nil, err
	}
	err = p.scale(ctx)
	if released := p.releasePlaceholders(ctx); err == nil {
		err = released
	}
	return p.add, p.remove, err
}

// PendingReason returns the outcome of the last pass for a pending pod, as a part of the pod's
// reason.
func (a *Autoscaler) PendingReason(pod int32) string {
	switch a.podOutcomes[pod] {
	case autoscaler.FitsNoGroup:
		return "; fits on no node of the autoscaler's groups"
	case autoscaler.GroupsFull:
		return "; the groups that it fits on are at their maximum size"
	case autoscaler.FitsBootingNode, autoscaler.NodeAdded:
		return "; a node for it is booting"
	}
	return ""
}

// SlackKept returns the fraction of the target slack that was available in the last
// pass, and whether there is a policy.
func (a *Autoscaler) SlackKept() (float64, bool) {
	if a.placeholders == nil {
		return 0, false
	}
	return a.placeholders.kept.fraction, true
}

// Result returns the result of the autoscaler, with the cost of nodes from one second until another.
func (a *Autoscaler) Result(start, now int64) *result.Scaling {
	totals := a.totals
	var added, removed []int64
	for i := range a.nodes {
		n := &a.nodes[i]
		from, to := min(max(n.added, start), now), min(n.removed, max(now, 0))
		hours := float64(max(to-from, 0)) / 3600
		totals.NodeHours += hours
		totals.Cost += hours * n.costPerHour
		added, removed = append(added, from), append(removed, to)
	}
	totals.NodesPeak = peak(added, removed)
	if a.placeholders != nil {
		totals.Slack = a.placeholders.kept.result(now)
	}
	return &totals
}

// peak returns the highest number of nodes that are added and removed at these seconds. Of changes at the same second,
// removals come first.
func peak(added, removed []int64) (highest int) {
	slices.Sort(added)
	slices.Sort(removed)
	for i, second := range added {
		gone, _ := slices.BinarySearch(removed, second+1)
		highest = max(highest, i+1-gone)
	}
	return highest
}
