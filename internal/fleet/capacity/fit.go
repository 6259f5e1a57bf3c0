package capacity

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Unknown is the wait or the cost of a fit that is not known.
const Unknown = -1

// MaxReplicas is the maximum number of replicas of a workload, and of a fit.
const MaxReplicas = 1_000_000_000

// Workload is what is to be placed: a number of replicas, each of which has pods of one or several templates.
type Workload struct {
	Parts    []Part
	Replicas int64
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

// Fit returns the replicas of the workload that fit a cluster, whatever the order in which their pods are scheduled. Promised
// are workloads whose pods the summary does not show.
//
// Pods of one template use the amounts that pods of another template need. In the worst case, one pod of template A takes the place
// of ceil(a/b) pods of template B, for the resource with the highest such ratio. For several templates, and for promised pods, the
// number of pods that fit alone is reduced by the worst case.
func (w *Workload) Fit(s *Summary, promised []Part) Fit {
	if len(w.Parts) == 0 {
		return Fit{Wait: Unknown, Cost: Unknown}
	}
	out := Fit{Now: MaxReplicas, WithSlack: MaxReplicas, ScaledUp: MaxReplicas}
	for i := range w.Parts {
		part := &w.Parts[i]
		crowded := len(promised) > 0 || len(w.Parts) > 1
		taken := int64(0)
		for p := range promised {
			taken = resources.Add(taken, resources.Multiply(promised[p].Pods, part.displaced(promised[p].Template)))
		}
		share := part.Pods // of one replica
		for j := range w.Parts {
			if j != i {
				share = resources.Add(share, resources.Multiply(w.Parts[j].Pods, part.displaced(w.Parts[j].Template)))
			}
		}
		share = max(share, 1)
		out.limit(part.fit(s, resources.Add(resources.Multiply(w.Replicas, share), taken), crowded), taken, share)
	}
	return out
}

// limit limits a fit to the replicas for which the pods of one template suffice. Wait, nodes and cost are those of all parts.
func (f *Fit) limit(pods Fit, taken, share int64) {
	of := func(n int64) int64 { return max(n-taken, 0) / share }
	f.Now, f.WithSlack, f.ScaledUp = min(f.Now, of(pods.Now)), min(f.WithSlack, of(pods.WithSlack)), min(f.ScaledUp, of(pods.ScaledUp))
	f.NewNodes += pods.NewNodes
	if f.Wait = max(f.Wait, pods.Wait); pods.Wait == Unknown || f.Wait == Unknown {
		f.Wait = Unknown
	}
	if f.Cost += pods.Cost; pods.Cost == Unknown || f.Cost < 0 {
		f.Cost = Unknown
	}
}

// displaced returns the largest number of pods of the template whose place one pod of another template takes.
func (t *Template) displaced(by *Template) int64 {
	most := int64(1)
	if t.alone {
		return most
	}
	for i := range t.requests {
		for j := range by.requests {
			if t.requests[i].Resource == by.requests[j].Resource {
				most = max(most, resources.DivUp(by.requests[j].amount, t.requests[i].amount))
			}
		}
	}
	return most
}

// fit returns the pods of the template that fit, and the wait and cost of a number of pods. Crowded states that other pods may take
// the place of some.
func (t *Template) fit(s *Summary, pods int64, crowded bool) Fit {
	limit := t.quota(s)
	if t.unsupported != "" {
		limit = 0
	}
	f := Fit{Now: min(t.replicas(s, s.free, crowded), limit)}
	f.WithSlack = f.Now
	if len(s.total) > 0 && !sameColumns(s.free, s.total) {
		f.WithSlack = min(t.replicas(s, s.total, crowded), limit)
	}
	t.scaleUp(s, &f, pods, limit)
	return f
}

// sameColumns reports whether a cluster has no slack on its nodes: the maps are the same map then.
func sameColumns(free, total map[v1.ResourceName][]int64) bool {
	for name := range total {
		if len(free[name]) == 0 || &free[name][0] != &total[name][0] {
			return false
		}
	}
	return len(free) == len(total)
}

// quota returns the number of pods that the quotas of the namespace leave.
func (t *Template) quota(s *Summary) int64 {
	limit := int64(MaxReplicas)
	left, limited := s.quotas[t.Workload.Namespace]
	if !limited {
		return limit
	}
	for i := range t.requests {
		r := &t.requests[i]
		amount := left.get(r.Resource)
		if r.Index() == resources.Extended {
			if _, has := left.extended[r.Name()]; !has {
				continue
			}
		}
		limit = min(limit, amount/r.amount)
	}
	return limit
}

// replicas returns the number of pods that fit the groups with the given amounts.
func (t *Template) replicas(s *Summary, free map[v1.ResourceName][]int64, crowded bool) (total int64) {
	if cap(t.counts) < len(s.nodes) {
		t.counts = make([]int64, 2*len(s.nodes))
	}
	counts := t.counts[:len(s.nodes)]
	for i := range s.classes {
		c := &s.classes[i]
		part := counts[c.from:c.to]
		if t.match(c.class)&feasible != feasible {
			clear(part)
			continue
		}
		t.count(part, free, c.from)
		if len(t.spread) == 0 {
			for j, n := range part {
				total += n * s.nodes[c.from+j]
			}
		}
	}
	blocked := t.blocked(s)
	if len(t.spread) > 0 {
		total = t.spreadOver(s, counts, crowded || blocked > 0)
	}
	return min(max(total-blocked, 0), MaxReplicas)
}

// count sets the number of pods that fit one node of each group from an index on.
func (t *Template) count(counts []int64, free map[v1.ResourceName][]int64, from int) {
	for k := range t.requests {
		r := &t.requests[k]
		column := free[r.Name()]
		if column == nil {
			clear(counts)
			return
		}
		column = column[from : from+len(counts)]
		inverse, amount := r.inverse, r.amount
		if k == 0 {
			for i, f := range column {
				counts[i] = quotient(f, amount, inverse)
			}
			continue
		}
		for i, f := range column {
			counts[i] = min(counts[i], quotient(f, amount, inverse))
		}
	}
	if t.alone {
		for i := range counts {
			counts[i] = min(counts[i], 1)
		}
	}
}

// quotient returns free / amount, rounded down, for amounts of at most maxAmount: a multiplication is faster than a division. The
// inverse is at least 1/amount, so that the quotient is too high by at most one, and rarely so.
func quotient(free, amount int64, inverse float64) int64 {
	q := int64(float64(free) * inverse)
	if q*amount > free {
		q--
	}
	return q
}

// blocked returns the number of nodes whose host ports are in use. They may be any nodes.
func (t *Template) blocked(s *Summary) (nodes int64) {
	for _, port := range t.hostPorts {
		nodes += s.hostPorts[port]
	}
	if len(t.hostPorts) > 0 {
		nodes += s.hostPorts[hostPort{0, v1.ProtocolTCP}]
	}
	return nodes
}

// scaleUp sets ScaledUp, and the wait and the cost of a number of pods. Of each pool it uses the shape that takes the most pods, and
// the pools in the order of their boot time. Summaries do not say in which zones new nodes are: if pods must be spread over other
// topologies than hosts, no new node counts.
func (t *Template) scaleUp(s *Summary, f *Fit, pods, limit int64) {
	f.ScaledUp = f.WithSlack
	missing := max(pods-f.WithSlack, 0)
	perNode := int64(MaxReplicas)
	for i := range t.spread {
		if perNode = min(perNode, t.spread[i].maxSkew); t.spread[i].key != v1.LabelHostname {
			perNode = 0
		}
	}
	if t.blocked(s) > 0 { // perhaps by DaemonSets
		perNode = 0
	}
	best := t.bestShapes(s, perNode)
	for i := range best {
		shape := &best[i]
		n := min(resources.Multiply(shape.perNode, shape.nodes), limit-f.ScaledUp)
		f.ScaledUp = min(f.ScaledUp+max(n, 0), MaxReplicas)
		if missing <= 0 || n <= 0 {
			continue
		}
		nodes := resources.DivUp(min(missing, n), shape.perNode)
		missing -= n
		f.NewNodes += nodes
		f.Wait = worse(f.Wait, shape.boot, max(f.Wait, shape.boot))
		f.Cost = worse(f.Cost, shape.price, f.Cost+resources.Multiply(nodes, max(shape.price, 0)))
	}
	if missing > 0 {
		f.Wait, f.Cost, f.NewNodes = Unknown, Unknown, 0
	}
}

// worse returns Unknown if one of two values is unknown, else a value.
func worse(a, b, value int64) int64 {
	if a < 0 || b < 0 {
		return Unknown
	}
	return value
}

// fitted is a shape with the number of pods that fit one node.
type fitted struct {
	shape

	perNode int64
}

// bestShapes returns the shape of each pool that takes the most pods, by boot time.
func (t *Template) bestShapes(s *Summary, perNode int64) (best []fitted) {
	for _, pool := range s.pools {
		var chosen fitted
		for i := range pool {
			next := fitted{pool[i], t.perNode(&pool[i], perNode)}
			if gain := next.perNode*next.nodes - chosen.perNode*chosen.nodes; gain > 0 || gain == 0 && next.perNode > chosen.perNode {
				chosen = next
			}
		}
		if chosen.perNode > 0 {
			best = append(best, chosen)
		}
	}
	slices.SortStableFunc(best, func(a, b fitted) int { return cmp.Compare(uint64(a.boot), uint64(b.boot)) }) // unknown last
	return best
}

// perNode returns the number of pods that fit a new node, at most limit.
func (t *Template) perNode(shape *shape, limit int64) int64 {
	if t.match(shape.class)&feasible != feasible || t.unsupported != "" {
		return 0
	}
	if t.alone {
		limit = min(limit, 1)
	}
	for i := range t.requests {
		limit = min(limit, shape.free.get(t.requests[i].Resource)/t.requests[i].amount)
	}
	return limit
}
