// Package usage makes up what pods use over time, as multiples of what they
// request. Traces of requests rarely say it, and what they leave out has to be
// generated: with a seed, from shapes that can be chosen and swept.
//
// The use of a pod at a step is the quantile of its shape at a normal score
//
//	z = sqrt(between) z_pod + sqrt(together) z_group(t) + sqrt(1 - between - together) z_own(t)
//
// whose parts are independent and standard normal: what the pod always has
// above or below others, what it shares with the pods of its group at that time,
// and its own change. The score of all pods over all time is standard normal
// whatever the parts weigh, so that the shape keeps its mean and deviation (a
// Gaussian copula). z_group and z_own are drawn for every so many steps, the
// hold, and between two draws a and b they are
//
//	((1-f) a + f b) / sqrt((1-f)^2 + f^2), f from 0 to 1
//
// which is standard normal too, and does not jump.
//
// Everything is a pure function of the seed, the pod, its group and the step. It
// is drawn by a hash of these and not from a stream of random numbers, so that
// any step can be asked for: Model.At costs a few draws, Model.Next a few
// nanoseconds as long as the steps go on. CPU and memory are independent of each
// other. On one architecture the same input gives the same bits.
package usage

import "math"

// The resources, as indexes.
const (
	// CPU time.
	CPU = iota
	// Memory, the working set.
	Memory
	// Resources is how many there are.
	Resources
)

// Model makes up the use of pods. It does not change and can be shared.
type Model struct {
	seed   uint64
	curves [Resources]curve
}

// curve is a shape made ready.
type curve struct {
	// table has the quantiles of the shape over normal scores.
	table []float64
	// between, together and own are the square roots of the weights.
	between, together, own float64
	// from and to are the weights of two draws, for each step between them.
	from, to []float64
	// amplitude, period and phases are of a day; none if the amplitude is 0.
	amplitude, period, phases float64
}

// New makes a model of a specification, for a seed. It is an error if a shape
// asks for what cannot be.
func New(spec Spec, seed uint64) (*Model, error) {
	m := &Model{seed: seed}
	for r, shape := range spec {
		table, err := shape.quantiles()
		if err != nil {
			return nil, err
		}
		c := curve{
			table:    table,
			between:  math.Sqrt(shape.Between),
			together: math.Sqrt(shape.Together),
			own:      math.Sqrt(max(1-shape.Between-shape.Together, 0)),
			from:     make([]float64, shape.Hold),
			to:       make([]float64, shape.Hold),
		}
		if shape.Kind == Diurnal {
			c.amplitude, c.period, c.phases = shape.Amplitude, float64(shape.Period), shape.Phases
		}
		for i := range shape.Hold {
			f := float64(i) / float64(shape.Hold)
			norm := math.Sqrt((1-f)*(1-f) + f*f)
			c.from[i], c.to[i] = (1-f)/norm, f/norm
		}
		m.curves[r] = c
	}
	return m, nil
}

// Cursor is a place in the life of one pod, for Model.Next.
type Cursor struct {
	pod, group uint64
	tracks     [Resources]track
}

// track is the place in one resource: the draws on both sides of it.
type track struct {
	knot            int64
	fixed, from, to float64
	phase           float64
}

// Cursor returns the place at which the life of a pod begins. Pods have
// different numbers, and pods of a group have the same group.
func (m *Model) Cursor(pod, group uint64) Cursor {
	c := Cursor{pod: pod, group: group}
	for r := range m.curves {
		curve := &m.curves[r]
		c.tracks[r] = track{
			knot:  -2,
			fixed: curve.between * normal(m.seed, streams[r].pod, pod, 0),
			phase: curve.phases * uniform(m.seed, streams[r].phase, pod, 0),
		}
	}
	return c
}

// Next returns what the pod of a cursor uses at a step, as multiples of what it
// requests, and moves the cursor there. Steps may come in any order; going on by
// little is cheapest. Steps before 0 are as 0.
func (m *Model) Next(c *Cursor, step int64) (cpu, memory float64) {
	step = max(step, 0)
	return m.curves[CPU].at(m.seed, CPU, c, step), m.curves[Memory].at(m.seed, Memory, c, step)
}

// At returns what Next does, for any pod and step.
func (m *Model) At(pod, group uint64, step int64) (cpu, memory float64) {
	c := m.Cursor(pod, group)
	return m.Next(&c, step)
}

func (c *curve) at(seed uint64, resource int, cursor *Cursor, step int64) float64 {
	t, hold := &cursor.tracks[resource], int64(len(c.from))
	knot := step / hold
	if knot != t.knot {
		if knot == t.knot+1 {
			t.from = t.to
		} else {
			t.from = c.draw(seed, resource, cursor, knot)
		}
		t.to, t.knot = c.draw(seed, resource, cursor, knot+1), knot
	}
	i := step % hold
	value := c.quantile(t.fixed + c.from[i]*t.from + c.to[i]*t.to)
	if c.amplitude > 0 {
		value *= 1 + c.amplitude*math.Sin(2*math.Pi*(math.Mod(float64(step), c.period)/c.period+t.phase))
	}
	return value
}

// draw returns the changing part of the score at a knot.
func (c *curve) draw(seed uint64, resource int, cursor *Cursor, knot int64) float64 {
	var score float64
	if c.own > 0 {
		score = c.own * normal(seed, streams[resource].own, cursor.pod, uint64(knot))
	}
	if c.together > 0 {
		score += c.together * normal(seed, streams[resource].group, cursor.group, uint64(knot))
	}
	return score
}

// quantile looks a score up.
func (c *curve) quantile(z float64) float64 {
	at := min(max((z+tableEnd)*tableDensity, 0), float64(len(c.table)-1))
	i := min(int(at), len(c.table)-2)
	f := at - float64(i)
	return c.table[i] + f*(c.table[i+1]-c.table[i])
}

// Demand returns what a pod asks for: a multiple of what its use is reckoned
// from, at most its limit. A limit of 0 is none.
func Demand(multiple, base, limit float64) float64 {
	if limit > 0 {
		return min(multiple*base, limit)
	}
	return multiple * base
}
