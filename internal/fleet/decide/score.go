package decide

import (
	"math"
	"math/bits"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
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
	// feasible are the indexes of the feasible clusters, ascending.
	feasible []int32
	// scores has a score for each cluster, with any value at first; the prioritizer sets the scores of the feasible clusters.
	scores []int8
}

// scoreBalance scores 2 x trunc(100 x (0.5 - n/max)), where n is the number of decisions of other placements for the cluster, and max the
// maximum of all clusters in the fleet; 100 if max is 0.
func scoreBalance(_ *Prioritizer, s *scoring) {
	others := s.decisionsOfOthers()
	var most int64
	for _, n := range others {
		most = max(most, int64(n))
	}
	for _, i := range s.feasible {
		s.scores[i] = balance(int64(others[i]), most)
	}
}

// decisionsOfOthers returns the number of decisions of other placements by cluster.
func (s *scoring) decisionsOfOthers() []int32 {
	others := s.decision.others
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

// scoreSteady scores 100 if the placement has selected the cluster already, else 0.
func scoreSteady(_ *Prioritizer, s *scoring) {
	clear(s.scores)
	for _, i := range s.request.Chosen {
		s.scores[i] = maxScore
	}
}

// scoreRatio returns the prioritizer ResourceRatio of a resource: 200 x (allocatable/capacity - 0.5), truncated toward zero. It has no
// data if either is missing, or if the capacity is 0.
func scoreRatio(resource resources.Index) func(*Prioritizer, *scoring) {
	return func(_ *Prioritizer, s *scoring) {
		for _, i := range s.feasible {
			allocatable, capacity := s.request.Fleet[i].Allocatable[resource], s.request.Fleet[i].Capacity[resource]
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

// scoreAllocatable returns the prioritizer ResourceAllocatable of a resource: 200 x ((allocatable - min)/(max - min) - 0.5), truncated
// toward zero, with min and max over the feasible clusters; 100 if they are equal. It has no data if allocatable is missing.
func scoreAllocatable(resource resources.Index) func(*Prioritizer, *scoring) {
	return func(_ *Prioritizer, s *scoring) {
		least, most := int64(math.MaxInt64), int64(-1)
		for _, i := range s.feasible {
			if amount := s.request.Fleet[i].Allocatable[resource]; amount >= 0 {
				least, most = min(least, amount), max(most, amount)
			}
		}
		for _, i := range s.feasible {
			switch amount := s.request.Fleet[i].Allocatable[resource]; {
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
	if 2*part < total {
		return -percent(total-2*part, total)
	}
	return percent(2*part-total, total)
}

// percent returns 100 x part / total, rounded down; part is at most total.
func percent(part, total uint64) int8 {
	high, low := bits.Mul64(part, maxScore)
	quotient, _ := bits.Div64(high, low, total)
	return int8(quotient)
}

func scoreAddOn(p *Prioritizer, s *scoring) {
	for _, i := range s.feasible {
		s.scores[i] = noData
		reported := s.request.Fleet[i].Scores[p.Coordinate.ResourceName]
		if reported == nil || s.request.Now > reported.Until {
			continue
		}
		value, known := reported.Values[p.Coordinate.ScoreName]
		if !known || value < -maxScore || value > maxScore {
			continue
		}
		s.scores[i] = int8(value)
		if reported.Until != Forever {
			s.decision.limitTo(reported.Until + 1) // the first second in which the score is not valid
		}
	}
}

// maxWait is the wait in seconds from which FitWait is -100.
const maxWait = 1200

// scoreFits sets the score of each feasible cluster by its fit: 100 if it is selected already, because the workload uses its capacity. A
// cluster has no data if the placement names no workload or the cluster has no valid ClusterCapacity.
func (s *scoring) scoreFits(score func(*fit.Fit) int8) {
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

// scoreFitReplicas scores 200 x (f/2r - 0.5), truncated toward zero, where r is the number of replicas of the workload and f the number
// that fit with slack, at most 2r; 100 if r is 0.
func scoreFitReplicas(_ *Prioritizer, s *scoring) {
	most := 2 * s.request.Replicas
	s.scoreFits(func(f *fit.Fit) int8 {
		if most == 0 {
			return maxScore
		}
		return scale(uint64(min(f.WithSlack, most)), uint64(most))
	})
}

// scoreFitWait scores 100 - 200 x wait/1200 s, truncated toward zero, at least -100, where wait is the time until all replicas can be
// scheduled. It has no data if they never fit or the time is unknown.
func scoreFitWait(_ *Prioritizer, s *scoring) {
	s.scoreFits(func(f *fit.Fit) int8 {
		if f.Wait < 0 {
			return noData
		}
		return int8((maxScore*maxWait - 2*maxScore*min(f.Wait, maxWait)) / maxWait)
	})
}

// scoreFitCost scores 200 x ((max - cost)/(max - min) - 0.5), truncated toward zero, where cost is the price of the nodes to be added, and
// min and max are over the feasible clusters; 100 if they are equal. It has no data if the replicas never fit or the price is unknown.
func scoreFitCost(_ *Prioritizer, s *scoring) {
	least, most := int64(math.MaxInt64), int64(-1)
	s.scoreFits(func(f *fit.Fit) int8 {
		if f.Cost >= 0 {
			least, most = min(least, f.Cost), max(most, f.Cost)
		}
		return noData
	})
	s.scoreFits(func(f *fit.Fit) int8 {
		switch {
		case f.Cost < 0:
			return noData
		case least == most:
			return maxScore
		}
		return scale(uint64(most-f.Cost), uint64(most-least))
	})
}
