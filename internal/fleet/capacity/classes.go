package capacity

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
)

// maxValues is the number of values of a label above which the label distinguishes no classes. Names of hosts and machines have as
// many values as there are nodes.
const maxValues = 64

// labelTable has the values of the labels of nodes as numbers, so that nodes are compared fast.
type labelTable struct {
	keys []string // sorted
	// values are the names of the values of each key; number 0 means that the node does not have the label.
	values [][]string
	// rows have the number of the value of each key by node.
	rows [][]int32
}

func newLabelTable(nodes []*Node) *labelTable {
	keys := map[string]int{}
	for _, n := range nodes {
		for key := range n.labels {
			keys[key] = 0
		}
	}
	t := &labelTable{keys: slices.Sorted(maps.Keys(keys))}
	for i, key := range t.keys {
		keys[key] = i
	}
	t.values = make([][]string, len(t.keys))
	numbers := make([]map[string]int32, len(t.keys))
	all := make([]int32, len(nodes)*len(t.keys))
	for i, n := range nodes {
		row := all[i*len(t.keys) : (i+1)*len(t.keys)]
		for key, value := range n.labels {
			k := keys[key]
			number, known := numbers[k][value]
			if !known {
				if numbers[k] == nil {
					numbers[k], t.values[k] = map[string]int32{}, []string{""}
				}
				number = int32(len(t.values[k]))
				numbers[k][value], t.values[k] = number, append(t.values[k], value)
			}
			row[k] = number
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// classify divides nodes into at most limit classes of equal labels and taints. Labels are ignored, those with the most values first,
// until there are no more classes than that; the nodes with the rarest taints are unusable if even that does not suffice. It
// returns the class of each node, and the classes.
func classify(nodes []*Node, limit int) (numbers []int, classes []v1alpha1.NodeClass) {
	t := newLabelTable(nodes)
	kept := make([]int, 0, len(t.keys))
	for k := range t.keys {
		if t.keys[k] != v1.LabelHostname && len(t.values[k]) <= maxValues {
			kept = append(kept, k)
		}
	}
	// The label with the most values is the last; ties by key.
	slices.SortStableFunc(kept, func(a, b int) int { return cmp.Compare(len(t.values[a]), len(t.values[b])) })
	taintsOf := taintSets(nodes)
	for {
		members := map[string][]int{}
		var key []byte
		for i := range nodes {
			key = appendInt(key[:0], taintsOf[i])
			for _, k := range kept {
				key = appendInt(key, t.rows[i][k])
			}
			members[string(key)] = append(members[string(key)], i)
		}
		if len(members) <= limit || len(kept) == 0 {
			return t.describe(nodes, slices.Collect(maps.Values(members)), limit)
		}
		kept = kept[:len(kept)-1]
	}
}

// appendInt appends a number to a key.
func appendInt(key []byte, n int32) []byte {
	return append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}

// taintSets returns the number of the taints of each node: equal taints have equal numbers.
func taintSets(nodes []*Node) []int32 {
	out, numbers := make([]int32, len(nodes)), map[string]int32{}
	for i, n := range nodes {
		key := classOf(&v1alpha1.NodeClass{Taints: n.taints}).Value()
		number, known := numbers[key]
		if !known {
			number = int32(len(numbers))
			numbers[key] = number
		}
		out[i] = number
	}
	return out
}

// describe returns the class of each node, and the labels and taints of the classes, in an order that depends on them alone. Nodes
// beyond the limit, in the smallest classes, become unusable members of a class without taints.
func (t *labelTable) describe(nodes []*Node, members [][]int, limit int) (numbers []int, classes []v1alpha1.NodeClass) {
	type class struct {
		v1alpha1.NodeClass

		key     string
		members []int
	}
	all := make([]class, 0, len(members))
	for _, list := range members {
		c := class{NodeClass: t.labelsOf(list), members: list}
		c.Taints = nodes[list[0]].taints
		c.key = classOf(&c.NodeClass).Value()
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b class) int {
		return cmp.Or(cmp.Compare(len(b.members), len(a.members)), cmp.Compare(a.key, b.key))
	})
	if len(all) > limit {
		var rest []int
		for _, c := range all[limit-1:] {
			rest = append(rest, c.members...)
		}
		for _, i := range rest {
			unusable := *nodes[i]
			unusable.usable, nodes[i] = false, &unusable
		}
		all = append(all[:limit-1], class{NodeClass: t.labelsOf(rest), members: rest})
	}
	numbers = make([]int, len(nodes))
	for i, c := range all {
		for _, n := range c.members {
			numbers[n] = i
		}
		classes = append(classes, c.NodeClass)
	}
	return numbers, classes
}

// labelsOf returns the labels that all nodes of a list have, and the keys of all other labels.
func (t *labelTable) labelsOf(list []int) (out v1alpha1.NodeClass) {
	for k, key := range t.keys {
		first, equal, found := t.rows[list[0]][k], true, false
		for _, i := range list {
			equal = equal && t.rows[i][k] == first
			found = found || t.rows[i][k] != 0
		}
		switch {
		case found && equal && key != v1.LabelHostname:
			if out.Labels == nil {
				out.Labels = map[string]string{}
			}
			out.Labels[key] = t.values[k][first]
		case found:
			out.VariousLabels = append(out.VariousLabels, key)
		}
	}
	return out
}
