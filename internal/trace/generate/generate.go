// Package generate generates clusters with nodes of a few shapes and groups of equal pods, from a
// specification and a seed.
//
//	nodes=500,pods=15000
//	nodes=100,shapes=16x64+64x256,pods=3000,fill=0.8,over=3600,life=600
//
// The same specification and seed give the same cluster, byte for byte, on the same architecture.
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

// Shape is the size of a node.
type Shape struct {
	Cores, GiB int
}

// Spec specifies a cluster. The default coefficients of variation are those of the openb trace.
type Spec struct {
	// Nodes is the number of nodes. They have the Shapes in turn.
	Nodes  int
	Shapes []Shape
	// Pods is the number of pods, Replicas the mean number of pods in a group. The pods of a group
	// are equal.
	Pods, Replicas int
	// Fill and MemoryFill are the CPU and the memory that concurrent pods request, as fractions of
	// the capacity of all nodes. Best-effort pods count with their nominal amounts. Requests are
	// limited to half of the smallest node, which may lower the actual fractions.
	Fill, MemoryFill float64
	// CPUCV and PerCoreCV are the coefficients of variation of CPU requests and of memory per core.
	CPUCV, PerCoreCV float64
	// Batch is the fraction of groups that are jobs. kube-scheduler spreads the pods of all others.
	Batch float64
	// BestEffort and Guaranteed are the fractions of groups whose pods have no requests and whose
	// pods have limits equal to their requests.
	BestEffort, Guaranteed float64
	// Over is the time in seconds during which pods arrive, 0 for all at once. Life is the mean run
	// time of pods in seconds, 0 for pods that do not end.
	Over, Life int64
	// Bursts is the number of bursts, at equal intervals within Over. BurstShare is the fraction of
	// pods that arrive in bursts, all pods of a burst at once.
	Bursts     int
	BurstShare float64
}

// Parse parses a specification. Nodes and pods are required.
//
//	nodes       1 to 100000
//	shapes      CORESxGIB separated by +; 16x64+32x128+64x256
//	pods        0 to 1000000
//	replicas    1 to 10000; 10
//	fill        0.01 to 100; 0.7
//	memory-fill 0.01 to 100; as fill
//	cpu-cv      0 to 3; 0.8
//	memory-cv   0 to 3; 0.4
//	batch       0 to 1; 0
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
		Batch:      fields.Float("batch", 0, 0, 1),
		BestEffort: fields.Float("best-effort", 0, 0, 1),
		Guaranteed: fields.Float("guaranteed", 0, 0, 1),
		Over:       int64(fields.Int("over", 0, 0, year)),
		Life:       int64(fields.Int("life", 0, 0, year)),
	}
	s.MemoryFill = fields.Float("memory-fill", s.Fill, 0.01, 100)
	s.Shapes = parseShapes(fields, "16x64+32x128+64x256")
	s.readBursts(fields)
	if s.BestEffort+s.Guaranteed > 1 {
		fields.Fail("guaranteed", fmt.Sprint(s.Guaranteed), fmt.Sprintf("at most 1 in total with best-effort, %v", s.BestEffort))
	}
	return s, fields.Err()
}

// readBursts reads the fields of bursts.
func (s *Spec) readBursts(fields *spec.Fields) {
	share := 0.0
	if s.Bursts = fields.Int("bursts", 0, 0, 10_000); s.Bursts > 0 {
		share = 0.2
	}
	s.BurstShare = fields.Float("burst-share", share, 0, 1)
	switch {
	case s.Bursts > 0 && s.Over == 0:
		fields.Fail("bursts", fmt.Sprint(s.Bursts), "0 without over")
	case s.Bursts == 0 && fields.Has("burst-share"):
		fields.Fail("burst-share", fmt.Sprint(s.BurstShare), "absent without bursts")
	}
}

// parseShapes reads the sizes of nodes.
func parseShapes(fields *spec.Fields, defaultShapes string) []Shape {
	text := fields.Text("shapes", defaultShapes)
	var shapes []Shape
	for part := range strings.SplitSeq(text, "+") {
		cores, gib, ok := strings.Cut(strings.TrimSpace(part), "x")
		c, err1 := strconv.Atoi(cores)
		g, err2 := strconv.Atoi(gib)
		if !ok || err1 != nil || err2 != nil || c < 1 || c > 10_000 || g < 1 || g > 1<<17 {
			fields.Fail("shapes", text, "CORESxGIB separated by +, from 1x1 to 10000x131072")
			return nil
		}
		shapes = append(shapes, Shape{c, g})
	}
	return shapes
}

