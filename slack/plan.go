package slack

import (
	"fmt"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

const mebibyte = 1 << 20

// Placeholders are a number of placeholders with equal requests for CPU and memory.
type Placeholders struct {
	Requests resources.Amounts
	Count    int64
}

// total returns the sum of the requests.
func (p Placeholders) total() resources.Amounts { return p.Requests.Multiply(p.Count) }

// ratePolicy states how much slack is wanted.
type ratePolicy struct {
	// Rate is in millionths of the base and not negative.
	Rate int64
	// OfAllocatable makes the rate refer to the allocatable amounts of usable nodes, not to the requests of pods. Nodes that the slack
	// itself adds are included, so the rate must be below 1.
	OfAllocatable bool
	// Granularity is the number of placeholders that fit an average node, at least 1.
	Granularity int64
	// CoverBiggest adds placeholders as large as the biggest pod.
	CoverBiggest bool
	// MaxPlaceholders limits the number of placeholders, which bounds the work of an autoscaler if a pod requests
	// an absurd amount. It is from 1 to 100,000: twenty for each node of the largest cluster that Kubernetes supports.
	MaxPlaceholders int64
	// Floor and Ceiling bound the slack. Amounts of 0 are no bound.
	Floor, Ceiling bound
	// MinPerDomain is the least number of placeholders in each domain of the pool, 0 without a spread.
	MinPerDomain int64
}

// bound is an amount of slack and a number of placeholders.
type bound struct {
	Amounts resources.Amounts
	Count   int64
}

// excludes reports whether an amount in a number of placeholders exceeds the bound.
func (b *bound) excludes(amounts resources.Amounts, count int64) bool {
	return b.limit(amounts) != amounts || b.Count > 0 && count > b.Count
}

// limit returns the amounts, at most those of the bound.
func (b *bound) limit(amounts resources.Amounts) resources.Amounts {
	return amounts.Combine(b.Amounts, func(amount, limit int64) int64 {
		if limit > 0 {
			return min(amount, limit)
		}
		return amount
	})
}

// maxCount returns the maximum number of placeholders of the rate.
func (p *ratePolicy) maxCount() int64 {
	if p.Ceiling.Count > 0 {
		return min(p.MaxPlaceholders, p.Ceiling.Count)
	}
	return p.MaxPlaceholders
}

// ratePlaceholders are the placeholders of a plan.
type ratePlaceholders struct {
	// Head are the sizes of the placeholders for the biggest pod, at most two. Rest are the equal placeholders that complete the
	// target.
	Head []resources.Amounts
	Rest Placeholders
	// idealSize is the size of Rest before its number is rounded; it changes continuously with the pool.
	idealSize resources.Amounts
}

// headTotal returns the sum of the requests of the placeholders for the biggest pod.
func (p *ratePlaceholders) headTotal() (sum resources.Amounts) {
	for _, size := range p.Head {
		sum = sum.Add(size)
	}
	return sum
}

// total returns the sum of the requests of all placeholders.
func (p *ratePlaceholders) total() resources.Amounts { return p.headTotal().Add(p.Rest.total()) }

// ratePlan states which placeholders to hold.
type ratePlan struct {
	ratePlaceholders
	// Base is the amount that the rate refers to, Target the part of it to hold.
	Base, Target resources.Amounts
	// Total is the sum of the requests of all placeholders.
	Total resources.Amounts
	// Feasible reports whether Total reaches Target and the biggest pod is covered, as the policy
	// wants. Reasons say why not, or by how much a feasible plan exceeds the target.
	Feasible bool
	Reasons  []string
	// NoNodes reports whether a plan that wants placeholders has none because no node is in the pool.
	// Successive plans then keep the placeholders that are held.
	NoNodes bool
	// CoolDownEnd is the time in seconds at which placeholders that are no longer required are removed,
	// unless they are required again before; 0 if there are none.
	CoolDownEnd int64

	// maxSize is the largest size that Rest may have.
	maxSize resources.Amounts
	// remainder is the part of the target that Rest must reach, and minCount the least number of its placeholders.
	remainder resources.Amounts
	minCount  int64
	// required is the target without the ceiling.
	required resources.Amounts
}

// compute returns the plan for a pool, without Total and the reasons that finish adds:
//
//	E    = min(ceiling, max(floor, rate x base, rounded up))
//	H    = one placeholder of the size (highest CPU, highest memory) of the pods if that fits a
//	       node, otherwise one for each of the one or two biggest pods
//	rem  = max(0, E - H), at least s x the floor in placeholders less those of H
//	s    = min(average allocatable / granularity, biggest pod), reduced to the capacity of one
//	       node if it fits none
//	N    = max over the resources of ceil(rem / s)
//	size = ceil(rem / N)
//
// Every placeholder fits a node of the pool in all resources at the same time, none is larger than
// the biggest pod, and the sum is at least E. If that is impossible, the plan comes as close as
// possible and its reasons say so.
func compute(pool poolTotals, policy ratePolicy) ratePlan {
	plan := ratePlan{Feasible: true, Base: pool.Requested}
	if policy.OfAllocatable {
		plan.Base = pool.Allocatable
	}
	plan.Target = plan.Base.Share(policy.Rate).Max(policy.Floor.Amounts)
	plan.limitTarget(policy.Ceiling.limit(plan.Target))
	if len(pool.Shapes) == 0 {
		switch wanted := policy.Rate > 0 || policy.CoverBiggest || policy.Floor != (bound{}); {
		case wanted && pool.Matching == 0:
			plan.NoNodes = true
			plan.fail("no node is in the pool: the size of placeholders cannot be determined")
		case wanted:
			plan.fail("the pool has no usable nodes (%d are cordoned, not ready or being deleted): "+
				"the size of placeholders cannot be determined", pool.Matching)
		}
		return plan
	}
	if policy.CoverBiggest {
		plan.addHead(pool)
		plan.limitHead(policy)
	}
	plan.remainder = plan.Target.Subtract(plan.headTotal())
	plan.addFloor(pool, policy)
	plan.addRest(pool, policy)
	return plan
}

// fail marks the plan as not feasible for a reason.
func (p *ratePlan) fail(format string, args ...any) {
	p.Feasible = false
	p.Reasons = append(p.Reasons, fmt.Sprintf(format, args...))
}

// addHead adds the placeholders for the biggest pod.
func (p *ratePlan) addHead(pool poolTotals) {
	if pool.MaxPodRequests.IsZero() {
		return
	}
	if fitsAny(pool.MaxPodRequests, pool.Shapes) {
		p.Head = []resources.Amounts{pool.MaxPodRequests}
		return
	}
	biggest := []resources.Amounts{pool.LargestByCPU}
	if pool.LargestByMemory != pool.LargestByCPU {
		biggest = append(biggest, pool.LargestByMemory)
	}
	for _, size := range biggest {
		if !fitsAny(size, pool.Shapes) {
			p.fail("a pod that requests %s does not fit any usable node of the pool: no placeholder covers it", size)
			continue
		}
		p.Head = append(p.Head, size)
	}
}

// limitTarget reduces the target to the amounts that a ceiling permits.
func (p *ratePlan) limitTarget(permitted resources.Amounts) {
	p.required, p.Target = p.required.Max(p.Target), permitted
}

// limitHead removes placeholders for the biggest pod that the policy does not permit.
func (p *ratePlan) limitHead(policy ratePolicy) {
	for len(p.Head) > 0 {
		count, field := int64(len(p.Head)), "spec.maximum"
		switch {
		case count > policy.MaxPlaceholders:
			field = "spec.maxPlaceholders"
		case !policy.Ceiling.excludes(p.headTotal(), count):
			return
		}
		p.fail("%s does not permit a placeholder for the biggest pod, which requests %s", field, p.Head[count-1])
		p.Head = p.Head[:count-1]
	}
}

// addFloor raises the target to the floor in placeholders of the size of one of several on an average node.
func (p *ratePlan) addFloor(pool poolTotals, policy ratePolicy) {
	heads := int64(len(p.Head))
	least := max(policy.Floor.Count, policy.MinPerDomain*int64(pool.Domains)+heads)
	p.minCount = min(least, policy.MaxPlaceholders) - heads
	if p.minCount <= 0 {
		return
	}
	size := pool.averageNode().DivideUp(policy.Granularity)
	if !pool.MaxPodRequests.IsZero() {
		size = size.Min(pool.MaxPodRequests)
	}
	head := p.headTotal()
	p.Target = p.Target.Max(head.Add(size.Multiply(p.minCount)))
	p.limitTarget(policy.Ceiling.limit(p.Target))
	p.remainder = p.Target.Subtract(head)
}

// addRest adds the placeholders for the remainder.
func (p *ratePlan) addRest(pool poolTotals, policy ratePolicy) {
	if p.remainder.IsZero() {
		return
	}
	average := pool.averageNode()
	p.maxSize = p.limitSize(pool, average.DivideUp(policy.Granularity))
	limit := policy.maxCount() - int64(len(p.Head))
	if p.countOf(p.maxSize) > limit {
		// Fewer placeholders, as large as allowed.
		p.maxSize = p.limitSize(pool, average)
	}
	n := p.countOf(p.maxSize)
	if n == 0 {
		return // no placeholder can have any of the remainder
	}
	p.idealSize = p.continuousSize()
	capped := n > limit && policy.maxCount() < policy.MaxPlaceholders
	if n > limit && !capped {
		wanted := uint64(n) + uint64(len(p.Head))
		p.fail("%s required, maxPlaceholders is %d", format.Are(wanted, "placeholder"), policy.MaxPlaceholders)
		if limit > 0 {
			p.Rest = Placeholders{p.maxSize, limit}
		}
		return
	}
	if n = min(max(n, p.minCount), limit); n > 0 {
		p.sizeRest(policy, n)
	}
	if capped {
		p.limitTarget(p.Target.Min(p.total()))
	}
}

// sizeRest sets Rest to a number of placeholders that reach the remainder, as far as maxSize permits it.
func (p *ratePlan) sizeRest(policy ratePolicy, n int64) {
	p.Rest = Placeholders{p.remainder.DivideUp(n).Min(p.maxSize), n}
	// Round memory up to MiB if allowed.
	if rounded := resources.DivUp(p.Rest.Requests.Memory, mebibyte) * mebibyte; rounded <= p.maxSize.Memory {
		p.Rest.Requests.Memory = rounded
	}
	if policy.Ceiling.excludes(p.total(), n) {
		roundDown := func(size, remainder int64) int64 { return min(size, remainder/n) }
		p.Rest.Requests = p.Rest.Requests.Combine(p.remainder, roundDown)
	}
}

// limitSize returns the largest size of a placeholder that does not exceed the given size and the
// biggest pod, and fits a node. It has only resources of the remainder.
func (p *ratePlan) limitSize(pool poolTotals, size resources.Amounts) resources.Amounts {
	if !pool.MaxPodRequests.IsZero() {
		size = size.Min(pool.MaxPodRequests)
	}
	size = size.Combine(p.remainder, func(amount, remainder int64) int64 {
		if remainder == 0 {
			return 0
		}
		return amount
	})
	if fitsAny(size, pool.Shapes) {
		return size
	}
	// Use the first shape that needs the fewest placeholders.
	best, fewest := resources.Amounts{}, int64(0)
	for _, shape := range pool.Shapes {
		if reduced := size.Min(shape); !reduced.IsZero() {
			if n := p.countOf(reduced); n > 0 && (fewest == 0 || n < fewest) {
				best, fewest = reduced, n
			}
		}
	}
	return best
}

// countOf returns how many placeholders of a size reach the remainder in the resources of the size,
// 0 if the size is zero.
func (p *ratePlan) countOf(size resources.Amounts) int64 {
	var n int64
	for r, amount := range size.All() {
		n = max(n, resources.DivUp(p.remainder.Get(r), amount))
	}
	return n
}

// continuousSize returns remainder / max(1, the highest remainder / maxSize of any resource).
func (p *ratePlan) continuousSize() resources.Amounts {
	count := p.remainder.MaxFraction(p.maxSize)
	if count <= 1 {
		return p.remainder
	}
	return p.remainder.Apply(func(amount int64) int64 { return int64(float64(amount) / count) })
}

// finish sets Total, and the reasons that follow from it.
func (p *ratePlan) finish() {
	p.Total = p.total()
	for r := range p.Target.Subtract(p.Total).All() {
		if p.Feasible || p.Rest.Requests.Get(r) == 0 {
			name := strings.ReplaceAll(string(r.Name()), "cpu", "CPU")
			p.fail("placeholders cannot hold %s: no pod that may be the biggest requests it, or no usable node has any", name)
		}
	}
	if p.required != p.Target {
		p.Reasons = append(p.Reasons,
			fmt.Sprintf("spec.maximum limits the target to %s: the rate and the minimum require %s", p.Target, p.required))
	}
	excess := p.Total.Subtract(p.Target)
	if excess.FitsIn(p.Target.DivideUp(100)) || !p.Feasible {
		return // up to 1% is rounding
	}
	cause := "they are of equal size and cover the biggest pod"
	switch {
	case p.CoolDownEnd != 0:
		cause = "less is required, the cool-down is not over"
	case len(p.Head) > 0 && p.remainder.IsZero():
		cause = "they cover the biggest pod"
	}
	p.Reasons = append(p.Reasons, fmt.Sprintf("placeholders exceed the target by %s: %s", excess, cause))
}
