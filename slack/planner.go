package slack

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// coolDown is the number of seconds for which less must have been wanted before a number or a plan shrinks.
const coolDown = 600

// planner computes successive plans that change rarely. An autoscaler drops placeholders for a
// moment when their template changes, and removes nodes when there are fewer. Therefore the size
// of placeholders stays the same while its ideal size drifts by, and it wastes, less than a fifth;
// capacity grows at once and shrinks after a cool-down. The zero value holds no placeholders. It is not safe for
// concurrent use.
type planner struct {
	current  heldGroups
	policy   ratePolicy
	decrease cooldown
}

// heldGroups are the groups of a plan.
type heldGroups struct {
	head []sizeGroup
	rest sizeGroup
	// idealSize is the placeholder size that the plan wanted when rest was sized.
	idealSize resources.Amounts
}

// Resume sets the groups that are held for a policy, such as the groups of the last plan before a
// restart.
func (p *planner) Resume(policy ratePolicy, head []sizeGroup, rest sizeGroup) {
	p.policy = policy
	p.current = heldGroups{slices.Clone(head), rest, rest.Size}
	p.decrease = cooldown{}
}

// Next returns the plan for a pool at a time in seconds. Equal sequences of pools and times give
// equal plans.
func (p *planner) Next(pool poolTotals, policy ratePolicy, now int64) ratePlan {
	plan := compute(pool, policy)
	if plan.NoNodes {
		// An empty pool is probably a selector typo, or its nodes are being replaced.
		p.decrease = cooldown{}
		return plan.withGroups(p.current)
	}
	wanted := p.keepSize(plan, pool, policy)
	// A changed policy takes effect at once, unless it wants placeholders and no node is usable.
	unchanged := policy == p.policy || pool.Nodes == 0 && !plan.Feasible
	p.policy = policy
	if unchanged && p.shrinks(wanted, pool) && !p.decrease.isOver(now) {
		plan.CoolDownEnd = p.decrease.end()
		return plan.withGroups(p.current)
	}
	p.decrease = cooldown{}
	p.current = wanted
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
	computed := heldGroups{plan.Head, plan.Rest, plan.idealSize}
	size := p.current.rest.Size
	if p.current.rest.Count == 0 || plan.Rest.Count == 0 || !isAllowed(size, pool) || hasDrifted(p.current.idealSize, plan.idealSize) {
		return computed
	}
	for r := range size {
		if plan.Rest.Size[r] > 0 && size[r] == 0 {
			return computed
		}
	}
	n := plan.countOf(size)
	if n+int64(len(plan.Head)) > policy.MaxPlaceholders || isWasteful(size.Multiply(n), plan.Rest.total(), plan.remainder) {
		return computed
	}
	return heldGroups{plan.Head, sizeGroup{size, n}, p.current.idealSize}
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

// shrinks reports whether the wanted groups have less capacity than the current groups, and the
// current groups remain allowed and cover the wanted head.
func (p *planner) shrinks(wanted heldGroups, pool poolTotals) bool {
	if !wanted.total().FitsIn(p.current.total()) || p.current.equal(wanted) {
		return false
	}
	if pool.Nodes == 0 {
		return true // whether the groups fit is not known
	}
	if p.current.rest.Count > 0 && !isAllowed(p.current.rest.Size, pool) {
		return false
	}
	for _, group := range p.current.head {
		if !fitsAny(group.Size, pool.Shapes) {
			return false
		}
	}
	return covers(p.current.head, wanted.head)
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

// dampedCount is a number that increases at once and decreases only after a lower number was
// wanted for a cool-down. The zero value is ready to use.
type dampedCount struct {
	current  int64
	decrease cooldown
}

// Set sets the number and ends a cool-down.
func (c *dampedCount) Set(n int64) { *c = dampedCount{current: n} }

// Next returns the number at a time in seconds, given the wanted number, and the time in seconds at which it
// decreases if a lower number is wanted until then, 0 if the wanted number is not lower. After the cool-down it
// decreases to the number that is wanted then.
func (c *dampedCount) Next(wanted, now int64) (current, coolDownEnd int64) {
	if wanted >= c.current || c.decrease.isOver(now) {
		c.Set(wanted)
	}
	return c.current, c.decrease.end()
}

// cooldown measures for how long a decrease has been wanted without interruption.
type cooldown struct {
	since   int64
	started bool
}

// isOver reports whether the cool-down is over at a time in seconds, and starts it if necessary.
func (c *cooldown) isOver(now int64) bool {
	if !c.started {
		c.started, c.since = true, now
	}
	return now-c.since >= coolDown
}

// end returns the end of the cool-down in seconds, 0 if it has not started.
func (c *cooldown) end() int64 {
	if !c.started {
		return 0
	}
	return c.since + coolDown
}
