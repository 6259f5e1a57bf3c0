package placement

import (
	"math"
	"math/bits"
)

// maxScore is the highest score of a prioritizer, and its negative the lowest.
const maxScore = 100

// noData stands for the score of a cluster that there is no data of.
const noData = math.MinInt8

// score fills in what a prioritizer gives to the feasible clusters. The column
// has a place for each cluster of the fleet; feasible are their indexes,
// ascending.
func (p *Prioritizer) score(r *Request, d *Decision, feasible []int32, column []int8) {
	switch p.Kind {
	case Balance:
		scoreBalance(r, d, feasible, column)
	case Steady:
		for _, i := range feasible {
			if d.Clusters[i].Before {
				column[i] = maxScore
			}
		}
	case ResourceRatioCPU:
		scoreRatio(r, CPU, feasible, column)
	case ResourceRatioMemory:
		scoreRatio(r, Memory, feasible, column)
	case ResourceAllocatableCPU:
		scoreAllocatable(r, CPU, feasible, column)
	case ResourceAllocatableMemory:
		scoreAllocatable(r, Memory, feasible, column)
	case AddOn:
		p.scoreAddOn(r, d, feasible, column)
	}
}

func scoreBalance(r *Request, d *Decision, feasible []int32, column []int8) {
	others := func(i int) int64 {
		if i >= len(r.Counts) {
			return 0
		}
		n := int64(r.Counts[i])
		if d.Clusters[i].Before {
			n--
		}
		return max(n, 0)
	}
	var most int64
	for i := range r.Fleet {
		most = max(most, others(i))
	}
	for _, i := range feasible {
		column[i] = balance(others(int(i)), most)
	}
}

// balance returns 2 x trunc(100 x (0.5 - n/most)), and 100 if most is 0; n is in
// [0, most], and most at most 2^31.
func balance(n, most int64) int8 {
	if most == 0 {
		return maxScore
	}
	return int8(2 * (maxScore / 2 * (most - 2*n) / most))
}

func scoreRatio(r *Request, resource int, feasible []int32, column []int8) {
	for _, i := range feasible {
		allocatable, capacity := r.Fleet[i].Allocatable[resource], r.Fleet[i].Capacity[resource]
		switch {
		case allocatable < 0 || capacity <= 0:
			column[i] = noData
		case allocatable >= capacity:
			column[i] = maxScore
		default:
			column[i] = onScale(uint64(allocatable), uint64(capacity))
		}
	}
}

func scoreAllocatable(r *Request, resource int, feasible []int32, column []int8) {
	least, most := int64(math.MaxInt64), int64(-1)
	for _, i := range feasible {
		if amount := r.Fleet[i].Allocatable[resource]; amount >= 0 {
			least, most = min(least, amount), max(most, amount)
		}
	}
	for _, i := range feasible {
		switch amount := r.Fleet[i].Allocatable[resource]; {
		case amount < 0:
			column[i] = noData
		case least == most:
			column[i] = maxScore
		default:
			column[i] = onScale(uint64(amount-least), uint64(most-least))
		}
	}
}

// onScale returns 200 x (part/whole - 0.5), truncated toward zero. Whole is in
// [1, 2^63), part in [0, whole].
func onScale(part, whole uint64) int8 {
	// 200 x (part/whole - 1/2) = 100 x (2 part - whole) / whole
	if above := 2 * part; above >= whole {
		return int8(percent(above-whole, whole))
	}
	return -int8(percent(whole-2*part, whole))
}

// percent returns 100 x part / whole, rounded down; part is at most whole.
func percent(part, whole uint64) uint64 {
	high, low := bits.Mul64(part, maxScore)
	if high == 0 {
		return low / whole
	}
	quotient, _ := bits.Div64(high, low, whole)
	return quotient
}

func (p *Prioritizer) scoreAddOn(r *Request, d *Decision, feasible []int32, column []int8) {
	scores := p.Scores
	for _, i := range feasible {
		for len(scores) > 0 && scores[0].Cluster < i {
			scores = scores[1:]
		}
		column[i] = noData
		if len(scores) == 0 || scores[0].Cluster != i {
			continue
		}
		s := scores[0]
		if s.Value < -maxScore || s.Value > maxScore || r.Now > s.Until {
			continue
		}
		column[i] = int8(s.Value)
		if s.Until != Forever {
			d.expires(s.Until + 1) // the first second in which it is not valid
		}
	}
}
