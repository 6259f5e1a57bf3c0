package summarize

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Sources of pools.
const (
	SourceKarpenter         = "Karpenter"
	SourceClusterAutoscaler = "ClusterAutoscaler"
)

// maxPoolNodes is the number of nodes that a pool without limits can add.
const maxPoolNodes = 1000

// Pool is a pool of nodes of an autoscaler. New nodes have the shapes that the pool's nodes have now: neither Karpenter nor Cluster
// Autoscaler says which shapes there are otherwise.
type Pool struct {
	Name, Source string
	// Zone is the zone of new nodes. If it is empty, Karpenter selects the zone that pods need, and with Cluster Autoscaler it is unknown.
	Zone string
	// Nodes are the nodes of the pool: those with a label.
	Label, Value string
	// Left is the part of the limit of the pool that is not used, by resource; a missing resource has no limit.
	Left v1.ResourceList
	// MaxNodes is the maximum number of further nodes, negative if there is no limit.
	MaxNodes int32
	// BootSeconds is negative if it is unknown.
	BootSeconds int32
	// PricePerHour is the price of each node, "" if nodes have their own.
	PricePerHour string
	// Template is a new node, nil if new nodes are like the ones with the label. The pods of DaemonSets on the node with its name are on
	// each new node.
	Template *Node
}

// has reports whether a node is usable and in the pool.
func (p *Pool) has(n *Node) bool {
	return n.Label(p.Label) == p.Value && n.usable && (p.Zone == "" || n.Label(v1.LabelTopologyZone) == p.Zone)
}

// addShapes adds a shape for each instance type of the nodes of a pool to the summary. The nodes are in the classes with their index.
func (s *summarizer) addShapes(out *v1alpha1.ClusterCapacityStatus, pool *Pool, classes []nodeClass) {
	type key struct {
		instance string
		class    int
		price    string
	}
	members, taints := map[key][]*Node{}, map[string]int{}
	if pool.Template != nil {
		classes, members[key{price: cleanPrice(pool.PricePerHour)}] = nil, []*Node{pool.Template}
	}
	for class, c := range classes {
		for _, n := range c.nodes {
			if !pool.has(n) {
				continue
			}
			k := key{n.Label(v1.LabelInstanceTypeStable), class, cleanPrice(cmp.Or(pool.PricePerHour, n.price))}
			if pool.Source == SourceClusterAutoscaler { // labels that differ between the nodes are not known of new ones
				text := taintsOf(n)
				if _, known := taints[text]; !known {
					taints[text] = class
				}
				k.class = taints[text]
			}
			members[k] = append(members[k], n)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(members), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.class, b.class), cmp.Compare(a.price, b.price))
	}) {
		like, class := members[k], k.class
		if pool.Source == SourceClusterAutoscaler {
			if class = s.addClassOfNewNodes(out, pool, like); class < 0 {
				continue
			}
		}
		shape := v1alpha1.ScaleUp{
			Pool: pool.Name, Source: pool.Source, Class: int32(class), MaxNodes: pool.maxNodes(like), PricePerHour: k.price,
		}
		if pool.BootSeconds >= 0 {
			shape.BootSeconds = new(pool.BootSeconds)
		}
		if shape.Free = s.listOf(s.lowestFree(like)); shape.MaxNodes > 0 && len(shape.Free) > 0 {
			out.ScaleUp = append(out.ScaleUp, shape)
		}
	}
}

// lowestFree returns the lowest amount of each resource that the pods of DaemonSets leave on nodes.
func (s *summarizer) lowestFree(nodes []*Node) []int64 {
	lowest := make([]int64, len(s.names))
	for i, r := range s.names {
		lowest[i] = math.MaxInt64
		for _, n := range nodes {
			lowest[i] = min(lowest[i], r.Amount(n.Allocatable[r.Name()])-s.Pods.sumsOn(n.Name).nodeBound.Get(r).Request)
		}
	}
	return lowest
}

// addClassOfNewNodes adds the class of new nodes that are like the given ones to the summary, unless it has the class, and returns its
// index; -1 if the hub would refuse the class.
func (s *summarizer) addClassOfNewNodes(out *v1alpha1.ClusterCapacityStatus, pool *Pool, like []*Node) int {
	class := labelsOf(like)
	inOtherZone := func(n *Node) bool { return n.Label(v1.LabelTopologyZone) != like[0].Label(v1.LabelTopologyZone) }
	if pool.Zone == "" && slices.ContainsFunc(s.Nodes, inOtherZone) {
		for key := range class.Labels {
			if strings.HasSuffix(key, "/zone") {
				delete(class.Labels, key)
				class.VariousLabels = append(class.VariousLabels, key)
			}
		}
		slices.Sort(class.VariousLabels)
	}
	i := slices.IndexFunc(out.Classes, func(c v1alpha1.NodeClass) bool { return equality.Semantic.DeepEqual(c, class) })
	if i < 0 && len(class.VariousLabels) <= v1alpha1.MaxVariousLabels && (len(out.Classes) < v1alpha1.MaxClasses || pool.Template != nil) {
		i, out.Classes = len(out.Classes), append(out.Classes, class)
	}
	return i
}

// cleanPrice returns a price with at most six digits after the point, "" for a text that is no price: with it, the hub would refuse the
// whole summary.
func cleanPrice(text string) string {
	price, err := v1alpha1.ParsePrice(text)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(float64(price)/1e6, 'f', -1, 64)
}

// maxNodes returns how many nodes like the given ones the limits of the pool permit.
func (p *Pool) maxNodes(like []*Node) int32 {
	n := int64(maxPoolNodes)
	if p.MaxNodes >= 0 {
		n = min(n, int64(p.MaxNodes))
	}
	for name, left := range p.Left {
		r := resources.NewResource(name)
		largest := int64(0)
		for _, node := range like {
			largest = max(largest, r.Amount(node.Capacity[name]), r.Amount(node.Allocatable[name]))
		}
		if largest > 0 {
			n = min(n, r.Amount(left)/largest)
		}
	}
	return int32(n)
}
