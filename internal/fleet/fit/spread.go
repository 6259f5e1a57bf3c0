package fit

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// countSpread returns the number of pods that fit, given the number for one node of each group, if they are spread. If other pods may
// take the place of some, they are crowded. The result of several constraints depends on the order in which pods are scheduled: pods then
// count as crowded. With several constraints by other topologies than hosts, only the first pod surely violates none.
func (t *Template) countSpread(s *Summary, counts []int64, crowded bool) (total int64) {
	zonal := 0 // constraints by other topologies than hosts
	for i := range t.spread {
		if !isByHost(&t.spread[i]) {
			zonal++
		}
	}
	for i := range t.spread {
		others := zonal
		if !isByHost(&t.spread[i]) {
			others--
		}
		total = t.countSatisfying(s, i, counts, crowded || others > 0)
	}
	if zonal > 1 {
		return min(total, 1)
	}
	return total
}

// isByHost reports whether a constraint spreads over hosts.
func isByHost(c *v1.TopologySpreadConstraint) bool { return c.TopologyKey == v1.LabelHostname }

// domainCapacity is a number of equal domains with the pods that fit in each and those that are placed in each.
type domainCapacity struct {
	value                 string
	domains, pods, placed int64
}

// countWithinSkew returns the highest number of pods that a domain may have when the domain with the fewest is full, and the number of pods
// that then fit.
func countWithinSkew(c *v1.TopologySpreadConstraint, all []domainCapacity, domains int64, crowded bool) (most, total int64) {
	least := int64(math.MaxInt64)
	for _, d := range all {
		if crowded {
			d.pods = 0
		}
		least = min(least, d.placed+d.pods)
	}
	if domains < int64(ptr.Deref(c.MinDomains, 1)) {
		least = 0
	}
	most = resources.Add(least, int64(max(c.MaxSkew, 1)))
	for _, d := range all {
		total += d.domains * min(d.pods, max(most-d.placed, 0))
	}
	return most, total
}

// countSatisfying returns the number of pods that fit if they satisfy a constraint. For a constraint by host, it lowers the numbers of pods
// of each node.
//
// Every order in which pods are scheduled ends when the domain with the fewest pods is full: a domain then has at most maxSkew pods
// more than the domain with the fewest when it is full. No domain counts as filled if pods are crowded or domains are unknown.
func (t *Template) countSatisfying(s *Summary, constraint int, counts []int64, crowded bool) int64 {
	c := &t.spread[constraint]
	byHost := isByHost(c)
	var all []domainCapacity
	domains, local := int64(0), s.local[t]
	for i := range s.classes {
		nodes, groups := s.classes[i].groupsIn(s.nodes), s.classes[i].groupsIn(counts)
		d := t.matchClass(s.classes[i].key).domains[constraint]
		switch {
		case byHost && d.isUnknown: // each host is a domain
			for j, n := range groups {
				all, domains = append(all, domainCapacity{"", nodes[j], n, 0}), domains+nodes[j]
			}
		case d.isNone || d.isUnknown || byHost && local == nil:
			crowded = crowded || d.isUnknown
			clear(groups) // such nodes take no pods
		default:
			at := slices.IndexFunc(all, func(other domainCapacity) bool { return other.value == d.value })
			if at < 0 {
				at, all, domains = len(all), append(all, domainCapacity{d.value, 1, 0, 0}), domains+1
			}
			for j, n := range groups {
				all[at].pods += n * nodes[j]
				all[at].placed += local.placedOn(constraint, s.classes[i].from+j)
			}
		}
	}
	most, total := countWithinSkew(c, all, domains, crowded)
	for i := range counts {
		if byHost {
			counts[i] = min(counts[i], max(most-local.placedOn(constraint, i), 0))
		}
	}
	return total
}
