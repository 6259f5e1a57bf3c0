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
	// Unknown are fields of the templates that pod templates do not have, probably typos, labels that a selector requires, and objects
	// whose pods do not count.
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
// Pods of other templates, and promised pods, take places of the pods of a template: crowd has the worst case. A running pod of a template
// that excludes itself takes the place of one.
func (w *Workload) CountFit(s *Summary, wanted int64, promised []Part, running int64) Fit {
	out := Fit{Now: MaxReplicas, WithSlack: MaxReplicas, ScaledUp: MaxReplicas}
	if len(w.Parts) == 0 {
		out = Fit{Wait: never, Cost: never}
	}
	for i := range w.Parts {
		t := w.Parts[i].Template
		c := t.newCrowd(promised, slices.Concat(w.Parts[:i], w.Parts[i+1:]), max(w.Parts[i].Pods, 1))
		if t.excludesItself() && s.local[t] == nil {
			c.running = resources.Multiply(running, w.Parts[i].Pods)
		}
		fit := t.countReplicas(s, wanted, c)
		out.Now, out.WithSlack = min(out.Now, fit.Now), min(out.WithSlack, fit.WithSlack)
		out.ScaledUp, out.NewNodes = min(out.ScaledUp, fit.ScaledUp), out.NewNodes+fit.NewNodes
		out.Wait, out.Cost = max(out.Wait, fit.Wait), resources.Add(out.Cost, fit.Cost)
	}
	for _, value := range []*int64{&out.Wait, &out.Cost} {
		if *value == never {
			*value = Unknown
		}
	}
	return out
}

// CountWithin returns the number of replicas of the workload that a share of whole parts of amounts leaves after placed pods, by the
// requests of pods. Resources without an amount do not limit it.
func (w *Workload) CountWithin(amounts v1.ResourceList, share, whole int64, placed []Part) int64 {
	replicas := int64(MaxReplicas)
	for name, quantity := range amounts {
		r := resources.NewResource(name)
		if each := requestsOf(w.Parts, r); each > 0 {
			amount := r.Amount(quantity)
			replicas = min(replicas, max(amount/whole*share+amount%whole*share/whole-requestsOf(placed, r), 0)/each)
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

// countReplicas returns the replicas whose pods of the template fit, and the wait and cost of a number of replicas.
func (t *Template) countReplicas(s *Summary, wanted int64, c *crowd) (f Fit) {
	limit := t.podsInQuota(s)
	count := func(free amounts) (int64, *crowdedNodes) {
		return min(t.countOnGroups(s, free, c.templates > 0), limit), c.nodesOf(s, free, limit < MaxReplicas)
	}
	pods, nodes := count(s.free)
	f.Now = c.replicas(pods, nodes)
	f.WithSlack = f.Now
	if s.hasSlack {
		pods, nodes = count(t.amountsWithSlack(s))
		f.WithSlack = c.replicas(pods, nodes)
	}
	t.addScaleUp(s, &f, wanted, pods, limit, nodes, c)
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

// countOnGroups returns the number of pods that fit the groups with the given amounts. Then counts has the number on a node of each group.
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

// addedNodes are the nodes that a pool can add, and the pods of a template on each of them.
type addedNodes struct {
	shape

	pods int64
}

// addScaleUp sets ScaledUp, and the wait and the cost of a number of replicas, given the pods of the template that fit with slack. Of each
// pool it uses the shape that takes the most pods, and the pools in the order of their boot time. Pods of other templates may need nodes of
// other shapes, of each template at most one more than its part of the pool. Summaries do not say in which zones new nodes are: if pods
// must be spread over other topologies than hosts, no new node counts.
func (t *Template) addScaleUp(s *Summary, f *Fit, wanted, pods, limit int64, nodes *crowdedNodes, c *crowd) {
	perNode := int64(MaxReplicas)
	for i := range t.spread {
		if perNode = min(perNode, int64(max(t.spread[i].MaxSkew, 1))); !isByHost(&t.spread[i]) {
			perNode = 0
		}
	}
	if t.blockedNodes(s) > 0 { // perhaps by DaemonSets
		perNode = 0
	}
	total, pools := pods, make([]addedNodes, 0, len(s.pools))
	for _, shapes := range s.pools {
		best := addedNodes{}
		for _, next := range shapes {
			count := []int64{0}
			t.countPerNode(count, &next.classGroups, s.free)
			if n := min(count[0], perNode); cmp.Or(cmp.Compare(n*next.nodes, best.pods*best.nodes), cmp.Compare(n, best.pods)) > 0 {
				best = addedNodes{next, n}
			}
		}
		if len(shapes) > 1 {
			best.nodes = max(best.nodes-c.templates, 0)
		}
		total = min(total+best.pods*best.nodes, limit)
		c.addNodes(nodes, s.free, &best.classGroups, []int64{best.pods}, []int64{best.nodes})
		pools = append(pools, best)
	}
	f.ScaledUp = max(c.replicas(total, nodes), f.WithSlack)
	missing := int64(0)
	if wanted > f.WithSlack {
		missing = max(c.placesFor(wanted, nodes)-pods, 0)
	}
	for i := range pools {
		p := &pools[i]
		if n := min(p.pods*p.nodes, limit-pods); missing > 0 && n > 0 {
			added := resources.DivUp(min(missing, n), p.pods)
			missing, pods = missing-n, pods+n
			f.NewNodes += added
			f.Wait, f.Cost = max(f.Wait, p.boot), resources.Add(f.Cost, resources.Multiply(added, p.price))
		}
	}
	if missing > 0 {
		f.Wait, f.Cost, f.NewNodes = never, never, 0
	}
}
