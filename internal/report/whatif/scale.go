package whatif

import (
	"math"
	"strconv"
	"strings"
)

// scale takes values to places on a line. Values outside of it go to its ends, and
// what is no number to its beginning, so that whatever is drawn is finite.
type scale struct {
	low, high   float64 // values
	start, stop float64 // places
}

// newScale returns a scale from the lowest to the highest of some values.
func newScale(low, high, start, stop float64) scale {
	if !finite(low) || !finite(high) || !finite(high-low) || high <= low {
		low, high = 0, 1
	}
	return scale{low, high, start, stop}
}

// at returns the place of a value.
func (s scale) at(v float64) float64 {
	if math.IsNaN(v) {
		return s.start
	}
	part := (min(max(v, s.low), s.high) - s.low) / (s.high - s.low)
	return s.start + part*(s.stop-s.start)
}

// most returns the highest of values that are finite, 0 at least.
func most(values ...float64) float64 {
	var highest float64
	for _, v := range values {
		if finite(v) {
			highest = max(highest, v)
		}
	}
	return highest
}

// niceStep returns a round number (1, 2, 2.5 or 5 times a power of ten) of which at most
// so many make up a span.
func niceStep(span float64, parts int) float64 {
	rough := span / float64(parts)
	if !finite(rough) || rough < 1e-12 || rough > 1e15 {
		return 1
	}
	// Written out, powers of ten are as exact as they can be.
	power, err := strconv.ParseFloat("1e"+strconv.Itoa(int(math.Floor(math.Log10(rough)))), 64)
	if err != nil {
		return 1
	}
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= rough*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// maxTicks bounds the ticks of any axis.
const maxTicks = 20

// tick is a round value on an axis.
type tick struct {
	value float64
	label string
}

// ticks returns round values within a scale.
func (s scale) ticks(parts int) []tick {
	step := niceStep(s.high-s.low, parts)
	digits := stepDecimals(step)
	var at []tick
	for i := math.Ceil(s.low/step - 1e-9); i*step <= s.high+step*1e-9 && len(at) < maxTicks; i++ {
		at = append(at, tick{i * step, number(i*step, digits)})
	}
	return at
}

// stepDecimals returns how many digits multiples of a step need.
func stepDecimals(step float64) int {
	digits := 0
	for digits < maxDecimals && math.Abs(step-math.Round(step)) > 1e-9 {
		step *= 10
		digits++
	}
	return digits
}

// coordinate writes a place, to a tenth of a pixel.
func coordinate(v float64) string {
	if !finite(v) {
		v = 0
	}
	text := strconv.FormatFloat(v, 'f', 1, 64)
	text = strings.TrimSuffix(text, ".0")
	if text == "-0" {
		return "0"
	}
	return text
}
