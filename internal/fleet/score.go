package fleet

import (
	"math"
	"math/bits"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// maxScore is the highest score of a prioritizer, and -maxScore the lowest.
const maxScore = 100

// noData is the score of a cluster without data.
const noData = math.MinInt8

// scoring is the input and the output of a prioritizer.
type scoring struct {
	request  *Request
	decision *Decision
	index    *Index
	// feasible are the indexes of the feasible clusters, ascending.
	feasible []int32
	// scores has a score for each cluster, with any value at first; the prioritizer sets the scores of the feasible clusters.
	scores []int8
}

func scoreBalance(_ *Prioritizer, s *scoring) {
	others := s.decisionsOfOthers()
	var most int64
	for _, n := range others {
		most = max(most, int64(n))
	}
	var table [256]int8 // the scores of the numbers up to most
	for n := int64(0); n <= min(most, int64(len(table)-1)); n++ {
		table[n] = balance(n, most)
	}
	for _, i := range s.feasible {
		if n := others[i]; int(n) < len(table) {
			s.scores[i] = table[n]
		} else {
			s.scores[i] = balance(int64(n), most)
		}
	}
}

// decisionsOfOthers returns the number of decisions of other placements by cluster, in a buffer of the index.
func (s *scoring) decisionsOfOthers() []int32 {
	others := s.index.others
	clear(others)
	for i, n := range s.request.Counts[:min(len(s.request.Counts), len(others))] {
		others[i] = max(n, 0)
	}
	for _, i := range s.request.Chosen {
		others[i] = max(others[i]-1, 0)
	}
	return others
}

// balance returns 2 x trunc(100 x (0.5 - n/most)), or 100 if most is 0; n is in
// [0, most], and most at most 2^31.
func balance(n, most int64) int8 {
	if most == 0 {
		return maxScore
	}
	return int8(2 * (maxScore / 2 * (most - 2*n) / most))
}

func scoreSteady(_ *Prioritizer, s *scoring) {
	clear(s.scores)
	for _, i := range s.request.Chosen {
		s.scores[i] = maxScore
	}
}

// scoreRatio returns the prioritizer ResourceRatio of a resource.
func scoreRatio(resource resources.Index) func(*Prioritizer, *scoring) {
	return func(_ *Prioritizer, s *scoring) {
		allocatables, capacities := s.index.allocatable[resource], s.index.capacity[resource]
		for _, i := range s.feasible {
			allocatable, capacity := allocatables[i], capacities[i]
			switch {
			case allocatable < 0 || capacity <= 0:
				s.scores[i] = noData
			case allocatable >= capacity:
				s.scores[i] = maxScore
			default:
				s.scores[i] = scale(uint64(allocatable), uint64(capacity))
			}
		}
	}
}

// scoreAllocatable returns the prioritizer ResourceAllocatable of a resource.
func scoreAllocatable(resource resources.Index) func(*Prioritizer, *scoring) {
	return func(_ *Prioritizer, s *scoring) {
		amounts := s.index.allocatable[resource]
		least, most := int64(math.MaxInt64), int64(-1)
		for _, i := range s.feasible {
			if amount := amounts[i]; amount >= 0 {
				least, most = min(least, amount), max(most, amount)
			}
		}
		for _, i := range s.feasible {
			switch amount := amounts[i]; {
			case amount < 0:
				s.scores[i] = noData
			case least == most:
				s.scores[i] = maxScore
			default:
				s.scores[i] = scale(uint64(amount-least), uint64(most-least))
			}
		}
	}
}

// scale returns 200 x (part/total - 0.5), truncated toward zero. total is in
// [1, 2^63), part in [0, total].
func scale(part, total uint64) int8 {
	// 200 x (part/total - 1/2) = (200 part - 100 total) / total
	if total < 1<<55 { // 200 x total < 2^63; division truncates toward zero
		return int8((2*maxScore*int64(part) - maxScore*int64(total)) / int64(total))
	}
	if double := 2 * part; double >= total {
		return int8(percent(double-total, total))
	}
	return -int8(percent(total-2*part, total))
}

// percent returns 100 x part / total, rounded down; part is at most total.
func percent(part, total uint64) uint64 {
	high, low := bits.Mul64(part, maxScore)
	if high == 0 {
		return low / total
	}
	quotient, _ := bits.Div64(high, low, total)
	return quotient
}

func scoreAddOn(p *Prioritizer, s *scoring) {
	reported := p.Scores
	for _, i := range s.feasible {
		for len(reported) > 0 && reported[0].Cluster < i {
			reported = reported[1:]
		}
		s.scores[i] = noData
		if len(reported) == 0 || reported[0].Cluster != i {
			continue
		}
		score := reported[0]
		if score.Value < -maxScore || score.Value > maxScore || s.request.Now > score.Until {
			continue
		}
		s.scores[i] = int8(score.Value)
		if score.Until != Forever {
			s.decision.changesBy(score.Until + 1) // the first second in which the score is not valid
		}
	}
}

// maxWait is the wait in seconds from which FitWait is -100.
const maxWait = 1200

// eachFit sets the score of each feasible cluster by its fit.
func (s *scoring) eachFit(score func(*capacity.Fit) int8) {
	for _, i := range s.feasible {
		switch {
		case s.request.Fits == nil:
			s.scores[i] = noData
		case s.decision.Clusters[i].WasChosen:
			s.scores[i] = maxScore
		case s.request.Fits[i].Now < 0:
			s.scores[i] = noData
		default:
			s.scores[i] = score(&s.request.Fits[i])
		}
	}
}

func scoreFitReplicas(_ *Prioritizer, s *scoring) {
	most := 2 * s.request.Replicas
	s.eachFit(func(f *capacity.Fit) int8 {
		if most == 0 {
			return maxScore
		}
		return scale(uint64(min(f.WithSlack, most)), uint64(most))
	})
}

func scoreFitWait(_ *Prioritizer, s *scoring) {
	s.eachFit(func(f *capacity.Fit) int8 {
		if f.Wait < 0 {
			return noData
		}
		return int8((maxScore*maxWait - 2*maxScore*min(f.Wait, maxWait)) / maxWait)
	})
}

func scoreFitCost(_ *Prioritizer, s *scoring) {
	least, most := int64(math.MaxInt64), int64(-1)
	s.eachFit(func(f *capacity.Fit) int8 {
		if f.Cost >= 0 {
			least, most = min(least, f.Cost), max(most, f.Cost)
		}
		return noData
	})
	s.eachFit(func(f *capacity.Fit) int8 {
		switch {
		case f.Cost < 0:
			return noData
		case least == most:
			return maxScore
		}
		return scale(uint64(most-f.Cost), uint64(most-least))
	})
}
