package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

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
}

// shapesOf returns a shape for each instance type of the nodes of a pool.
func (s *summarizer) shapesOf(pool *Pool, nodes []*Node, classOf []int) (out []v1alpha1.ScaleUp) {
	type key struct {
		instance, price string
		class           int
	}
	members := map[key][]*Node{}
	for i, n := range nodes {
		if n.labels[pool.Label] == pool.Value && n.usable {
			k := key{n.labels[v1.LabelInstanceTypeStable], cmp.Or(pool.PricePerHour, n.price), classOf[i]}
			members[k] = append(members[k], n)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(members), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.class, b.class), cmp.Compare(a.price, b.price))
	}) {
		shape := v1alpha1.ScaleUp{
			Pool: pool.Name, Source: pool.Source, Class: int32(k.class), MaxNodes: pool.maxNodes(members[k]), PricePerHour: k.price,
		}
		if pool.BootSeconds >= 0 {
			shape.BootSeconds = new(pool.BootSeconds)
		}
		amounts := make([]int64, len(s.names))
		for i, r := range s.names {
			amounts[i] = math.MaxInt64
			for _, n := range members[k] {
				free := n.allocatable.get(r)
				if bound := s.bound[n.Name]; bound != nil {
					free -= bound.get(r)
				}
				amounts[i] = min(amounts[i], free)
			}
		}
		if shape.Free = s.listOf(amounts); shape.MaxNodes > 0 && len(shape.Free) > 0 {
			out = append(out, shape)
		}
	}
	return out
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
			largest = max(largest, node.capacity.get(r), node.allocatable.get(r))
		}
		if largest > 0 {
			n = min(n, r.Amount(left)/largest)
		}
	}
	return int32(n)
}
