package slack

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/saturate"
)

// DefaultCoolDown is how long less has to be wanted before a plan shrinks, in
// seconds.
const DefaultCoolDown = 600

// Planner makes plans follow one another without unrest. An autoscaler drops
// its placeholders for a moment when their template changes, and takes nodes
// away when there are fewer: so the size of placeholders stays while it drifts
// and wastes less than a fifth, more are held at once, and fewer only when fewer
// have been wanted for a while. It is not safe for concurrent use.
type Planner struct {
	// CoolDown in seconds.
	CoolDown int64

	held   held
	policy Policy
	// lessSince is when less than what is held came to be wanted, in seconds; it
	// counts only while waiting.
	lessSince int64
	waiting   bool
}

// held is what is held at present.
type held struct {
	head []Group
	rest Group
	// pitch of the plan that the size is from.
	pitch Amounts
}

// NewPlanner returns a planner that holds nothing yet.
func NewPlanner() *Planner { return &Planner{CoolDown: DefaultCoolDown} }

// Resume makes the planner go on from what another one held by a policy, such
// as before a restart: the groups of its last plan.
func (p *Planner) Resume(policy Policy, head []Group, rest Group) {
	p.policy = policy
	p.held = held{slices.Clone(head), rest, rest.Size}
	p.waiting = false
}

// Next returns the plan for a pool as it is at a time, in seconds. Given the
// same pools and times it returns the same plans.
func (p *Planner) Next(pool Pool, policy Policy, now int64) Plan {
	plan := Compute(pool, policy)
	wanted := p.stick(plan, pool, policy)
	// A new policy is to take effect at once, but for one whose pool is empty: that
	// may be a slip of the hand.
	same := policy == p.policy || pool.Nodes == 0
	p.policy = policy
	if same && p.smaller(wanted, pool) {
		if !p.waiting {
			p.waiting, p.lessSince = true, now
		}
		if now-p.lessSince < p.CoolDown {
			return plan.with(p.held)
		}
	}
	p.waiting = false
	p.held = wanted
	return plan.with(wanted)
}

// with returns the plan with what is held in place of what it computed.
func (p Plan) with(h held) Plan {
	p.Head, p.Rest = h.head, h.rest
	var reasons []string
	if !p.Feasible {
		reasons = p.Reasons
	}
	p.Reasons = slices.Clone(reasons)
	p.settle()
	return p
}

// stick returns what is wanted: the plan, in placeholders of the size held
// where that will do.
func (p *Planner) stick(plan Plan, pool Pool, policy Policy) held {
	fresh := held{plan.Head, plan.Rest, plan.pitch}
	size := p.held.rest.Size
	if p.held.rest.Count == 0 || plan.Rest.Count == 0 || !p.allowed(size, pool) || drifted(p.held.pitch, plan.pitch) {
		return fresh
	}
	for r := range size {
		if plan.Rest.Size[r] > 0 && size[r] == 0 {
			return fresh // something is missing that the size has nothing of
		}
	}
	n := plan.number(size)
	if n > policy.left(plan.Head) {
		return fresh
	}
	if wasteful(size.Times(n), plan.Rest.total(), plan.rem) {
		return fresh
	}
	return held{plan.Head, Group{size, n}, p.held.pitch}
}

// allowed reports whether placeholders of a size may be held: they fit a node,
// and are no larger than the biggest pod.
func (p *Planner) allowed(size Amounts, pool Pool) bool {
	return fitsOne(size, pool.Shapes) && (pool.Widest.IsZero() || size.FitsIn(pool.Widest))
}

// drifted reports whether two sizes are a fifth or more apart in any resource.
func drifted(before, now Amounts) bool {
	for r := range before {
		apart := before[r] - now[r]
		if apart < 0 {
			apart = -apart
		}
		if apart > 0 && saturate.Multiply(apart, 5) >= max(before[r], now[r]) {
			return true
		}
	}
	return false
}

// wasteful reports whether a total holds a fifth more than what is missing of
// every resource, and more than the fresh plan.
func wasteful(total, fresh, rem Amounts) bool {
	more := false
	for r := range total {
		if rem[r] == 0 {
			continue
		}
		if total[r]-rem[r] < rem[r]/5 || total[r] <= fresh[r] {
			return false
		}
		more = true
	}
	return more
}

// smaller reports whether what is wanted is less than what is held, in some
// resource, while what is held still may be held and covers all that is wanted.
func (p *Planner) smaller(wanted held, pool Pool) bool {
	now, then := p.held.total(), wanted.total()
	if !then.FitsIn(now) || p.held.equal(wanted) {
		return false
	}
	if pool.Nodes == 0 {
		return true // of which nothing can be told; they may be back in a moment
	}
	if p.held.rest.Count > 0 && !p.allowed(p.held.rest.Size, pool) {
		return false
	}
	for _, group := range p.held.head {
		if !fitsOne(group.Size, pool.Shapes) {
			return false
		}
	}
	return covers(p.held.head, wanted.head)
}

// covers reports whether there is room in some group for each of the others'.
func covers(groups, others []Group) bool {
	for _, other := range others {
		if !slices.ContainsFunc(groups, func(g Group) bool { return other.Size.FitsIn(g.Size) }) {
			return false
		}
	}
	return true
}

func (h held) equal(other held) bool {
	return h.rest == other.rest && slices.Equal(h.head, other.head)
}

// total returns what is held together.
func (h held) total() Amounts {
	sum := h.rest.total()
	for _, group := range h.head {
		sum = sum.Plus(group.total())
	}
	return sum
}
