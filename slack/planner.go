package slack

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// planner computes successive plans that change rarely. An autoscaler drops placeholders for a
// moment when their template changes, a Deployment starts other pods, and nodes are removed when there are fewer.
// Therefore the size of placeholders stays the same while its ideal size drifts by less than a fifth; capacity grows
// at once and shrinks after a cool-down. The zero value holds no placeholders. It is not safe for concurrent use.
type planner struct {
	held   damped[ratePlaceholders]
	policy ratePolicy
}

// Resume sets the groups that are held, such as the groups of the last plan before a restart. The next policy counts as the policy
// of these groups. Their ideal size is not known.
func (p *planner) Resume(head []resources.Amounts, rest Placeholders) {
	p.held.Set(ratePlaceholders{Head: head, Rest: rest})
}

// isChanged reports whether a policy is not the policy of the last plan.
func (p *planner) isChanged(policy ratePolicy) bool {
	return p.policy != ratePolicy{} && p.policy != policy
}

// Next returns the plan for a pool at a time in seconds. Equal sequences of pools and times give
// equal plans.
func (p *planner) Next(pool poolTotals, policy ratePolicy, now int64) ratePlan {
	if p.plansAhead(pool, policy) {
		pool.Shapes = []resources.Amounts{pool.Expected}
	}
	plan := compute(pool, policy)
	if plan.NoNodes {
		// An empty pool is probably a selector typo, or its nodes are being replaced.
		plan.ratePlaceholders = p.held.Current()
		p.held.Set(plan.ratePlaceholders)
		plan.finish()
		return plan
	}
	wanted := p.keepSize(plan, pool, policy)
	// A changed policy takes effect at once, unless it wants placeholders and no node is usable.
	isChanged := p.isChanged(policy) && (len(pool.Shapes) > 0 || plan.Feasible)
	p.policy = policy
	if isChanged {
		p.held.Set(wanted)
		plan.ratePlaceholders = wanted
	} else {
		exceeds := func(held, wanted ratePlaceholders) bool { return held.exceed(wanted, pool) }
		plan.ratePlaceholders, plan.CoolDownEnd = p.held.Next(wanted, now, exceeds)
	}
	plan.finish()
	return plan
}

// plansAhead reports whether a pool without usable nodes is planned for the node that it will have, which must be known. A minimum is
// then held, too, and the end of a schedule ends what it held. Other placeholders of an empty pool remain.
func (p *planner) plansAhead(pool poolTotals, policy ratePolicy) bool {
	held := p.held.Current()
	return pool.Nodes == 0 && !pool.Expected.IsZero() && (policy.Floor != bound{} ||
		pool.Matching == 0 && p.policy != ratePolicy{} && (p.policy != policy || held.total().IsZero()))
}

// keepSize returns the groups of a plan, with placeholders of the current size if it is still good
// enough.
func (p *planner) keepSize(plan ratePlan, pool poolTotals, policy ratePolicy) ratePlaceholders {
	computed, current := plan.ratePlaceholders, p.held.Current()
	size := current.Rest.Requests
	// The size of n placeholders, rounded, is the ideal size or up to a half less.
	if current.idealSize.IsZero() && plan.idealSize.FitsIn(size.Multiply(2)) && !hasDrifted(size.Max(plan.idealSize), plan.idealSize) {
		current.idealSize = plan.idealSize
	}
	if current.Rest.Count == 0 || plan.Rest.Count == 0 || !isAllowed(size, pool) || hasDrifted(current.idealSize, plan.idealSize) {
		return computed
	}
	for r := range plan.Rest.Requests.All() {
		if size.Get(r) == 0 {
			return computed
		}
	}
	n := max(plan.countOf(size), plan.minCount)
	kept, count := ratePlaceholders{plan.Head, Placeholders{size, n}, current.idealSize}, n+int64(len(plan.Head))
	if count > policy.maxCount() || policy.Ceiling.excludes(kept.total(), count) {
		return computed
	}
	return kept
}

// isAllowed reports whether a size fits a node and does not exceed the biggest pod.
func isAllowed(size resources.Amounts, pool poolTotals) bool {
	return fitsAny(size, pool.Shapes) && (pool.MaxPodRequests.IsZero() || size.FitsIn(pool.MaxPodRequests))
}

// hasDrifted reports whether two sizes differ by a fifth or more in any resource.
func hasDrifted(before, now resources.Amounts) bool {
	drift := before.Combine(now, func(before, now int64) int64 {
		difference := max(before, now) - min(before, now)
		if resources.Multiply(difference, 5) >= max(before, now) {
			return difference
		}
		return 0
	})
	return !drift.IsZero()
}

// exceed reports whether the placeholders have more capacity than the wanted ones, are allowed and cover the wanted head.
func (p *ratePlaceholders) exceed(wanted ratePlaceholders, pool poolTotals) bool {
	if !wanted.total().FitsIn(p.total()) || p.Rest == wanted.Rest && slices.Equal(p.Head, wanted.Head) {
		return false
	}
	if len(pool.Shapes) == 0 {
		return true // whether the placeholders fit is not known
	}
	for _, size := range p.Head {
		if !fitsAny(size, pool.Shapes) {
			return false
		}
	}
	return covers(p.Head, wanted.Head) && (p.Rest.Count == 0 || isAllowed(p.Rest.Requests, pool))
}

// covers reports whether each size in others fits in one of the sizes.
func covers(sizes, others []resources.Amounts) bool {
	for _, other := range others {
		if !fitsAny(other, sizes) {
			return false
		}
	}
	return true
}
