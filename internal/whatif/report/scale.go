package report

import (
	"math"
	"strconv"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Scale maps values to coordinates. Values outside of its range map to its ends and NaN to its
// start, so that every coordinate is finite.
type Scale struct {
	low, high  float64 // values
	start, end float64 // coordinates
}

// NewScale returns a linear scale that maps low to start and high to end. An empty or infinite range
// is replaced by the range from 0 to 1.
func NewScale(low, high, start, end float64) Scale {
	if !format.IsFinite(low) || !format.IsFinite(high) || !format.IsFinite(high-low) || high <= low {
		low, high = 0, 1
	}
	return Scale{low: low, high: high, start: start, end: end}
}

// At returns the coordinate of a value.
func (s Scale) At(v float64) float64 {
	if math.IsNaN(v) {
		return s.start
	}
	fraction := (min(max(v, s.low), s.high) - s.low) / (s.high - s.low)
	return s.start + fraction*(s.end-s.start)
}

// maxTicks is the largest number of ticks of an axis.
const maxTicks = 20

// Tick is a labeled value of an axis.
type Tick struct {
	Value float64
	Label string
}

// Ticks returns round values within the scale, at most about the given number of them.
func (s Scale) Ticks(parts int) []Tick {
	step := Step(s.high-s.low, parts)
	decimals := stepDecimals(step)
	first := math.Ceil(s.low/step - 1e-9)
	if first == 0 {
		first = 0 // Replaces -0.
	}
	var ticks []Tick
	for i := first; i*step <= s.high+step*1e-9 && len(ticks) < maxTicks; i++ {
		ticks = append(ticks, Tick{i * step, format.Format(i*step, decimals)})
	}
	return ticks
}

// Step returns the smallest round number (1, 2, 2.5 or 5 times a power of ten) that divides a range
// into at most the given number of parts. It returns 1 for a range that is too small or too large for an
// axis.
func Step(span float64, parts int) float64 {
	v := span / float64(parts)
	if !format.IsFinite(v) || v < 1e-12 || v > 1e15 {
		return 1
	}
	// Parsing the power of ten is exact, unlike math.Pow.
	power, err := strconv.ParseFloat("1e"+strconv.Itoa(int(math.Floor(math.Log10(v)))), 64)
	if err != nil {
		return 1
	}
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= v*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// stepDecimals returns the number of decimals that multiples of a step need.
func stepDecimals(step float64) int {
	decimals := 0
	for decimals < format.MaxDecimals && math.Abs(step-math.Round(step)) > 1e-9 {
		step *= 10
		decimals++
	}
	return decimals
}

// Max returns the highest of the finite values, at least 0.
func Max(values ...float64) float64 {
	var highest float64
	for _, v := range values {
		if format.IsFinite(v) {
			highest = max(highest, v)
		}
	}
	return highest
}
