package slack

import (
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/saturate"
)

// Base is what a rate is a part of.
type Base int

const (
	// Requested: what pods request.
	Requested Base = iota
	// Allocatable: what usable nodes have. The nodes that the slack itself brings
	// are among them, so that the rate must be under 1.
	Allocatable
)

const mebibyte = 1 << 20

// Policy is how much slack is wanted.
type Policy struct {
	// Rate in millionths of the base, at least 0.
	Rate int64
	Base Base
	// Granularity is how many placeholders an average node would hold, at least 1.
	Granularity int64
	// CoverBiggest keeps room for a pod as big as any.
	CoverBiggest bool
	// MaxPlaceholders bounds the number of placeholders; MaxCount does if 0.
	MaxPlaceholders int64
}

// MaxCount is how many placeholders there may be at all: twenty for each node of
// the largest cluster that Kubernetes is made for. A pod of absurd size must not
// make an autoscaler count to billions.
const MaxCount = 100_000

// left returns how many placeholders there may be beside the head.
func (p Policy) left(head []Group) int64 {
	if p.MaxPlaceholders == 0 {
		return MaxCount - int64(len(head))
	}
	return p.MaxPlaceholders - int64(len(head))
}

// Group is a number of equal placeholders.
type Group struct {
	Size  Amounts
	Count int64
}

// total returns what the group requests together.
func (g Group) total() Amounts { return g.Size.Times(g.Count) }

// Plan is which placeholders to hold.
type Plan struct {
	// Base is what the rate is a part of, Target what of it is to be held.
	Base, Target Amounts
	// Head are placeholders for the biggest pod, one or two groups of one; Rest
	// are the equal ones that make up the target with it.
	Head []Group
	Rest Group
	// Total is what all placeholders request together.
	Total Amounts
	// Feasible: Total is at least the Target and there is room for the biggest
	// pod, as wanted; or else Reasons say why not. Reasons also say what the plan
	// holds beyond the target.
	Feasible bool
	Reasons  []string

	// bound is the largest size that Rest could have, and pitch the size it would
	// have if their number need not be whole. Pitch changes smoothly with the
	// pool: a Planner goes by it.
	bound, pitch Amounts
	// rem is what Rest has to make up.
	rem Amounts
}

// Compute returns the plan for a pool:
//
//	E    = rate x base, rounded up
//	H    = one placeholder as large as (most CPU, most memory) of the pods if that
//	       fits a node, else the one or two real biggest pods
//	rem  = max(0, E - H)
//	s    = min(average allocatable / granularity, biggest pod), shrunk to what one
//	       node has where it fits none
//	N    = max over the resources of ceil(rem / s)
//	size = ceil(rem / N)
//
// Every placeholder fits a node of the pool in all resources together, none is
// larger than the biggest pod, and the sum is at least E; where that cannot be,
// the plan is the nearest to it and says so.
func Compute(pool Pool, policy Policy) Plan {
	plan := Plan{Feasible: true, Base: pool.Requested}
	if policy.Base == Allocatable {
		plan.Base = pool.Allocatable
	}
	plan.Target = plan.Base.share(policy.Rate)
	if pool.Nodes == 0 {
		if policy.Rate > 0 || policy.CoverBiggest {
			plan.fail("no node of the pool is usable: nothing can be told of the size of placeholders")
		}
		return plan
	}
	if policy.CoverBiggest {
		plan.cover(pool)
	}
	head := plan.headTotal()
	plan.rem = plan.Target.Minus(head)
	plan.fill(pool, policy)
	plan.settle()
	return plan
}

// fail notes why the plan is not what was asked for.
func (p *Plan) fail(format string, args ...any) {
	p.Feasible = false
	p.Reasons = append(p.Reasons, fmt.Sprintf(format, args...))
}

// cover sets the head.
func (p *Plan) cover(pool Pool) {
	if pool.Widest.IsZero() {
		return // no pods, or none that define the biggest
	}
	if fitsOne(pool.Widest, pool.Shapes) {
		p.Head = []Group{{pool.Widest, 1}}
		return
	}
	biggest := []Amounts{pool.WidestCPU}
	if pool.WidestMemory != pool.WidestCPU {
		biggest = append(biggest, pool.WidestMemory)
	}
	for _, size := range biggest {
		if !fitsOne(size, pool.Shapes) {
			p.fail("a pod of %s fits no usable node of the pool: no room is held for it", size)
			continue
		}
		p.Head = append(p.Head, Group{size, 1})
	}
}

func (p *Plan) headTotal() Amounts {
	var sum Amounts
	for _, group := range p.Head {
		sum = sum.Plus(group.total())
	}
	return sum
}

