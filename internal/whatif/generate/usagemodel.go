package generate

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// The resources, as indexes.
const (
	usageCPU = iota
	// usageMemory is the working set.
	usageMemory
	usageResources
)

// usageModel generates the usage of pods over time, as multiples of their requests,
// from a seed and a shape. Most traces have requests but no usage.
//
// The usage of a pod at a step is the quantile of its shape at the normal score
//
//	z = sqrt(workload) z_workload + sqrt(between) z_pod + sqrt(together) z_group(t)
//	  + sqrt(1 - workload - between - together) z_own(t)
//
// with independent standard normal terms: a constant of the pod's group, equal for later pods of
// the group, a constant of the pod, a term shared by the pods of the group at that time, and a term
// of the pod at that time. The score over all pods and steps is standard normal for any weights, so
// that the shape keeps its mean and deviation (a Gaussian copula). z_group and z_own are drawn
// every hold steps, and between two draws a and b they are
//
//	((1-f) a + f b) / sqrt((1-f)^2 + f^2), f from 0 to 1
//
// which is also standard normal, and continuous.
//
// Usage is a pure function of the seed, the pod, its group and the step. Draws are hashes
// of these, so that steps can be computed in any order: podUsage.At needs a few draws,
// and a few nanoseconds for consecutive steps. CPU and memory are independent. On
// one architecture the same input gives the same bits.
//
// A model is immutable and safe for concurrent use.
type usageModel struct {
	seed   uint64
	curves [usageResources]usageCurve
}

// usageCurve is a shape with precomputed tables.
type usageCurve struct {
	shape UsageShape
	// table has the quantiles of the shape by normal score.
	table []float64
	// workload, between, together and own are the square roots of the weights.
	workload, between, together, own float64
	// from and to are the weights of the previous and next draw, by step between them.
	from, to []float64
}

// newUsageModel returns the model of a specification and a seed. It returns an error if a shape is
// impossible.
func newUsageModel(spec UsageSpec, seed uint64) (*usageModel, error) {
	m := &usageModel{seed: seed}
	for r, shape := range spec {
		table, err := shape.quantiles()
		if err != nil {
			return nil, err
		}
		c := usageCurve{
			shape:    shape,
			table:    table,
			workload: math.Sqrt(shape.Workload),
			between:  math.Sqrt(shape.Between),
			together: math.Sqrt(shape.Together),
			own:      math.Sqrt(max(1-shape.Workload-shape.Between-shape.Together, 0)),
			from:     make([]float64, shape.Hold),
			to:       make([]float64, shape.Hold),
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

// podUsage is the usage of a pod, and its position in time.
type podUsage struct {
	model      *usageModel
	pod, group uint64
	// cpu and memory are the amounts of which the usage is a multiple.
	cpu, memory float64
	tracks      [usageResources]usageTrack
}

// usageTrack is the position in one resource: the previous and the next draw.
type usageTrack struct {
	knot            int64
	fixed, from, to float64
	phase           float64
}

// newUsage returns the usage of a pod. Pods have different numbers; pods of a group have the same group number.
func (m *usageModel) newUsage(pod, group uint64, cpu, memory float64) *podUsage {
	u := &podUsage{model: m, pod: pod, group: group, cpu: cpu, memory: memory}
	for r := range m.curves {
		curve := &m.curves[r]
		u.tracks[r] = usageTrack{
			knot:  -2,
			fixed: curve.between*normal(m.seed, streams[r].pod, pod, 0) + curve.workload*normal(m.seed, streams[r].workload, group, 0),
			phase: curve.shape.Phases*uniform(m.seed, streams[r].phase, pod, 0) +
				curve.shape.WorkloadPhases*uniform(m.seed, streams[r].workloadPhase, group, 0),
		}
	}
	return u
}

// At implements recording.Usage. Steps may be in any order; small increments are the fastest. Negative steps count as 0.
func (u *podUsage) At(_, elapsed int64) (cpu, memory float64) {
	m, step := u.model, max(elapsed, 0)/recording.Step
	return u.cpu * m.curves[usageCPU].valueAt(usageCPU, u, step), u.memory * m.curves[usageMemory].valueAt(usageMemory, u, step)
}

// OfCopy implements recording.Usage.
func (u *podUsage) OfCopy(number int) recording.Usage {
	return u.model.newUsage(uint64(number), u.group, u.cpu, u.memory)
}

// AddUsage generates the usage of pods whose usage is not known.
func AddUsage(in *recording.Input, spec UsageSpec, seed uint64) error {
	model, err := newUsageModel(spec, seed)
	if err != nil {
		return err
	}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Usage == nil {
			p.Usage, p.IsGenerated = model.newUsage(uint64(i), p.Group, p.BaseCPU, p.BaseMemory), true
		}
	}
	return nil
}

// valueAt returns the usage of a resource at a step, as a multiple, and moves the position of the pod there.
func (c *usageCurve) valueAt(resource int, u *podUsage, step int64) float64 {
	t, hold := &u.tracks[resource], int64(len(c.from))
	knot := step / hold
	if knot != t.knot {
		if knot == t.knot+1 {
			t.from = t.to
		} else {
			t.from = c.draw(resource, u, knot)
		}
		t.to, t.knot = c.draw(resource, u, knot+1), knot
	}
	i := step % hold
	value := c.quantile(t.fixed + c.from[i]*t.from + c.to[i]*t.to)
	if c.shape.Amplitude > 0 {
		period := float64(c.shape.Period)
		value *= 1 + c.shape.Amplitude*math.Sin(2*math.Pi*(math.Mod(float64(step), period)/period+t.phase))
	}
	return value
}

// draw returns the variable part of the score at a knot.
func (c *usageCurve) draw(resource int, u *podUsage, knot int64) float64 {
	score, seed := 0.0, u.model.seed
	if c.own > 0 {
		score = c.own * normal(seed, streams[resource].own, u.pod, uint64(knot))
	}
	if c.together > 0 {
		score += c.together * normal(seed, streams[resource].group, u.group, uint64(knot))
	}
	return score
}

// quantile returns the quantile at a score, interpolated from the table.
func (c *usageCurve) quantile(z float64) float64 {
	position := min(max((z+tableEnd)*tableDensity, 0), float64(len(c.table)-1))
	i := min(int(position), len(c.table)-2)
	f := position - float64(i)
	return c.table[i] + f*(c.table[i+1]-c.table[i])
}

// stream has the numbers of the independent random streams of a resource.
type stream struct{ pod, phase, own, group, workload, workloadPhase uint64 }

// streams has a different number for each stream; limitStream has the number 9.
var streams = [usageResources]stream{
	usageCPU:    {1, 2, 3, 4, 10, 11},
	usageMemory: {5, 6, 7, 8, 12, 13},
}

const limitStream = 9

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014): every bit of its argument changes every
// bit of its result with a probability near one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// golden is 2^64 over the golden ratio, the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// uniform returns a number in (0, 1) that depends on all of its arguments.
func uniform(seed, stream, a, b uint64) float64 {
	h := mix(seed + golden*stream)
	h = mix(h + golden*(a+1))
	h = mix(h + golden*(b+1))
	return (float64(h>>11) + 0.5) / (1 << 53)
}

// normal returns a standard normal number that depends on all of its arguments.
func normal(seed, stream, a, b uint64) float64 {
	return math.Sqrt2 * math.Erfinv(2*uniform(seed, stream, a, b)-1)
}
