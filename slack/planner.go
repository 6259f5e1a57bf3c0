package slack

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// planner computes successive plans that change rarely. An autoscaler drops placeholders for a
// moment when their template changes, and removes nodes when there are fewer. Therefore the size
// of placeholders stays the same while its ideal size drifts by, and it wastes, less than a fifth;
// capacity grows at once and shrinks after a cool-down. The zero value holds no placeholders. It is not safe for
// concurrent use.
type planner struct {
	held   damped[heldGroups]
	policy ratePolicy
}

// heldGroups are the groups of a plan.
type heldGroups struct {
	head []sizeGroup
	rest sizeGroup
	// idealSize is the placeholder size that the plan wanted when rest was sized.
	idealSize resources.Amounts
}

// Resume sets the groups that are held, such as the groups of the last plan before a restart. The next policy counts as the policy
// of these groups.
func (p *planner) Resume(head []sizeGroup, rest sizeGroup) {
	p.held.Set(heldGroups{slices.Clone(head), rest, rest.Size})
}

// isChanged reports whether a policy is not the policy of the last plan.
func (p *planner) isChanged(policy ratePolicy) bool {
	return p.policy != ratePolicy{} && p.policy != policy
}

// Next returns the plan for a pool at a time in seconds. Equal sequences of pools and times give
// equal plans.
func (p *planner) Next(pool poolTotals, policy ratePolicy, now int64) ratePlan {
	plan := compute(pool, policy)
	if plan.NoNodes {
		// An empty pool is probably a selector typo, or its nodes are being replaced.
		p.held.Set(p.held.Current())
		return plan.withGroups(p.held.Current())
	}
	wanted := p.keepSize(plan, pool, policy)
	// A changed policy takes effect at once, unless it wants placeholders and no node is usable.
	unchanged := !p.isChanged(policy) || pool.Nodes == 0 && !plan.Feasible
	p.policy = policy
	if unchanged {
		wanted, plan.CoolDownEnd = p.held.Next(wanted, now, func(held, wanted heldGroups) bool { return held.exceed(wanted, pool) })
	} else {
		p.held.Set(wanted)
	}
	return plan.withGroups(wanted)
}

// withGroups returns the plan with other groups.
func (p ratePlan) withGroups(groups heldGroups) ratePlan {
	p.Head, p.Rest = groups.head, groups.rest
	var reasons []string
	if !p.Feasible {
		reasons = p.Reasons
	}
	p.Reasons = slices.Clone(reasons)
	p.finish()
	return p
}

// keepSize returns the groups of a plan, with placeholders of the current size if it is still good
// enough.
func (p *planner) keepSize(plan ratePlan, pool poolTotals, policy ratePolicy) heldGroups {
	computed, current := heldGroups{plan.Head, plan.Rest, plan.idealSize}, p.held.Current()
	size := current.rest.Size
	if current.rest.Count == 0 || plan.Rest.Count == 0 || !isAllowed(size, pool) || hasDrifted(current.idealSize, plan.idealSize) {
		return computed
	}
	for r := range size {
		if plan.Rest.Size[r] > 0 && size[r] == 0 {
			return computed
		}
	}
	n := max(plan.countOf(size), plan.minCount)
	count, total := n+int64(len(plan.Head)), totalOf(plan.Head).Add(size.Multiply(n))
	if count > policy.maxCount() || policy.Ceiling.excludes(total, count) ||
		isWasteful(size.Multiply(n), plan.Rest.total(), plan.remainder) {
		return computed
	}
	return heldGroups{plan.Head, sizeGroup{size, n}, current.idealSize}
}

// isAllowed reports whether a size fits a node and does not exceed the biggest pod.
func isAllowed(size resources.Amounts, pool poolTotals) bool {
	return fitsAny(size, pool.Shapes) && (pool.MaxPodRequests.IsZero() || size.FitsIn(pool.MaxPodRequests))
}

// hasDrifted reports whether two sizes differ by a fifth or more in any resource.
func hasDrifted(before, now resources.Amounts) bool {
	for r := range before {
		difference := max(before[r], now[r]) - min(before[r], now[r])
		if difference > 0 && resources.Multiply(difference, 5) >= max(before[r], now[r]) {
			return true
		}
	}
	return false
}

// isWasteful reports whether a total exceeds the remainder by a fifth, and the computed total, in
// every resource of the remainder.
func isWasteful(total, computed, remainder resources.Amounts) bool {
	wasteful := false
	for r := range total {
		if remainder[r] == 0 {
			continue
		}
		if total[r]-remainder[r] < remainder[r]/5 || total[r] <= computed[r] {
			return false
		}
		wasteful = true
	}
	return wasteful
}

// exceed reports whether the groups have more capacity than the wanted groups, are allowed and cover the wanted
// head.
func (g heldGroups) exceed(wanted heldGroups, pool poolTotals) bool {
	if !wanted.total().FitsIn(g.total()) || g.equal(wanted) {
		return false
	}
	if pool.Nodes == 0 {
		return true // whether the groups fit is not known
	}
	if g.rest.Count > 0 && !isAllowed(g.rest.Size, pool) {
		return false
	}
	for _, group := range g.head {
		if !fitsAny(group.Size, pool.Shapes) {
			return false
		}
	}
	return covers(g.head, wanted.head)
}

// covers reports whether each size in others fits in the size of one of the groups.
func covers(groups, others []sizeGroup) bool {
	for _, other := range others {
		if !slices.ContainsFunc(groups, func(g sizeGroup) bool { return other.Size.FitsIn(g.Size) }) {
			return false
		}
	}
	return true
}

func (g heldGroups) equal(other heldGroups) bool {
	return g.rest == other.rest && slices.Equal(g.head, other.head)
}

// total returns the sum of the requests of all placeholders.
func (g heldGroups) total() resources.Amounts {
	return totalOf(g.head).Add(g.rest.total())
}
