package capacity

import (
	"fmt"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Limit returns in words what limits the replicas of the workload that fit with slack, such as "needs 30 CPU on one node; the largest
// free node of cluster3 has 24".
func (w *Workload) Limit(s *Summary, promised []Part) string {
	if len(w.Parts) == 0 {
		return "the workload has no pods"
	}
	least, limiting := int64(-1), &w.Parts[0]
	for i := range w.Parts {
		one := Workload{Parts: w.Parts[i : i+1]}
		if n := one.Fit(s, nil).WithSlack; least < 0 || n < least {
			least, limiting = n, &w.Parts[i]
		}
	}
	text := limiting.limit(s)
	if len(w.Parts) > 1 && limiting.Workload.Name != "" {
		text = limiting.Workload.Name + " " + text
	}
	if pods := podsOf(promised); pods > 0 && least > 0 {
		text += fmt.Sprintf("; %s of other placements not in the summary yet", format.Of(pods, "pod"))
	}
	return text
}

// podsOf returns the number of promised pods.
func podsOf(promised []Part) (pods int64) {
	for i := range promised {
		pods = resources.Add(pods, promised[i].Pods)
	}
	return pods
}

// limit returns in words what limits the pods of the template.
func (t *Template) limit(s *Summary) string {
	var matching, feasibleNodes int64
	var taint string
	for i := range s.classes {
		c := &s.classes[i]
		nodes := int64(0)
		for j := c.from; j < c.to; j++ {
			nodes += s.nodes[j]
		}
		switch m := t.match(c.class); {
		case m&selected == 0:
		case m&tolerated == 0:
			matching += nodes
			parsed := parseClass(c.Value())
			found := t.intolerable(&parsed)
			taint = found.Key + ":" + string(found.Effect)
			if found.Value != "" {
				taint = found.Key + "=" + found.Value + ":" + string(found.Effect)
			}
		default:
			matching, feasibleNodes = matching+nodes, feasibleNodes+nodes
		}
	}
	cluster := "the cluster"
	if s.Cluster != "" {
		cluster = s.Cluster
	}
	switch {
	case t.unsupported != "":
		return "cannot be answered: " + t.unsupported
	case matching == 0:
		return fmt.Sprintf("no node of %s is known to match its node selector and node affinity", cluster)
	case feasibleNodes == 0:
		return fmt.Sprintf("does not tolerate a taint of the nodes of %s that match, such as %s", cluster, taint)
	}
	return t.limitByAmounts(s, cluster)
}

// limitByAmounts returns in words which amounts limit the pods of the template on the nodes that match.
func (t *Template) limitByAmounts(s *Summary, cluster string) string {
	binding, fewest := "", int64(-1)
	for i := range t.requests {
		r := &t.requests[i]
		largest, pods := t.largest(s, r)
		if largest < r.amount {
			return fmt.Sprintf("needs %s on one node; the largest free node of %s has %s", amountOf(r.Resource, r.amount), cluster,
				strings.TrimSuffix(amountOf(r.Resource, largest), " "+nameOf(r.Resource)))
		}
		if fewest < 0 || pods < fewest {
			binding, fewest = nameOf(r.Resource), pods
		}
	}
	n := t.replicas(s, s.total, false)
	switch {
	case t.quota(s) <= n:
		return fmt.Sprintf("the quota of namespace %s leaves %s", t.Workload.Namespace, format.Of(t.quota(s), "pod"))
	case n == 0 && t.blocked(s) > 0:
		return fmt.Sprintf("other pods use its host ports on %s of %s", format.Of(t.blocked(s), "node"), cluster)
	case n == 0 && len(t.spread) == 0:
		return fmt.Sprintf("no node of %s has all of what it needs free at once", cluster)
	case len(t.spread) > 0 && n < fewest:
		return "limited by its topology spread constraints"
	case t.alone && n < fewest:
		return "limited to one pod per node"
	}
	return "limited by " + binding
}

// largest returns the largest free amount of a requested resource on the nodes that match, and the number of pods that would fit if pods
// requested nothing else.
func (t *Template) largest(s *Summary, r *request) (largest, pods int64) {
	column := s.total[r.Name()]
	if column == nil {
		return 0, 0
	}
	for j := range s.classes {
		c := &s.classes[j]
		if t.match(c.class)&feasible != feasible {
			continue
		}
		for k := c.from; k < c.to; k++ {
			largest = max(largest, column[k])
			pods += column[k] / r.amount * s.nodes[k]
		}
	}
	return largest, pods
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
	switch r.Index() {
	case resources.CPU:
		return format.Cores(amount) + " CPU"
	case resources.Memory, resources.EphemeralStorage:
		return format.Bytes(amount) + " " + string(r.Name())
	default:
		return fmt.Sprintf("%d %s", amount, r.Name())
	}
}
