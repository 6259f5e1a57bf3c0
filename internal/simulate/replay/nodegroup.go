package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/autoscale"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// NodeGroupLabel is on the nodes that an autoscaler makes; its value is the name of
// the group. Nodes of the input that have it are of the group.
const NodeGroupLabel = "plimsoll.dev/node-group"

// wholeGPU is what Kubernetes calls whole devices.
const wholeGPU v1.ResourceName = "nvidia.com/gpu"

// group is a node group at work.
type group struct {
	autoscale.GroupSpec
	// template of its nodes; kind of them, once there is a fit.
	template *v1.Node
	kind     int
	// has is what a node has for pods beside its daemons.
	has autoscale.Amounts
	// daemons come with each node; like is the node of the input that they are those
	// of, empty if there is none.
	daemons []int32
	like    string
	// nodes is how many there are or boot; made how many were ever made; input how
	// many nodes the input has.
	nodes, made, input int
}

// newGroups returns the groups of an autoscaler.
func newGroups(spec autoscale.Spec, nodes []Node) ([]group, error) {
	var groups []group
	for _, of := range spec.Groups {
		g := group{GroupSpec: of, input: len(nodes)}
		model := g.model(nodes)
		if model != nil {
			g.like = model.Name
		}
		switch {
		case of.Shape != autoscale.Shape{}:
			g.template = g.ofShape()
		case model == nil && of.Label != "":
			return nil, fmt.Errorf("%s: shape: found none, and no node of the input that takes pods has the label %s to go by", of.Name, of.Label)
		case model == nil:
			return nil, fmt.Errorf("%s: shape: found none, and no node of the input that takes pods to go by", of.Name)
		default:
			g.template = g.likeNode(model)
		}
		g.has = amountsOf(g.template.Status.Allocatable)
		groups = append(groups, g)
	}
	return groups, nil
}

// model returns the node of the input that the group's are like: of those with its
// label, if it has one, the first of the shape of which there are most. Nodes that
// are not for everybody's pods do not count.
func (g *group) model(nodes []Node) *v1.Node {
	counts := map[autoscale.Amounts]int{}
	var best *v1.Node
	most := 0
	for _, want := range []bool{false, true} { // counts first, then the first of the most
		for i := range nodes {
			node := nodes[i].Object
			if facts.IsControlPlane(node) || node.Spec.Unschedulable || g.Label != "" && !g.labelled(node) {
				continue
			}
			shape := amountsOf(node.Status.Allocatable)
			if !want {
				counts[shape]++
				most = max(most, counts[shape])
			} else if best == nil && counts[shape] == most {
				best = node
			}
		}
	}
	return best
}

// labelled reports whether a node has the label of the group.
func (g *group) labelled(node *v1.Node) bool {
	if name, ok := node.Labels[NodeGroupLabel]; ok && name == g.Name {
		return true
	}
	key, value, _ := strings.Cut(g.Label, "=")
	is, ok := node.Labels[key]
	return g.Label != "" && ok && is == value
}

// groupOf returns the group of a node of the input.
func groupOf(groups []group, node *v1.Node) int {
	return slices.IndexFunc(groups, func(g group) bool { return g.labelled(node) }) // noGroup is -1
}

// priceOf returns what a node costs per hour, if that is known: a node of no group
// costs what nodes like it do.
func priceOf(groups []group, priced bool, of int, has autoscale.Amounts) (float64, bool) {
	switch {
	case !priced:
		return 1, true
	case of != noGroup:
		return groups[of].Cost, true
	}
	for i := range groups {
		like := amountsOf(groups[i].template.Status.Allocatable)
		like[autoscale.Slots] = has[autoscale.Slots]
		if like == has {
			return groups[i].Cost, true
		}
	}
	return 0, false
}

// ofShape returns a node of the group's shape.
func (g *group) ofShape() *v1.Node {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(int64(g.Shape.Cores), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(int64(g.Shape.GiB)<<30, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	if g.Shape.GPUs > 0 {
		amounts[GPU] = *resource.NewQuantity(int64(g.Shape.GPUs)*1000, resource.DecimalSI)
		amounts[wholeGPU] = *resource.NewQuantity(int64(g.Shape.GPUs), resource.DecimalSI)
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}},
		Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
	if g.GPUModel != "" {
		node.Labels[gpuModel] = g.GPUModel
	}
	g.label(node)
	return node
}

// likeNode returns a node like one of the input, without what is that one's alone.
func (g *group) likeNode(model *v1.Node) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(model.Labels)},
		Status:     v1.NodeStatus{Capacity: model.Status.Capacity, Allocatable: model.Status.Allocatable},
	}
	for _, taint := range model.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") { // how that one is doing
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	g.label(node)
	return node
}

// label puts the labels of the group on a node.
func (g *group) label(node *v1.Node) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	delete(node.Labels, v1.LabelHostname)
	node.Labels[NodeGroupLabel] = g.Name
	if key, value, ok := strings.Cut(g.Label, "="); ok {
		node.Labels[key] = value
	}
}

// node makes a node.
func (g *group) node(name string) *v1.Node {
	node := *g.template
	node.Name = name
	node.Labels = maps.Clone(g.template.Labels)
	node.Labels[v1.LabelHostname] = name
	return &node
}

// takeDaemons takes over which pods come with each node of the group: the daemons
// of the node of the input that its nodes are like.
func (g *group) takeDaemons(pods []Pod, daemons map[int32]bool) {
	for i := range pods {
		if daemons[int32(i)] && g.like != "" && pods[i].Object.Spec.NodeName == g.like {
			g.daemons = append(g.daemons, int32(i))
			g.has = g.has.Minus(needsOf(&pods[i]))
		}
	}
}

// stays reports whether a pod does not want to be moved.
func stays(pod *v1.Pod) bool {
	return pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false" || pod.Annotations["karpenter.sh/do-not-disrupt"] == "true"
}

// amountsOf returns what a node has for pods.
func amountsOf(list v1.ResourceList) autoscale.Amounts {
	of := func(name v1.ResourceName) int64 { return noderes.NewResource(name).Amount(list[name]) }
	return autoscale.Amounts{of(v1.ResourceCPU), of(v1.ResourceMemory), of(GPU), of(v1.ResourcePods)}
}

// needsOf returns what a pod needs.
func needsOf(p *Pod) autoscale.Amounts { return withSlot(p.Needs) }

func withSlot(a trace.Amounts) autoscale.Amounts {
	return autoscale.Amounts{a.CPU, a.Memory, a.GPU, 1}
}
