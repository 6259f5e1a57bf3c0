package scaling

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// nodeGroupLabel is the label of nodes with the name of their group. Nodes of the
// input with this label belong to the group.
const nodeGroupLabel = "plimsoll.dev/node-group"

// nodeGroup is the state of a node group.
type nodeGroup struct {
	spec GroupSpec
	// template of its nodes, and their kind.
	template *v1.Node
	kind     int
	// allocatable of a new node, less its DaemonSet pods.
	allocatable resources.Amounts
	// model is the name of the input node that the group's nodes are copies of, empty if there is
	// none. daemonPods are the numbers of its DaemonSet pods: each node gets a copy of them.
	model      string
	daemonPods []int32
	// size is the number of nodes, including booting nodes. lastName is the number in the name of
	// the newest node.
	size, lastName int
}

// newGroups returns the groups of an autoscaler.
func newGroups(spec Spec, nodes []recording.Node) ([]nodeGroup, error) {
	var groups []nodeGroup
	for _, groupSpec := range spec.Groups {
		g := nodeGroup{spec: groupSpec}
		model := g.findModel(nodes)
		if model != nil {
			g.model = model.Name
		}
		switch {
		case groupSpec.Shape != generate.NodeShape{}:
			g.template = g.templateOfShape(model)
		case model == nil && groupSpec.Label != "":
			return nil, fmt.Errorf("%s: shape: required, as the input has no schedulable node with the label %s to copy it from",
				groupSpec.Name, groupSpec.Label)
		case model == nil:
			return nil, fmt.Errorf("%s: shape: required, as the input has no schedulable node to copy it from", groupSpec.Name)
		default:
			g.template = g.templateOfNode(model)
		}
		g.allocatable = allocatable(g.template)
		groups = append(groups, g)
	}
	return groups, nil
}

// findModel returns the input node that the nodes of the group are copies of, nil if there is none: the first node of the kind with the
// most schedulable nodes, one without taints if there is any. Nodes of a kind have the same system, type and taints, and sizes within
// 1.5 %, as in Cluster Autoscaler. Virtual nodes are left out and, if the group has a label, nodes without it.
func (g *nodeGroup) findModel(nodes []recording.Node) *v1.Node {
	type kind struct {
		node          *v1.Node
		taints        []v1.Taint
		isOpen, nodes int
	}
	var kinds []kind
	for i := range nodes {
		node := nodes[i].Object
		if isVirtual(node) || node.Spec.Unschedulable || g.spec.Label != "" && !g.contains(node) {
			continue
		}
		taints := lastingTaints(node)
		isSame := func(k kind) bool { return isSimilar(k.node, node) && slices.Equal(k.taints, taints) }
		found := slices.IndexFunc(kinds, isSame)
		if found < 0 {
			found = len(kinds)
			kinds = append(kinds, kind{node: node, taints: taints})
			if !slices.ContainsFunc(taints, func(t v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }) {
				kinds[found].isOpen = 1
			}
		}
		kinds[found].nodes++
	}
	if len(kinds) == 0 {
		return nil
	}
	return slices.MaxFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(a.isOpen, b.isOpen), cmp.Compare(a.nodes, b.nodes)) }).node
}

// isVirtual reports whether a node is none that an autoscaler adds.
func isVirtual(node *v1.Node) bool {
	return node.Labels["type"] == "virtual-kubelet" || node.Labels["eks.amazonaws.com/compute-type"] == "fargate"
}

// isSimilar reports whether two nodes have the same system and type, and almost the same size.
func isSimilar(a, b *v1.Node) bool {
	for _, label := range []string{v1.LabelOSStable, v1.LabelArchStable, v1.LabelInstanceTypeStable} {
		if a.Labels[label] != b.Labels[label] {
			return false
		}
	}
	x, y := allocatable(a), allocatable(b)
	isClose := func(x, y int64) bool { return math.Abs(float64(x-y)) <= 0.015*float64(max(x, y)) }
	hasSize := isClose(x.CPU, y.CPU) && isClose(x.Memory, y.Memory)
	x.CPU, x.Memory = y.CPU, y.Memory
	return hasSize && x == y
}

// passingTaints begin the keys of taints of the start, the condition and the end of nodes.
var passingTaints = []string{
	"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "startup-taint.cluster-autoscaler.kubernetes.io/",
	"ignore-taint.cluster-autoscaler.kubernetes.io/", "karpenter.sh/unregistered",
}

