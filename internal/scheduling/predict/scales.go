package predict

import "math"

const (
	// levels is the number of time scales. Level j compares periods of shortest x 2^j seconds, up to 34 hours.
	levels   = 12
	shortest = 60.0
	// priorPairs is the weight of the prior at each level, in pairs of periods.
	priorPairs = 10
	// continuation is how much a level that was not measured follows the level before it: with 1 it is expected to vary as much, with 0
	// as much as before the first measurement.
	continuation = 0.65
	// extreme is the multiple of the variance of its level above which a difference counts as this multiple.
	extreme = 30
	// longestGap is the time in seconds between two readings above which the usage between them is unknown.
	longestGap = 3600
)

// scales is the variance of usage over time by time scale, in the unit of square (see classState.square).
//
// Usage is correlated over hours and days: the mean of an hour says less about the mean of a week than the variance of its
// minutes suggests. For two adjacent periods of the same length with the means a and b, on average (the Haar decomposition):
//
//	var(a) = var((a+b)/2) + ((a-b)/2)^2
type scales struct {
	// above are the sums of the squared differences of a level, below their number.
	above, below [levels]float64
	// after is the variance of the mean over shortest x 2^j seconds.
	after [levels + 1]float64
}

func (s *scales) decay(factor float64) {
	for j := range s.above {
		s.above[j] *= factor
		s.below[j] *= factor
	}
}

// usePrior computes the variances. The prior has the same part of variance at each level. The prior of a level is the lower, the
// less the level before it varies: prior(j+1) = flat x (level(j) / flat)^continuation.
func (s *scales) usePrior(variance float64) {
	flat := variance / (levels + 1)
	var level [levels]float64
	prior := flat
	for j := range level {
		level[j] = (s.above[j] + priorPairs*prior) / (s.below[j] + priorPairs)
		prior = flat * math.Pow(level[j]/flat, continuation)
	}
	s.after[levels] = level[levels-1] // as much as the longest level, for all longer ones
	for j := levels - 1; j >= 0; j-- {
		s.after[j] = s.after[j+1] + level[j]
	}
}

// varianceOver returns the variance of the mean over a time.
func (s *scales) varianceOver(seconds float64) float64 {
	x := math.Log2(seconds / shortest)
	switch {
	case !(x > 0):
		return s.after[0]
	case x >= levels:
		return s.after[levels] * math.Exp2(levels-x)
	}
	j := int(x)
	return s.after[j] + (x-float64(j))*(s.after[j+1]-s.after[j])
}

// periods has the usage of the periods of a pod that have no partner yet.
type periods struct {
	// half is the mean of the first period of the pair of each level, for the levels whose bit is set in begun.
	half  [levels]float32
	begun uint16
	// sum and seconds are the present shortest period.
	sum, seconds float32
}

// add adds the mean usage of some seconds. found is called with the squared difference of each pair that is complete.
func (p *periods) add(mean, seconds float64, found func(level int, squared float64)) {
	if seconds > longestGap {
		*p = periods{}
		seconds = shortest
	}
	p.sum += float32(mean * seconds)
	p.seconds += float32(seconds)
	if p.seconds < 0.75*shortest {
		return
	}
	mean = float64(p.sum / p.seconds)
	level := max(int(math.Round(math.Log2(float64(p.seconds)/shortest))), 0)
	p.begun &^= 1<<level - 1
	p.sum, p.seconds = 0, 0
	for ; level < levels; level++ {
		if p.begun&(1<<level) == 0 {
			p.half[level] = float32(mean)
			p.begun |= 1 << level
			return
		}
		p.begun &^= 1 << level
		first := float64(p.half[level])
		found(level, (mean-first)*(mean-first)/4)
		mean = (mean + first) / 2
	}
}
