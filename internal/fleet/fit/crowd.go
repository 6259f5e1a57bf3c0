package fit

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// crowd are the pods of other templates that can take the places of pods of a template: promised pods, and other pods of each replica.
//
// A pod takes at most ceil(a/b) places, for the resource with the highest such ratio of its request to the request of the template. Small
// pods take fewer: a node loses its first place when they use more of a resource than the places leave free on it, and then one for each b.
type crowd struct {
	*Template

	promised, others demand
	// own are the pods of the template in each replica, running the places of pods that run already.
	own, running int64
	// templates is the number of other templates, and largest has the largest of their requests for each request of the template.
	templates int64
	largest   []int64
}

// demand is a number of pods with the places that they take at most, and the amount that they request for each request of the template.
type demand struct {
	pods, places int64
	amounts      []int64
}

// crowdedNodes are the nodes that can lose places to a crowd.
type crowdedNodes struct {
	// nodes is their number, and fewest the smallest number of pods that take the first place of one of them.
	nodes, fewest int64
	// left is the smallest amount that the places leave free on one of them, for each request of the template.
	left []int64
}

// newCrowd returns the crowd for a number of pods of the template in each replica.
func (t *Template) newCrowd(promised, others []Part, own int64) *crowd {
	c := &crowd{Template: t, own: own, templates: int64(len(promised) + len(others)), largest: make([]int64, len(t.requests))}
	c.promised, c.others = c.demandOf(promised), c.demandOf(others)
	return c
}

// demandOf returns the demand of parts, and updates largest.
func (c *crowd) demandOf(parts []Part) demand {
	d := demand{amounts: make([]int64, len(c.requests))}
	for i := range parts {
		places := int64(1)
		for _, taken := range parts[i].requests {
			for k, r := range c.requests {
				if r.Resource == taken.Resource && !c.alone {
					places, c.largest[k] = max(places, resources.DivUp(taken.amount, r.amount)), max(c.largest[k], taken.amount)
					d.amounts[k] = resources.Add(d.amounts[k], resources.Multiply(parts[i].Pods, taken.amount))
				}
			}
		}
		d.pods = resources.Add(d.pods, parts[i].Pods)
		d.places = resources.Add(d.places, resources.Multiply(parts[i].Pods, places))
	}
	return d
}

// placesFor returns the places that must exist for the pods of a number of replicas, whatever the order in which pods are scheduled.
func (c *crowd) placesFor(replicas int64, n *crowdedNodes) int64 {
	sum := func(promised, others int64) int64 {
		return resources.Add(promised, resources.Multiply(others, replicas))
	}
	lost := sum(c.promised.places, c.others.places)
	if lost > 0 && !c.alone {
		small := min(n.nodes, sum(c.promised.pods, c.others.pods)/n.fewest)
		for k, r := range c.requests {
			small = resources.Add(small, max(sum(c.promised.amounts[k], c.others.amounts[k])-n.left[k], 0)/r.amount)
		}
		lost = min(lost, small)
	}
	return resources.Add(resources.Add(resources.Multiply(replicas, c.own), c.running), lost)
}

// replicas returns the number of replicas for which places are enough.
func (c *crowd) replicas(places int64, n *crowdedNodes) int64 {
	fit, more := int64(0), int64(MaxReplicas+1)
	for more-fit > 1 {
		if middle := (fit + more) / 2; c.placesFor(middle, n) > places {
			more = middle
		} else {
			fit = middle
		}
	}
	return fit
}

// nodesOf returns the nodes of a summary, after countOnGroups with the same amounts. If a quota limits the pods, any pod can take a place.
func (c *crowd) nodesOf(s *Summary, free amounts, isLimited bool) *crowdedNodes {
	n := &crowdedNodes{nodes: MaxReplicas, fewest: 1, left: make([]int64, len(c.requests))}
	if isLimited || c.templates == 0 {
		return n
	}
	n.nodes, n.fewest = 0, MaxReplicas
	for k := range n.left {
		n.left[k] = math.MaxInt64
	}
	for i := range s.classes {
		groups := &s.classes[i]
		c.addNodes(n, free, groups, groups.groupsIn(c.counts), groups.groupsIn(s.nodes))
	}
	return n
}

// addNodes adds numbers of nodes of groups, given the places on each node.
func (c *crowd) addNodes(n *crowdedNodes, free amounts, groups *classGroups, places, nodes []int64) {
	for i, count := range places {
		if count == 0 {
			continue
		}
		n.nodes += nodes[i]
		for k, r := range c.requests {
			left := free.byGroup(r.Name(), groups)[i] - count*r.amount
			n.left[k] = min(n.left[k], left)
			if c.largest[k] > 0 {
				n.fewest = min(n.fewest, left/c.largest[k]+1)
			}
		}
	}
}
