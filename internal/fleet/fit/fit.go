package fit

import (
	"cmp"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Unknown is the wait or the cost of a fit that is not known.
const Unknown = -1

// never is a wait or a cost that is not known, or that never ends, while fits are added up.
const never = math.MaxInt64

// MaxReplicas is the maximum number of replicas of a workload, and of a fit.
const MaxReplicas = 1_000_000_000

// Workload is what is to be placed: a number of replicas, each of which has pods of one or several templates.
type Workload struct {
	Parts    []Part
	Replicas int64
	// Unknown are fields of the templates that pod templates do not have, probably typos, and labels that a selector requires.
	Unknown []string
}

// Part has the pods of one template in each replica of a workload.
type Part struct {
	*Template

	Pods int64
}

// Fit is the number of replicas of a workload that fit a cluster.
type Fit struct {
	// Now is the number on the nodes as they are, and WithSlack the number if pods preempt the placeholders of slack.
	// ScaledUp is WithSlack plus the number on the nodes that the autoscaler can add.
	Now, WithSlack, ScaledUp int64
	// Wait is the time in seconds until all replicas of the workload can be scheduled: 0 if they fit with slack. It is Unknown
	// if they never fit or the boot time of the nodes is unknown.
	Wait int64
	// NewNodes is the number of nodes that must be added for all replicas, and Cost their price for an hour in millionths. Cost
	// is Unknown if the replicas never fit, or if the price of a node is unknown.
	NewNodes, Cost int64
}

// CountFit returns the replicas of the workload that fit a cluster, whatever the order in which their pods are scheduled, in addition to
// the replicas that are running, and the wait and the cost of a number of replicas. Promised are workloads whose pods the summary does not
// show.
//
// Pods of one template use the amounts that pods of another template need. In the worst case, one pod of template A takes the place
// of ceil(a/b) pods of template B, for the resource with the highest such ratio. For several templates, and for promised pods, the
// number of pods that fit alone is reduced by the worst case. A running pod of a template that excludes itself takes the place of one.
func (w *Workload) CountFit(s *Summary, wanted int64, promised []Part, running int64) Fit {
	out := Fit{Now: MaxReplicas, WithSlack: MaxReplicas, ScaledUp: MaxReplicas}
	if len(w.Parts) == 0 {
		out = Fit{Wait: never, Cost: never}
	}
	for i := range w.Parts {
		t := w.Parts[i].Template
		taken, share := t.placesTaken(promised), max(t.placesTaken(w.Parts), 1) // pods of the template in place of one replica
		if t.excludesItself() && s.local[t] == nil {
			taken = resources.Add(taken, resources.Multiply(running, w.Parts[i].Pods))
		}
		fit := t.countPods(s, resources.Add(resources.Multiply(wanted, share), taken), len(promised)+len(w.Parts)-1)
		replicas := func(pods int64) int64 { return max(pods-taken, 0) / share }
		out.Now, out.WithSlack = min(out.Now, replicas(fit.Now)), min(out.WithSlack, replicas(fit.WithSlack))
		out.ScaledUp, out.NewNodes = min(out.ScaledUp, replicas(fit.ScaledUp)), out.NewNodes+fit.NewNodes
		out.Wait, out.Cost = max(out.Wait, fit.Wait), resources.Add(out.Cost, fit.Cost)
	}
	for _, value := range []*int64{&out.Wait, &out.Cost} {
		if *value == never {
			*value = Unknown
		}
	}
	return out
}

// CountWithin returns the number of replicas of the workload that a percentage of amounts leaves after placed pods, by the requests of
// pods. Resources without an amount do not limit it.
func (w *Workload) CountWithin(amounts v1.ResourceList, percent int64, placed []Part) int64 {
	replicas := int64(MaxReplicas)
	for name, quantity := range amounts {
		r := resources.NewResource(name)
		if each := requestsOf(w.Parts, r); each > 0 {
			amount := r.Amount(quantity)
			replicas = min(replicas, max(amount/100*percent+amount%100*percent/100-requestsOf(placed, r), 0)/each)
		}
	}
	return replicas
}

// requestsOf returns the sum of the requests of pods for a resource.
func requestsOf(parts []Part, r resources.Resource) (sum int64) {
	for i := range parts {
		for _, request := range parts[i].requests {
			if request.Resource == r {
				sum = resources.Add(sum, resources.Multiply(parts[i].Pods, request.amount))
			}
		}
	}
	return sum
}

// ExcludesItself reports whether running pods of the workload keep further ones from nodes that have the requested amounts.
func (w *Workload) ExcludesItself() bool {
	return slices.ContainsFunc(w.Parts, func(p Part) bool { return p.excludesItself() })
}

// excludesItself reports whether pods of the template exclude each other by topology spread or anti-affinity. Wherever the running pods
// are, each takes at most one place that the fit counts: the domain with the fewest pods has at least the pods that fit it alone, and
// every other domain at most maxSkew more. Running pods may be of an older template, without its host ports.
func (t *Template) excludesItself() bool { return len(t.apart)+len(t.spread) > 0 }

// placesTaken returns the largest number of pods of the template whose places the pods of parts take.
func (t *Template) placesTaken(parts []Part) (pods int64) {
	for i := range parts {
		each := int64(1)
		for _, taken := range parts[i].requests {
			for _, r := range t.requests {
				if r.Resource == taken.Resource && !t.alone {
					each = max(each, resources.DivUp(taken.amount, r.amount))
				}
			}
		}
		pods = resources.Add(pods, resources.Multiply(parts[i].Pods, each))
	}
	return pods
}

// countPods returns the pods of the template that fit, and the wait and cost of a number of pods. The pods of a number of other templates
// may take the place of some.
func (t *Template) countPods(s *Summary, pods int64, others int) Fit {
	limit := t.podsInQuota(s)
	f := Fit{Now: min(t.countOnGroups(s, s.free, others > 0), limit)}
	f.WithSlack = f.Now
	if s.hasSlack {
		f.WithSlack = min(t.countOnGroups(s, t.amountsWithSlack(s), others > 0), limit)
	}
	t.addScaleUp(s, &f, pods, limit, int64(others))
	return f
}

// amountsWithSlack returns the amounts that pods of the template can get if they preempt placeholders, as far as they do.
func (t *Template) amountsWithSlack(s *Summary) amounts {
	if t.neverPreempts {
		return s.free
	}
	return s.total
}

// podsInQuota returns the number of pods that the quotas of the namespace leave, 0 if no summary can answer for the template.
func (t *Template) podsInQuota(s *Summary) int64 {
	if t.unsupported != "" {
		return 0
	}
	limit, left := int64(MaxReplicas), s.quotas[t.Workload.Namespace]
	for _, r := range t.requests {
		if quantity, limited := left[r.Name()]; limited {
			limit = min(limit, r.Amount(quantity)/r.amount)
		}
	}
	return limit
}

// countOnGroups returns the number of pods that fit the groups with the given amounts.
func (t *Template) countOnGroups(s *Summary, free amounts, crowded bool) (total int64) {
	if cap(t.counts) < len(s.nodes) {
		t.counts = make([]int64, 2*len(s.nodes))
	}
	counts, local := t.counts[:len(s.nodes)], s.local[t]
	for i := range s.classes {
		c := &s.classes[i]
		t.countPerNode(c.groupsIn(counts), c, free)
		if local != nil && local.rejected[c.from] != "" {
			clear(c.groupsIn(counts))
		}
		if len(t.spread) == 0 {
			nodes := c.groupsIn(s.nodes)
			for j, n := range c.groupsIn(counts) {
				total += n * nodes[j]
			}
		}
	}
	blocked := t.blockedNodes(s)
	if len(t.spread) > 0 {
		total = t.countSpread(s, counts, crowded || blocked > 0)
	}
	return min(max(total-blocked, 0), MaxReplicas)
}

// countPerNode sets the number of pods that fit one node of each group of a class.
func (t *Template) countPerNode(counts []int64, c *classGroups, free amounts) {
	limit := int64(MaxReplicas)
	if m := t.matchClass(c.key); !m.selected || !m.tolerated {
		limit = 0
	} else if t.alone {
		limit = 1
	}
	for i := range counts {
		counts[i] = limit
	}
	for k := range t.requests {
		r := &t.requests[k]
		column, amount := free.byGroup(r.Name(), c), float64(r.amount)
		if column == nil || limit == 0 {
			clear(counts)
			return
		}
		for i, f := range column {
			counts[i] = min(counts[i], int64(float64(f)/amount)) // exact up to maxAmount, and faster than a division of integers
		}
	}
}

// blockedNodes returns the number of nodes whose host ports are in use. They may be any nodes.
func (t *Template) blockedNodes(s *Summary) (nodes int64) {
	for _, used := range s.hostPorts {
		isSame := func(p v1.ContainerPort) bool {
			return used.Port == 0 || p.HostPort == used.Port && p.Protocol == used.Protocol
		}
		if slices.ContainsFunc(t.hostPorts, isSame) {
			nodes += int64(max(used.Nodes, 0))
		}
	}
	return nodes
}

// addScaleUp sets ScaledUp, and the wait and the cost of a number of pods. Of each pool it uses the shape that takes the most pods, and
// the pools in the order of their boot time. Pods of other templates may need nodes of other shapes, of each template at most one more
// than its part of the pool. Summaries do not say in which zones new nodes are: if pods must be spread over other topologies than hosts,
// no new node counts.
func (t *Template) addScaleUp(s *Summary, f *Fit, pods, limit, others int64) {
	f.ScaledUp = f.WithSlack
	missing := max(pods-f.WithSlack, 0)
	perNode := int64(MaxReplicas)
	for i := range t.spread {
		if perNode = min(perNode, int64(max(t.spread[i].MaxSkew, 1))); !isByHost(&t.spread[i]) {
			perNode = 0
		}
	}
	if t.blockedNodes(s) > 0 { // perhaps by DaemonSets
		perNode = 0
	}
	for _, shapes := range s.pools {
		best, most := shape{}, int64(0)
		for _, next := range shapes {
			count := []int64{0}
			t.countPerNode(count, &next.classGroups, s.free)
			if n := min(count[0], perNode); cmp.Or(cmp.Compare(n*next.nodes, most*best.nodes), cmp.Compare(n, most)) > 0 {
				best, most = next, n
			}
		}
		if len(shapes) > 1 {
			best.nodes = max(best.nodes-others, 0)
		}
		n := min(most*best.nodes, limit-f.ScaledUp)
		f.ScaledUp += n
		if missing > 0 && n > 0 {
			nodes := resources.DivUp(min(missing, n), most)
			missing -= n
			f.NewNodes += nodes
			f.Wait, f.Cost = max(f.Wait, best.boot), resources.Add(f.Cost, resources.Multiply(nodes, best.price))
		}
	}
	if missing > 0 {
		f.Wait, f.Cost, f.NewNodes = never, never, 0
	}
}
