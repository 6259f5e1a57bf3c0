// Package generate makes up clusters: nodes of a few shapes, and pods in groups
// of equal ones, from a short text and a seed.
//
//	nodes=500,pods=15000
//	nodes=100,shapes=16x64+64x256,pods=3000,fill=0.8,over=3600,life=600
//
// The same text and seed make the same cluster, byte for byte, on one
// architecture.
package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

const gibibyte = 1 << 30

// Shape is a size of node.
type Shape struct {
	Cores, GiB int
}

// Spec is what to make. The defaults of how requests vary are the figures of the
// openb trace: a deviation of 0.8 means of CPU, and of 0.4 means of memory per
// core.
type Spec struct {
	// Nodes is how many there are, Shapes their sizes, in turn.
	Nodes  int
	Shapes []Shape
	// Pods is how many come, Replicas how many of them belong to a group, on
	// average; those of a group are equal.
	Pods, Replicas int
	// Fill is the CPU and MemoryFill the memory that all pods that are there at a
	// time request, as parts of what all nodes have; best-effort pods count with what
	// their use is reckoned from. It comes out lower where many pods are as large as
	// they may be: half of the smallest node.
	Fill, MemoryFill float64
	// CPUCV is the deviation of CPU requests over their mean, PerCoreCV that of the
	// memory per core.
	CPUCV, PerCoreCV float64
	// BestEffort is the share of groups whose pods request nothing, Guaranteed that
	// of groups whose pods are to have limits at their requests.
	BestEffort, Guaranteed float64
	// Over is the time over which pods come, in seconds, 0 for all at once; Life how
	// long they run on average, 0 for ever.
	Over, Life int64
	// Bursts is how many bursts there are in that time, evenly apart; BurstShare the
	// share of the pods that come in one of them, all pods of a burst at once.
	Bursts     int
	BurstShare float64
}

// Parse reads a text. Nodes and pods have to be there.
//
//	nodes       1 to 100000
//	shapes      CORESxGIB with + between them; 16x64+32x128+64x256
//	pods        0 to 1000000
//	replicas    1 to 10000; 10
//	fill        0.01 to 100; 0.7
//	memory-fill 0.01 to 100; as fill
//	cpu-cv      0 to 3; 0.8
//	memory-cv   0 to 3; 0.4
//	best-effort 0 to 1; 0
//	guaranteed  0 to 1; 0
//	over        seconds, 0 to 31536000; 0
//	life        seconds, 0 to 31536000; 0
//	bursts      0 to 10000; 0
//	burst-share 0 to 1; 0.2
func Parse(text string) (Spec, error) {
	fields, err := spec.Parse(text)
	if err != nil {
		return Spec{}, err
	}
	const year = 365 * 24 * 3600
	fields.Require("nodes", fmt.Sprintf("a whole number from 1 to %d", trace.MaxNodes))
	fields.Require("pods", fmt.Sprintf("a whole number from 0 to %d", trace.MaxPods))
	s := Spec{
		Nodes:      fields.Int("nodes", 1, 1, trace.MaxNodes),
		Pods:       fields.Int("pods", 0, 0, trace.MaxPods),
		Replicas:   fields.Int("replicas", 10, 1, 10_000),
		Fill:       fields.Float("fill", 0.7, 0.01, 100),
		CPUCV:      fields.Float("cpu-cv", 0.8, 0, 3),
		PerCoreCV:  fields.Float("memory-cv", 0.4, 0, 3),
		BestEffort: fields.Float("best-effort", 0, 0, 1),
		Guaranteed: fields.Float("guaranteed", 0, 0, 1),
		Over:       int64(fields.Int("over", 0, 0, year)),
		Life:       int64(fields.Int("life", 0, 0, year)),
	}
	s.MemoryFill = fields.Float("memory-fill", s.Fill, 0.01, 100)
	s.Shapes = parseShapes(fields, "16x64+32x128+64x256")
	s.readBursts(fields)
	if s.BestEffort+s.Guaranteed > 1 {
		fields.Fail("guaranteed", fmt.Sprint(s.Guaranteed), fmt.Sprintf("with best-effort, %v, at most 1", s.BestEffort))
	}
	return s, fields.Err()
}

// readBursts reads when pods come at once.
func (s *Spec) readBursts(fields *spec.Fields) {
	share := 0.0
	if s.Bursts = fields.Int("bursts", 0, 0, 10_000); s.Bursts > 0 {
		share = 0.2
	}
	s.BurstShare = fields.Float("burst-share", share, 0, 1)
	switch {
	case s.Bursts > 0 && s.Over == 0:
		fields.Fail("bursts", fmt.Sprint(s.Bursts), "bursts of pods that come over some time: with over")
	case s.Bursts == 0 && fields.Has("burst-share"):
		fields.Fail("burst-share", fmt.Sprint(s.BurstShare), "a share of the pods with bursts")
	}
}

