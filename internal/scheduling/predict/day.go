package predict

import "math"

const (
	// oneDay is a day in seconds.
	oneDay = 24 * 3600.0
	// dayHalfLife is the time in seconds after which a day counts half.
	dayHalfLife = 7 * oneDay
	// dayScale is the time in seconds over which random variation looks like a day.
	dayScale = oneDay / 4
)

// day is how the usage of a workload varies over the day, as the first harmonic: the sums over its pods of the deviations of their usage
// times the cosine and sine of the time of the day.
type day struct {
	cosine, sine float64
	// weight is the sum of the seconds of all pods, span the time in seconds that is covered.
	weight, span float64
	reading      uint64
}

// daytime is the cosine and sine of a time of the day, and how the days before decay.
type daytime struct{ cosine, sine, decay float64 }

func newDaytime(second, elapsed float64) daytime {
	sine, cosine := math.Sincos(2 * math.Pi * math.Mod(second, oneDay) / oneDay)
	return daytime{cosine, sine, math.Exp2(-elapsed / dayHalfLife)}
}

// add adds the deviation of a pod from its mean.
func (d *day) add(t *daytime, deviation, seconds float64, reading uint64) {
	if d.reading != reading {
		d.cosine, d.sine, d.weight, d.span = d.cosine*t.decay, d.sine*t.decay, d.weight*t.decay, d.span*t.decay+seconds
		d.reading = reading
	}
	d.cosine += deviation * t.cosine * seconds
	d.sine += deviation * t.sine * seconds
	d.weight += seconds
}

// Wave is how much usage is above its mean at the time of the day 0:00 and at 6:00 UTC, as far as it follows a wave of a day.
type Wave struct{ Cosine, Sine float64 }

// amplitude returns how much usage is above its mean at its peak.
func (w Wave) amplitude() float64 { return math.Sqrt(w.Cosine*w.Cosine + w.Sine*w.Sine) }

// deviationAt returns how much usage is above its mean at a time of the day.
func (w Wave) deviationAt(t *daytime) float64 { return w.Cosine*t.cosine + w.Sine*t.sine }

func (w *Wave) add(other Wave) { w.Cosine, w.Sine = w.Cosine+other.Cosine, w.Sine+other.Sine }

// estimate returns the wave, at most as high as a mean, shrunk toward none: it is none before a day is known, and as far as random
// variation of a variance explains it (James-Stein).
func (d *day) estimate(mean, variance float64) Wave {
	if d.span < oneDay || d.weight <= 0 {
		return Wave{}
	}
	wave := Wave{2 * d.cosine / d.weight, 2 * d.sine / d.weight}
	noise := 2 * variance * min(d.span/d.weight, 1) * oneDay / d.span
	power := wave.Cosine*wave.Cosine + wave.Sine*wave.Sine
	if power <= noise {
		return Wave{}
	}
	shrinkage := min(1-noise/power, mean/math.Sqrt(power))
	return Wave{shrinkage * wave.Cosine, shrinkage * wave.Sine}
}
