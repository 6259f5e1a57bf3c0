package summarize

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// partition is a list of nodes of one class that become one group.
type partition struct {
	class int
	// nodes are the amounts of each node, and lowest the lowest of each.
	nodes  [][]int64
	lowest []int64
	// gain is how much less is lost if the partition is divided: into the nodes before and after position at in the order of amount by.
	gain   float64
	by, at int
}

// newPartition returns a partition with its gain. Each node of a group has the lowest amounts of the group: what it has in excess is lost.
// Weights are the weights of lost amounts.
func newPartition(class int, nodes [][]int64, weights []float64) *partition {
	c := &partition{class: class, nodes: nodes, lowest: make([]int64, len(weights))}
	for by, weight := range weights {
		c.sortBy(by)
		c.lowest[by] = nodes[0][by]
		for at, amounts := range nodes {
			gain := weight * float64(amounts[by]-c.lowest[by]) * float64(len(nodes)-at)
			if gain > c.gain {
				c.gain, c.by, c.at = gain, by, at
			}
		}
	}
	return c
}

// sortBy sorts the nodes by an amount.
func (c *partition) sortBy(by int) {
	slices.SortFunc(c.nodes, func(a, b []int64) int { return cmp.Compare(a[by], b[by]) })
}

// dividePartitions divides the nodes of classes into at most limit partitions, at least one for each class: at first the partition
// that loses the most, where this loses the least. The partitions are in the order of their classes and amounts.
func dividePartitions(classes [][][]int64, weights []float64, limit int) (partitions []*partition) {
	for class, nodes := range classes {
		slices.SortFunc(nodes, slices.Compare) // the result does not depend on the order of nodes
		partitions = append(partitions, newPartition(class, nodes, weights))
	}
	for len(partitions) < limit {
		c := slices.MaxFunc(partitions, func(a, b *partition) int { return cmp.Compare(a.gain, b.gain) })
		if c.gain == 0 {
			break
		}
		c.sortBy(c.by)
		partitions = append(partitions, newPartition(c.class, c.nodes[c.at:], weights))
		*c = *newPartition(c.class, c.nodes[:c.at], weights)
	}
	slices.SortFunc(partitions, func(a, b *partition) int {
		return cmp.Or(cmp.Compare(a.class, b.class), slices.Compare(a.lowest, b.lowest), cmp.Compare(len(a.nodes), len(b.nodes)))
	})
	return partitions
}

// groupsOf returns the groups of the nodes of classes.
func (s *summarizer) groupsOf(classes []nodeClass, limit int) (out []v1alpha1.NodeGroup) {
	if len(classes) == 0 {
		return nil
	}
	rows := make([][][]int64, len(classes))
	for i, c := range classes {
		for _, n := range c.nodes {
			rows[i] = append(rows[i], s.freeAmounts(n))
		}
	}
	count := len(s.names)
	for _, c := range dividePartitions(rows, s.weightsOf(rows), limit) {
		group := v1alpha1.NodeGroup{Class: int32(c.class), Nodes: int32(len(c.nodes)), Free: s.listOf(c.lowest[:count])}
		if s.hasSlack {
			for i := range count {
				c.lowest[count+i] -= c.lowest[i]
			}
			group.Slack = s.listOf(c.lowest[count:])
		}
		out = append(out, group)
	}
	return out
}

// freeAmounts returns what pods leave free on a node of each resource, and then, if the cluster has slack, what all pods but placeholders
// leave: at least 0, and 0 if the node takes no pods.
func (s *summarizer) freeAmounts(n *Node) []int64 {
	count, sums := len(s.names), s.Pods.sumsOn(n.Name)
	out := make([]int64, 2*count)
	for i, r := range s.names {
		if n.usable {
			out[count+i] = max(r.Amount(n.Allocatable[r.Name()])-sums.pods.Get(r).Request, 0)
			out[i] = max(out[count+i]-sums.placeholders.Get(r).Request, 0)
		}
	}
	if !s.hasSlack {
		return out[:count]
	}
	return out
}

// Weights of lost amounts. CPU and memory limit most pods; the numbers of pods and storage rarely do.
const (
	commonWeight = 1
	rareWeight   = 0.001
)

// weightsOf returns the weights of the amounts of nodes: a share of the total amount of a resource has the weight of its kind.
func (s *summarizer) weightsOf(classes [][][]int64) []float64 {
	nodes := slices.Concat(classes...)
	out := make([]float64, len(nodes[0]))
	for by := range out {
		total := 0.0
		for _, amounts := range nodes {
			total += float64(amounts[by])
		}
		weight := float64(commonWeight)
		if index := s.names[by%len(s.names)].Index(); index == resources.Pods || index == resources.EphemeralStorage {
			weight = rareWeight
		}
		out[by] = weight / max(total, 1)
	}
	return out
}

// listOf returns the amounts above 0 of the resources of the cluster.
func (s *summarizer) listOf(amounts []int64) v1.ResourceList {
	out := v1.ResourceList{}
	for i, r := range s.names {
		switch {
		case amounts[i] <= 0:
		case r == resources.CPUResource:
			out[r.Name()] = *resource.NewMilliQuantity(amounts[i], resource.DecimalSI)
		case r == resources.MemoryResource, r == resources.EphemeralStorageResource:
			out[r.Name()] = *resource.NewQuantity(amounts[i], resource.BinarySI)
		default:
			out[r.Name()] = *resource.NewQuantity(amounts[i], resource.DecimalSI)
		}
	}
	return out
}