// lastingTaints returns the taints of a node without those that it has for a time only.
func lastingTaints(node *v1.Node) []v1.Taint {
	var lasting []v1.Taint
	for _, t := range node.Spec.Taints {
		isPassing := func(begin string) bool { return strings.HasPrefix(t.Key, begin) }
		if t.TimeAdded = nil; !resources.IsScaleDownTaint(t.Key) && !strings.HasSuffix(t.Key, "not-ready") &&
			!slices.ContainsFunc(passingTaints, isPassing) {
			lasting = append(lasting, t)
		}
	}
	return lasting
}

// contains reports whether a node of the input has the label of the group.
func (g *nodeGroup) contains(node *v1.Node) bool {
	if name, ok := node.Labels[nodeGroupLabel]; ok && name == g.spec.Name {
		return true
	}
	key, value, _ := strings.Cut(g.spec.Label, "=")
	actual, ok := node.Labels[key]
	return g.spec.Label != "" && ok && actual == value
}

// NewNodes returns a node that each group can add to nodes, with the name of the node that it is a copy of, and how many.
func (s Spec) NewNodes(nodes []*v1.Node) (added []*v1.Node, most []int32, err error) {
	var input []recording.Node
	for _, n := range nodes {
		input = append(input, recording.Node{Object: n})
	}
	groups, err := newGroups(s, input)
	for i := range groups {
		g := &groups[i]
		for _, n := range nodes {
			if groupOf(groups, n) == i {
				g.size++
			}
		}
		g.template.Name = g.model
		added, most = append(added, g.template), append(most, int32(max(g.spec.Max-g.size, 0)))
	}
	return added, most, err
}

// groupOf returns the group of a node of the input, autoscaler.NoGroup if it belongs to none.
func groupOf(groups []nodeGroup, node *v1.Node) int {
	if i := slices.IndexFunc(groups, func(g nodeGroup) bool { return g.contains(node) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(groups, func(g nodeGroup) bool { // -1 is NoGroup
		isControlPlane := slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == resources.ControlPlaneLabel })
		return g.spec.AdoptOthers && !isControlPlane && !isVirtual(node) && !node.Spec.Unschedulable
	})
}

// templateOfShape returns a node of the group's shape, with what the shape does not state from a node of the input, if there is one: pods,
// storage and devices but GPUs.
func (g *nodeGroup) templateOfShape(model *v1.Node) *v1.Node {
	shape := g.spec.Shape
	node := generate.NewNode("", resources.Amounts{
		CPU: int64(shape.Cores) * 1000, Memory: int64(shape.GiB) << 30,
		Extended: resources.ExtendedAmounts{}.With(generate.GPU, int64(shape.GPUs)),
	}).Object
	node.Labels[v1.LabelOSStable], node.Labels[v1.LabelArchStable] = "linux", "amd64"
	if g.spec.GPUModel != "" {
		node.Labels[generate.GPUModelLabel] = g.spec.GPUModel
	}
	if model != nil {
		for name, amount := range model.Status.Allocatable {
			if name != v1.ResourceCPU && name != v1.ResourceMemory && !strings.HasSuffix(string(name), "/gpu") {
				node.Status.Allocatable[name], node.Status.Capacity[name] = amount, amount
			}
		}
	}
	g.setLabels(node)
	return node
}

// templateOfNode returns a copy of a node of the input without its identity and its
// condition.
func (g *nodeGroup) templateOfNode(model *v1.Node) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(model.Labels)},
		Status:     v1.NodeStatus{Capacity: model.Status.Capacity, Allocatable: model.Status.Allocatable},
	}
	node.Spec.Taints = lastingTaints(model)
	g.setLabels(node)
	return node
}

// setLabels sets the labels of the group on a node.
func (g *nodeGroup) setLabels(node *v1.Node) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	delete(node.Labels, v1.LabelHostname)
	node.Labels[nodeGroupLabel] = g.spec.Name
	if key, value, ok := strings.Cut(g.spec.Label, "="); ok {
		node.Labels[key] = value
	}
}

// node returns a new node.
func (g *nodeGroup) node(name string) *v1.Node {
	node := *g.template
	node.Name = name
	node.Labels = maps.Clone(g.template.Labels)
	node.Labels[v1.LabelHostname] = name
	return &node
}

// adoptDaemonPods finds the DaemonSet pods of the model node.
func (g *nodeGroup) adoptDaemonPods(pods []recording.InputPod) {
	if g.model == "" {
		return
	}
	for i := range pods {
		if pods[i].Object.Spec.NodeName == g.model && resources.IsNodeBound(pods[i].Object) {
			g.daemonPods = append(g.daemonPods, int32(i))
			g.allocatable = g.allocatable.Minus(pods[i].Requests)
		}
	}
}

// allocatable returns the allocatable amounts of a node.
func allocatable(node *v1.Node) resources.Amounts { return recording.Amounts(node.Status.Allocatable) }
