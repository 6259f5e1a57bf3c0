package recording

import (
	"math"
	"slices"
)

// Series is the usage at consecutive steps. A value has 16 bits on a logarithmic scale, with a relative error
// of at most 0.07 %. The zero value is empty.
type Series struct {
	// First is the step of the first value.
	First int
	codes []uint16
}

const (
	// gapCode is the code of a gap, zeroCode the code of values below half of the smallest value.
	gapCode  = 0
	zeroCode = 1
	// firstCode is the code of the smallest value, which is 2 to the power of smallest.
	firstCode = 2
	smallest  = -20
	// perOctave is the number of codes between a value and twice the value.
	perOctave = 512
)

// encode returns the code of a value. Negative values have zeroCode, NaN has gapCode.
func encode(value float64) uint16 {
	switch {
	case math.IsNaN(value):
		return gapCode
	case value < math.Ldexp(1, smallest-1):
		return zeroCode
	}
	code := math.Round((math.Log2(value)-smallest)*perOctave) + firstCode
	return uint16(min(max(code, firstCode), math.MaxUint16))
}

// powers has the fractions of an octave.
var powers = func() (out [perOctave]float64) {
	for i := range out {
		out[i] = math.Exp2(float64(i) / perOctave)
	}
	return out
}()

// decode returns the value of a code, NaN for a gap.
func decode(code uint16) float64 {
	switch code {
	case gapCode:
		return math.NaN()
	case zeroCode:
		return 0
	}
	n := int(code) - firstCode
	return math.Ldexp(powers[n%perOctave], n/perOctave+smallest)
}

// NewSeries returns the series of values from the first step on. NaN is a gap.
func NewSeries(first int, values ...float64) Series {
	s := Series{First: first}
	for _, value := range values {
		s.codes = append(s.codes, encode(value))
	}
	return s
}

// Len returns the number of steps from the first to the last value, gaps included.
func (s *Series) Len() int { return len(s.codes) }

// End returns the step after the last value.
func (s *Series) End() int { return s.First + len(s.codes) }

// start returns the step of the first value, MaxSteps if there is none.
func (s *Series) start() int {
	if len(s.codes) == 0 {
		return MaxSteps
	}
	return s.First
}

// At returns the value at a step, and false if there is none.
func (s *Series) At(step int) (value float64, ok bool) {
	i := step - s.First
	if i < 0 || i >= len(s.codes) || s.codes[i] == gapCode {
		return math.NaN(), false
	}
	return decode(s.codes[i]), true
}

// nearest returns the value at a step of a series that is not empty, or else the first or the last value.
func (s *Series) nearest(step int) float64 {
	return decode(s.codes[min(max(step-s.First, 0), len(s.codes)-1)])
}

// withoutGaps returns the series with the value before each gap repeated, and the number of gaps. The series does not start with a gap.
func (s *Series) withoutGaps() (filled Series, gaps int) {
	filled = *s
	for i, code := range s.codes {
		if code != gapCode {
			continue
		}
		if gaps == 0 {
			filled.codes = slices.Clone(s.codes)
		}
		gaps++
		filled.codes[i] = filled.codes[i-1]
	}
	return filled, gaps
}

// Set sets the value at a step, which must not be negative. The steps between the series and the value become gaps.
// NaN sets a gap.
func (s *Series) Set(step int, value float64) { s.put(step, []uint16{encode(value)}) }

// put sets the codes from a step on. It may keep them.
func (s *Series) put(first int, codes []uint16) {
	if len(codes) == 0 {
		return
	}
	if len(s.codes) == 0 {
		s.First, s.codes = first, codes
		return
	}
	if first < s.First {
		s.codes = slices.Insert(s.codes, 0, make([]uint16, s.First-first)...)
		s.First = first
	}
	if need := first - s.First + len(codes) - len(s.codes); need > 0 {
		s.codes = append(s.codes, make([]uint16, need)...)
	}
	copy(s.codes[first-s.First:], codes)
}

// growth returns by how many values the series grows when values are set from a step on.
func (s *Series) growth(first, count int) int {
	if len(s.codes) == 0 || count == 0 {
		return count
	}
	return max(s.First-first, 0) + max(first+count-s.End(), 0)
}

// clip removes values from a step on, and gaps at both ends.
func (s *Series) clip(steps int) {
	s.codes = s.codes[:min(len(s.codes), max(steps-s.First, 0))]
	for len(s.codes) > 0 && s.codes[len(s.codes)-1] == gapCode {
		s.codes = s.codes[:len(s.codes)-1]
	}
	for len(s.codes) > 0 && s.codes[0] == gapCode {
		s.First, s.codes = s.First+1, s.codes[1:]
	}
	if len(s.codes) == 0 {
		*s = Series{}
	}
}