// parseShapes reads sizes of nodes.
func parseShapes(fields *spec.Fields, otherwise string) []Shape {
	text := fields.Text("shapes", otherwise)
	var shapes []Shape
	for part := range strings.SplitSeq(text, "+") {
		cores, gib, ok := strings.Cut(strings.TrimSpace(part), "x")
		c, err1 := strconv.Atoi(cores)
		g, err2 := strconv.Atoi(gib)
		if !ok || err1 != nil || err2 != nil || c < 1 || c > 10_000 || g < 1 || g > 1<<17 {
			fields.Fail("shapes", text, "CORESxGIB with + between them, from 1x1 to 10000x131072")
			return nil
		}
		shapes = append(shapes, Shape{c, g})
	}
	return shapes
}

// group is a number of equal pods.
type group struct {
	cpu, memory float64 // millicores and bytes, before scaling
	class       trace.Class
}

// Cluster makes the cluster of a specification that Parse returned.
func (s Spec) Cluster(seed uint64) *trace.Cluster {
	c := &trace.Cluster{
		Nodes:   make([]trace.Node, s.Nodes),
		Pods:    make([]trace.Pod, s.Pods),
		Assumed: []string{fmt.Sprintf("nodes and pods are generated with the seed %d", seed)},
	}
	var capacity, least trace.Amounts
	for i := range c.Nodes {
		shape := s.Shapes[i%len(s.Shapes)]
		amounts := trace.Amounts{CPU: int64(shape.Cores) * 1000, Memory: int64(shape.GiB) * gibibyte}
		c.Nodes[i] = trace.Node{Name: fmt.Sprintf("node-%05d", i), Capacity: amounts}
		capacity.CPU += amounts.CPU
		capacity.Memory += amounts.Memory
		if i == 0 || amounts.CPU < least.CPU {
			least.CPU = amounts.CPU
		}
		if i == 0 || amounts.Memory < least.Memory {
			least.Memory = amounts.Memory
		}
	}
	r := rand.New(rand.NewPCG(seed, 0x706c696d736f6c6c))
	groups := make([]group, max(1, s.Pods/s.Replicas))
	for i := range groups {
		groups[i] = s.group(r)
	}
	of := make([]int32, s.Pods)
	for i := range of {
		of[i] = int32(r.IntN(len(groups)))
	}
	s.scale(groups, of, capacity)
	for i := range c.Pods {
		c.Pods[i] = s.pod(r, i, int(of[i]), groups[of[i]], least)
	}
	c.Sort()
	return c
}

// group draws what the pods of a group are like.
func (s Spec) group(r *rand.Rand) group {
	g := group{cpu: lognormal(r, s.CPUCV)}
	g.memory = g.cpu * lognormal(r, s.PerCoreCV)
	switch u := r.Float64(); {
	case u < s.BestEffort:
		g.class = trace.BestEffort
	case u < s.BestEffort+s.Guaranteed:
		g.class = trace.Guaranteed
	default:
		g.class = trace.Burstable
	}
	return g
}

// lognormal draws a number with the mean 1 and a deviation.
func lognormal(r *rand.Rand, cv float64) float64 {
	variance := math.Log1p(cv * cv)
	return math.Exp(math.Sqrt(variance)*r.NormFloat64() - variance/2)
}

// scale makes the requests of the pods that are there at a time what they have to
// be together.
func (s Spec) scale(groups []group, of []int32, capacity trace.Amounts) {
	var cpu, memory float64
	for _, g := range of {
		cpu, memory = cpu+groups[g].cpu, memory+groups[g].memory
	}
	// Pods that live shorter than they come for are there together only in part.
	there := 1.0
	if s.Life > 0 && s.Life < s.Over {
		there = float64(s.Life) / float64(s.Over)
	}
	for i := range groups {
		groups[i].cpu *= s.Fill * float64(capacity.CPU) / (cpu * there)
		groups[i].memory *= s.MemoryFill * float64(capacity.Memory) / (memory * there)
	}
}

// pod makes a pod of a group. None is larger than half of the smallest node, so
// that each fits somewhere; requests are whole hundredths of a core and MiB.
func (s Spec) pod(r *rand.Rand, number, of int, g group, least trace.Amounts) trace.Pod {
	p := trace.Pod{
		Name:  fmt.Sprintf("pod-%06d", number),
		Group: fmt.Sprintf("group-%05d", of),
		Class: g.class,
		End:   trace.Never,
	}
	size := trace.Amounts{
		CPU:    int64(min(max(math.Round(g.cpu/10), 1)*10, float64(least.CPU/2))),
		Memory: int64(min(max(math.Round(g.memory/(1<<20)), 1)*(1<<20), float64(least.Memory/2))),
	}
	if g.class == trace.BestEffort {
		p.Nominal, p.HasLimit = size, true
	} else {
		p.Request = size
	}
	if g.class == trace.Guaranteed {
		p.Limit, p.HasLimit = size, true
	}
	if s.Over > 0 {
		p.Arrival = r.Int64N(s.Over)
	}
	if s.Bursts > 0 && r.Float64() < s.BurstShare {
		// Not at the ends: the first one meets pods that are there.
		p.Arrival = s.Over * int64(1+r.IntN(s.Bursts)) / int64(1+s.Bursts)
	}
	p.Start = p.Arrival
	if s.Life > 0 {
		p.End = p.Start + 1 + int64(min(r.ExpFloat64()*float64(s.Life), trace.MaxSecond/2))
	}
	return p
}
