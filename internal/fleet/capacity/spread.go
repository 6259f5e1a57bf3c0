package capacity

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// domain is the capacity of a domain of a spread constraint.
type domain struct {
	value string
	pods  int64
}

// spreadOver returns the number of pods that fit, given the number for one node of each group, if they are spread. Every order in
// which pods are scheduled ends when the domain with the fewest pods is full: a domain then has at most maxSkew pods more than the
// domain with the least capacity. If other pods may take the place of some, the least capacity counts as 0.
func (t *Template) spreadOver(s *Summary, counts []int64, crowded bool) int64 {
	var other []*spread
	for i := range t.spread {
		c := &t.spread[i]
		if c.key != v1.LabelHostname {
			other = append(other, c)
		}
	}
	for i := range t.spread {
		if c := &t.spread[i]; c.key == v1.LabelHostname {
			t.spreadOverHosts(s, counts, c, crowded || len(other) > 0)
		}
	}
	switch len(other) {
	case 0:
		total := int64(0)
		for i, n := range counts {
			total += n * s.nodes[i]
		}
		return total
	case 1:
		return t.spreadOverDomains(s, counts, other[0], crowded)
	}
	// The result of several constraints depends on the order in which pods are scheduled. The first pod violates none.
	for _, c := range other {
		if t.spreadOverDomains(s, counts, c, true) == 0 {
			return 0
		}
	}
	return 1
}

// isDomain reports whether nodes of a class can be domains of a constraint. Such nodes that take no pods have a capacity of 0.
func (t *Template) isDomain(c class, constraint *spread) bool {
	m := t.match(c)
	return (!constraint.honorsTaints || m&tolerated != 0) && (!constraint.honorsAffinity || m&(selected|maySelect) != 0)
}

// spreadOverHosts limits the numbers of pods of each node.
func (t *Template) spreadOverHosts(s *Summary, counts []int64, c *spread, crowded bool) {
	least, hosts := int64(math.MaxInt64), int64(0)
	for i := range s.classes {
		groups := counts[s.classes[i].from:s.classes[i].to]
		if nodes := parseClass(s.classes[i].Value()); !slices.Contains(nodes.VariousLabels, c.key) {
			clear(groups) // nodes without the label take no pods
			continue
		}
		if !t.isDomain(s.classes[i].class, c) {
			continue
		}
		for j, n := range groups {
			least, hosts = min(least, n), hosts+s.nodes[s.classes[i].from+j]
		}
	}
	if crowded || hosts < c.minDomains || hosts == 0 {
		least = 0
	}
	for i := range counts {
		counts[i] = min(counts[i], least+c.maxSkew)
	}
}

// spreadOverDomains returns the number of pods that fit if they are spread over the values of a label. Nodes whose value is unknown
// take no pods, and may be domains without capacity.
func (t *Template) spreadOverDomains(s *Summary, counts []int64, c *spread, crowded bool) (total int64) {
	var domains []domain
	for i := range s.classes {
		if !t.isDomain(s.classes[i].class, c) {
			continue
		}
		nodes := parseClass(s.classes[i].Value())
		if slices.Contains(nodes.VariousLabels, c.key) {
			crowded = true
			continue
		}
		value, has := nodes.Labels[c.key]
		if !has {
			continue
		}
		at := slices.IndexFunc(domains, func(d domain) bool { return d.value == value })
		if at < 0 {
			at, domains = len(domains), append(domains, domain{value: value})
		}
		for j := s.classes[i].from; j < s.classes[i].to; j++ {
			domains[at].pods += counts[j] * s.nodes[j]
		}
	}
	least := int64(math.MaxInt64)
	for _, d := range domains {
		least = min(least, d.pods)
	}
	if crowded || int64(len(domains)) < c.minDomains {
		least = 0
	}
	for _, d := range domains {
		total += min(d.pods, resources.Add(least, c.maxSkew))
	}
	return total
}
