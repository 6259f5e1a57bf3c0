package summarize

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unique"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
)

// maxValues is the number of values of a label above which the label distinguishes no classes. Names of hosts and machines have as
// many values as there are nodes.
const maxValues = 64

// nodeClass is a NodeClass with its nodes, and the class as JSON.
type nodeClass struct {
	v1alpha1.NodeClass

	text  string
	nodes []*Node
}

// divideByClass divides nodes into at most limit classes of equal taints and labels. Labels are ignored, those with the most values first,
// until there are no more classes than that. The classes are in the order of their size, then of their labels and taints.
func divideByClass(nodes []*Node, limit int) (classes []nodeClass) {
	values, seen := map[string]int{}, map[unique.Handle[label]]bool{} // values has the number of values of each label
	for _, n := range nodes {
		for _, l := range n.labels {
			if !seen[l] {
				seen[l] = true
				values[l.Value().key]++
			}
		}
	}
	delete(values, v1.LabelHostname)
	maps.DeleteFunc(values, func(_ string, count int) bool { return count > maxValues })
	parts := divideBy([][]*Node{withoutRareTaints(nodes, limit)}, taintsOf)
	for _, key := range slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[a], values[b]), cmp.Compare(a, b))
	}) {
		next := divideBy(parts, func(n *Node) label {
			value, found := n.findLabel(key)
			if !found {
				return label{}
			}
			return label{key, value}
		})
		if len(next) > limit {
			break
		}
		parts = next
	}
	for _, part := range parts {
		c := labelsOf(part)
		if len(c.VariousLabels) > v1alpha1.MaxVariousLabels || len(c.Taints) > v1alpha1.MaxTaints {
			c = v1alpha1.NodeClass{} // the hub refuses longer lists
			for i, n := range part {
				part[i] = n.withoutCapacity()
			}
		}
		text, _ := json.Marshal(c) // of strings
		classes = append(classes, nodeClass{c, string(text), part})
	}
	slices.SortFunc(classes, func(a, b nodeClass) int {
		return cmp.Or(cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(a.text, b.text))
	})
	return classes
}

// divideBy divides each part of the nodes into the nodes with equal keys.
func divideBy[K comparable](parts [][]*Node, keyOf func(*Node) K) (out [][]*Node) {
	type partKey struct {
		part int
		key  K
	}
	indexes := map[partKey]int{}
	for i, part := range parts {
		for _, n := range part {
			key := partKey{i, keyOf(n)}
			index, known := indexes[key]
			if !known {
				index = len(out)
				indexes[key], out = index, append(out, nil)
			}
			out[index] = append(out[index], n)
		}
	}
	return out
}

// taintsOf returns the taints of a node as a text.
func taintsOf(n *Node) string {
	var text strings.Builder
	for _, t := range n.taints {
		text.WriteString(t.ToString() + ",")
	}
	return text.String()
}

// withoutRareTaints returns the nodes with less than limit different taints: nodes with rarer taints are without taints, but unusable.
func withoutRareTaints(nodes []*Node, limit int) []*Node {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[taintsOf(n)]++
	}
	delete(counts, "")
	if len(counts) < limit {
		return nodes
	}
	rare := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})[limit-1:]
	out := slices.Clone(nodes)
	for i, n := range nodes {
		if slices.Contains(rare, taintsOf(n)) {
			out[i] = n.withoutCapacity()
		}
	}
	return out
}

// withoutCapacity returns the node as if it had no taints and took no pods.
func (n *Node) withoutCapacity() *Node {
	out := *n
	out.taints, out.usable = nil, false
	return &out
}

// labelsOf returns the labels that all nodes have, the keys of all other labels, and the taints of the nodes.
func labelsOf(nodes []*Node) v1alpha1.NodeClass {
	counts := map[unique.Handle[label]]int{}
	for _, n := range nodes {
		for _, l := range n.labels {
			counts[l]++
		}
	}
	common, differing := map[string]string{}, map[string]bool{}
	for l, count := range counts {
		if text := l.Value(); count == len(nodes) && text.key != v1.LabelHostname {
			common[text.key] = text.value
		} else {
			differing[text.key] = true
		}
	}
	return v1alpha1.NodeClass{Labels: common, VariousLabels: slices.Sorted(maps.Keys(differing)), Taints: nodes[0].taints}
}
