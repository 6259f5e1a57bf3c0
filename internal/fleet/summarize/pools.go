package summarize

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

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
func (s *summarizer) shapesOf(pool *Pool, classes []nodeClass) (out []v1alpha1.ScaleUp) {
	type key struct {
		instance string
		class    int
		price    string
	}
	members := map[key][]*Node{}
	for class, c := range classes {
		for _, n := range c.nodes {
			if n.Label(pool.Label) == pool.Value && n.usable {
				k := key{n.Label(v1.LabelInstanceTypeStable), class, cleanPrice(cmp.Or(pool.PricePerHour, n.price))}
				members[k] = append(members[k], n)
			}
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
		lowest := make([]int64, len(s.names))
		for i, r := range s.names {
			lowest[i] = math.MaxInt64
			for _, n := range members[k] {
				lowest[i] = min(lowest[i], r.Amount(n.Allocatable[r.Name()])-s.Pods.sumsOn(n.Name).nodeBound.Get(r).Request)
			}
		}
		if shape.Free = s.listOf(lowest); shape.MaxNodes > 0 && len(shape.Free) > 0 {
			out = append(out, shape)
		}
	}
	return out
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
