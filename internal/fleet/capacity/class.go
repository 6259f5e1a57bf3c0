package capacity

import (
	"maps"
	"slices"
	"strings"
	"unique"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
)

// class is a NodeClass as text, so that equal classes of all clusters are one value.
type class = unique.Handle[string]

// Separators of the texts of classes, which labels and taints do not contain.
const (
	partEnd = "\x00"
	listEnd = "\x01"
)

// keyOf returns a class as text.
func keyOf(c *v1alpha1.NodeClass) string {
	var key strings.Builder
	add := func(parts ...string) {
		for _, part := range parts {
			key.WriteString(part)
			key.WriteString(partEnd)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		add(name, c.Labels[name])
	}
	key.WriteString(listEnd)
	add(c.VariousLabels...)
	key.WriteString(listEnd)
	for _, t := range c.Taints {
		add(t.Key, t.Value, string(t.Effect))
	}
	return key.String()
}

// parseClass returns the class of a text of keyOf.
func parseClass(key string) (c v1alpha1.NodeClass) {
	lists := strings.SplitN(key, listEnd, 3)
	parts := func(i int) []string {
		all := strings.Split(lists[i], partEnd)
		return all[:len(all)-1]
	}
	c.Labels = map[string]string{}
	for pair := range slices.Chunk(parts(0), 2) {
		c.Labels[pair[0]] = pair[1]
	}
	c.VariousLabels = parts(1)
	for t := range slices.Chunk(parts(2), 3) {
		c.Taints = append(c.Taints, v1alpha1.Taint{Key: t[0], Value: t[1], Effect: v1.TaintEffect(t[2])})
	}
	return c
}