// group is a group of equal pods.
type group struct {
	cpu, memory float64 // millicores and bytes, before scaling
	class       trace.Class
	batch       bool
}

// Cluster generates the cluster of a valid specification.
func (s Spec) Cluster(seed uint64) *trace.Cluster {
	c := &trace.Cluster{
		Nodes:   make([]trace.Node, s.Nodes),
		Pods:    make([]trace.Pod, s.Pods),
		Assumed: []string{fmt.Sprintf("nodes and pods are generated with the seed %d", seed)},
	}
	var capacity, smallest trace.Amounts
	for i := range c.Nodes {
		shape := s.Shapes[i%len(s.Shapes)]
		amounts := trace.Amounts{CPU: int64(shape.Cores) * 1000, Memory: int64(shape.GiB) * gibibyte}
		c.Nodes[i] = trace.Node{Name: fmt.Sprintf("node-%05d", i), Capacity: amounts}
		capacity.CPU += amounts.CPU
		capacity.Memory += amounts.Memory
		if i == 0 || amounts.CPU < smallest.CPU {
			smallest.CPU = amounts.CPU
		}
		if i == 0 || amounts.Memory < smallest.Memory {
			smallest.Memory = amounts.Memory
		}
	}
	r := rand.New(rand.NewPCG(seed, 0x706c696d736f6c6c))
	groups := make([]group, max(1, s.Pods/s.Replicas))
	for i := range groups {
		groups[i] = s.group(r)
	}
	groupOf := make([]int32, s.Pods)
	for i := range groupOf {
		groupOf[i] = int32(r.IntN(len(groups)))
	}
	s.scale(groups, groupOf, capacity)
	for i := range c.Pods {
		c.Pods[i] = s.pod(r, i, int(groupOf[i]), groups[groupOf[i]], smallest)
	}
	c.Sort()
	return c
}

// group generates a group.
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
	if s.Batch > 0 { // Otherwise a seed gives the same cluster as without jobs.
		g.batch = r.Float64() < s.Batch
	}
	return g
}

// lognormal returns a random number of a log-normal distribution with mean 1 and a coefficient of
// variation.
func lognormal(r *rand.Rand, cv float64) float64 {
	variance := math.Log1p(cv * cv)
	return math.Exp(math.Sqrt(variance)*r.NormFloat64() - variance/2)
}

// scale scales the requests of the groups so that concurrent pods request the specified fractions of
// the capacity. groupOf has the group of each pod.
func (s Spec) scale(groups []group, groupOf []int32, capacity trace.Amounts) {
	var cpu, memory float64
	for _, g := range groupOf {
		cpu, memory = cpu+groups[g].cpu, memory+groups[g].memory
	}
	// If pods run for less time than they arrive for, only a part of them is concurrent.
	concurrent := 1.0
	if s.Life > 0 && s.Life < s.Over {
		concurrent = float64(s.Life) / float64(s.Over)
	}
	for i := range groups {
		groups[i].cpu *= s.Fill * float64(capacity.CPU) / (cpu * concurrent)
		groups[i].memory *= s.MemoryFill * float64(capacity.Memory) / (memory * concurrent)
	}
}

// pod generates a pod of a group. Requests are multiples of 10 millicores and of a MiB, and at most half
// of the smallest node, so that every pod fits a node.
func (s Spec) pod(r *rand.Rand, number, groupNumber int, g group, smallest trace.Amounts) trace.Pod {
	p := trace.Pod{
		Name:  fmt.Sprintf("pod-%06d", number),
		Group: fmt.Sprintf("group-%05d", groupNumber),
		Batch: g.batch,
		Class: g.class,
		End:   trace.Never,
	}
	size := trace.Amounts{
		CPU:    int64(min(max(math.Round(g.cpu/10), 1)*10, float64(smallest.CPU/2))),
		Memory: int64(min(max(math.Round(g.memory/(1<<20)), 1)*(1<<20), float64(smallest.Memory/2))),
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
		// Bursts are not at the ends, so that the first one adds to existing pods.
		p.Arrival = s.Over * int64(1+r.IntN(s.Bursts)) / int64(1+s.Bursts)
	}
	p.Start = p.Arrival
	if s.Life > 0 {
		p.End = p.Start + 1 + int64(min(r.ExpFloat64()*float64(s.Life), trace.MaxSecond/2))
	}
	return p
}
