package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// DescribeLimit returns in words what limits the replicas of the workload that fit with slack, such as "needs 30 CPU on one node; the
// largest free node of cluster3 has 24". Promised and running are the same as for CountFit.
func (w *Workload) DescribeLimit(s *Summary, promised []Part, running int64) string {
	least, limiting := int64(-1), Part{}
	for _, part := range w.Parts {
		one := Workload{Parts: []Part{part}}
		if n := one.CountFit(s, 0, nil, 0).WithSlack; least < 0 || n < least {
			least, limiting = n, part
		}
	}
	if least < 0 {
		return "the workload has no pods"
	}
	text := limiting.describeLimit(s)
	if len(w.Parts) > 1 && limiting.Workload.Name != "" {
		text = limiting.Workload.Name + " " + text
	}
	if local := s.local[limiting.Template]; local != nil {
		reasons := slices.DeleteFunc(slices.Clone(local.rejected), func(reason string) bool { return reason == "" })
		if len(reasons) > 0 {
			text += fmt.Sprintf("; %s: %s", format.Part(len(reasons), len(local.rejected), "node"), reasons[0])
		}
	} else if limiting.shared {
		text += "; other pods that its selectors match are not known"
	}
	if running > 0 && limiting.excludesItself() {
		text += fmt.Sprintf("; %s of the workload run already", format.Of(running, "replica"))
	}
	if len(promised) > 0 && least > 0 { // their number may be about another tenant
		text += "; pods of other placements are not in the summary yet"
	}
	return text
}

// describeLimit returns in words what limits the pods of the template.
func (t *Template) describeLimit(s *Summary) string {
	var feasible []classGroups
	taint, cluster := "", cmp.Or(s.Cluster, "the cluster")
	for _, c := range s.classes {
		switch m := t.matchClass(c.key); {
		case m.selected && m.tolerated:
			feasible = append(feasible, c)
		case m.selected:
			nodes := classOf(c.key)
			found, _ := t.intolerableTaint(&nodes)
			taint = found.ToString()
		}
	}
	switch {
	case t.unsupported != "":
		return "cannot be answered: " + t.unsupported
	case len(feasible) > 0:
		return t.describeLimitOn(s, feasible, cluster)
	case taint != "":
		return fmt.Sprintf("does not tolerate a taint of the nodes of %s that match, such as %s", cluster, taint)
	case len(s.classes) == 0:
		return cluster + " has no groups of nodes"
	}
	return fmt.Sprintf("no node of %s is known to match its node selector and node affinity", cluster)
}

// describeLimitOn returns in words what limits the pods of the template on feasible nodes.
func (t *Template) describeLimitOn(s *Summary, feasible []classGroups, cluster string) string {
	binding, fewest := "", int64(-1)
	for _, r := range t.requests {
		largest, pods := s.largestFree(feasible, t.amountsWithSlack(s), r)
		if largest < r.amount {
			return t.describeTooLarge(s, r, largest, cluster)
		}
		if fewest < 0 || pods < fewest {
			binding, fewest = nameOf(r.Resource), pods
		}
	}
	n, quota, blocked := t.countOnGroups(s, t.amountsWithSlack(s), false), t.podsInQuota(s), t.blockedNodes(s)
	switch {
	case quota <= n:
		return fmt.Sprintf("the quota of namespace %s leaves %s", t.Workload.Namespace, format.Of(quota, "pod"))
	case n == 0 && blocked > 0:
		return fmt.Sprintf("other pods use its host ports on %s of %s", format.Of(blocked, "node"), cluster)
	case n == 0 && len(t.spread) == 0:
		return fmt.Sprintf("no node of %s has all of what it needs free at once", cluster)
	case len(t.spread) > 0 && n < fewest:
		return "limited by its topology spread constraints"
	case t.alone && n < fewest:
		return "limited to one pod per node"
	}
	return "limited by " + binding
}

// describeTooLarge returns in words by what an amount is larger than the largest free node and the nodes that the autoscaler adds.
func (t *Template) describeTooLarge(s *Summary, r request, largest int64, cluster string) string {
	without := func(amount int64) string {
		return strings.TrimSuffix(amountOf(r.Resource, amount), " "+nameOf(r.Resource))
	}
	needed := amountOf(r.Resource, r.amount)
	text := fmt.Sprintf("needs %s on one node; the largest free node of %s has %s", needed, cluster, without(largest))
	if added := s.largestAdded(t, r); added >= 0 && added < r.amount {
		text += ", the largest that its autoscaler adds " + without(added)
	}
	return text
}

// largestFree returns the largest of the amounts of a requested resource on nodes, and the number of pods that fit if they request nothing
// else.
func (s *Summary) largestFree(feasible []classGroups, of amounts, r request) (largest, pods int64) {
	for _, c := range feasible {
		nodes := c.groupsIn(s.nodes)
		for i, free := range of.byGroup(r.Name(), &c) {
			largest, pods = max(largest, free), resources.Add(pods, resources.Multiply(free/r.amount, nodes[i]))
		}
	}
	return largest, pods
}

// largestAdded returns the largest amount of a resource on a node that the autoscaler can add for pods of the template, -1 without one.
func (s *Summary) largestAdded(t *Template, r request) int64 {
	largest := int64(-1)
	for _, shapes := range s.pools {
		for i := range shapes {
			if m := t.matchClass(shapes[i].key); m.selected && m.tolerated {
				for _, amount := range s.free.byGroup(r.Name(), &shapes[i].classGroups) {
					largest = max(largest, amount)
				}
			}
		}
	}
	return largest
}

// nameOf returns the name of a resource in a message.
func nameOf(r resources.Resource) string {
	if r.Index() == resources.CPU {
		return "CPU"
	}
	return string(r.Name())
}

// amountOf returns an amount of a resource in a message, such as "30 CPU" or "4Gi memory".
func amountOf(r resources.Resource, amount int64) string {
	text := fmt.Sprint(amount)
	switch r.Index() {
	case resources.CPU:
		text = format.Cores(amount)
	case resources.Memory, resources.EphemeralStorage:
		text = format.Bytes(amount)
	default:
	}
	return text + " " + nameOf(r)
}