// fill sets the rest of the placeholders.
func (p *Plan) fill(pool Pool, policy Policy) {
	if p.rem.IsZero() {
		return
	}
	average := pool.Allocatable.Over(int64(pool.Nodes))
	p.bound = p.largest(pool, average.Over(max(policy.Granularity, 1)))
	left := policy.left(p.Head)
	if p.number(p.bound) > left {
		// Fewer and larger ones, as large as may be.
		p.bound = p.largest(pool, average)
	}
	n := p.number(p.bound)
	if n == 0 {
		return // nothing of what is missing can be held
	}
	p.pitch = p.smoothSize(p.bound)
	if n > left {
		if policy.MaxPlaceholders > 0 {
			p.fail("%d placeholders are wanted, maxPlaceholders allows %d", uint64(n)+uint64(len(p.Head)), policy.MaxPlaceholders)
		} else {
			p.fail("%d placeholders are wanted, there cannot be more than %d: the pods are many times as large as the nodes, or the rate is", uint64(n)+uint64(len(p.Head)), int64(MaxCount))
		}
		if left > 0 {
			p.Rest = Group{p.bound, left}
		}
		return
	}
	p.Rest = Group{Count: n}
	for r := range p.rem {
		p.Rest.Size[r] = min(divUp(p.rem[r], n), p.bound[r])
	}
	// A whole number of MiB reads better, where it may be.
	if whole := divUp(p.Rest.Size[Memory], mebibyte) * mebibyte; whole <= p.bound[Memory] {
		p.Rest.Size[Memory] = whole
	}
}

// largest returns the largest size that a placeholder may have: wished, but no
// larger than the biggest pod, and such that it fits one node.
func (p *Plan) largest(pool Pool, wished Amounts) Amounts {
	s := wished
	if !pool.Widest.IsZero() {
		s = s.Least(pool.Widest)
	}
	for r := range s {
		if p.rem[r] == 0 {
			s[r] = 0 // nothing of it is missing
		}
	}
	if fitsOne(s, pool.Shapes) {
		return s
	}
	// The shape that makes do with the fewest placeholders; the first of equals.
	best, fewest := Amounts{}, int64(0)
	for _, shape := range pool.Shapes {
		if cut := s.Least(shape); !cut.IsZero() {
			if n := p.number(cut); n > 0 && (fewest == 0 || n < fewest) {
				best, fewest = cut, n
			}
		}
	}
	return best
}

// number returns how many placeholders of a size make up what is missing; what
// a size has nothing of is not made up. It is 0 if none does.
func (p *Plan) number(size Amounts) int64 {
	var n int64
	for r := range size {
		if size[r] > 0 {
			n = max(n, divUp(p.rem[r], size[r]))
		}
	}
	return n
}

// smoothSize returns rem / max(1, the largest rem / bound).
func (p *Plan) smoothSize(bound Amounts) Amounts {
	lead := -1
	for r := range bound {
		if bound[r] > 0 && p.rem[r] > bound[r] && (lead < 0 || ratioLess(p.rem[lead], bound[lead], p.rem[r], bound[r])) {
			lead = r
		}
	}
	if lead < 0 {
		return p.rem
	}
	var size Amounts
	for r := range size {
		size[r] = saturate.MulDivUp(p.rem[r], bound[lead], p.rem[lead])
	}
	return size
}

// ratioLess reports whether a/b < c/d; b and d are at least 1.
func ratioLess(a, b, c, d int64) bool {
	return saturate.MulDiv(a, Millionth, b) < saturate.MulDiv(c, Millionth, d)
}

// settle sums up, and says what is missing or over.
func (p *Plan) settle() {
	p.Total = p.headTotal().Plus(p.Rest.total())
	for r, name := range [resources]string{"CPU", "memory"} {
		if p.Total[r] < p.Target[r] && p.Rest.Size[r] == 0 {
			p.fail("%s is missing that no placeholder can have: no pod that may define the biggest requests any, or no node has any", name)
		}
	}
	// Less than a hundredth is rounding.
	over := p.Total.Minus(p.Target)
	if !over.FitsIn(p.Target.Over(100)) && p.Feasible {
		if len(p.Head) > 0 && p.rem.IsZero() {
			p.Reasons = append(p.Reasons, fmt.Sprintf("room for the biggest pod is %s more than the rate asks for", over))
		} else {
			p.Reasons = append(p.Reasons, fmt.Sprintf("whole placeholders, and room for the biggest pod, are %s more than the rate asks for", over))
		}
	}
}

// String writes amounts for people: 1500m CPU and 2048 MiB.
func (a Amounts) String() string {
	return fmt.Sprintf("%dm CPU and %d MiB", a[CPU], divUp(a[Memory], mebibyte))
}
