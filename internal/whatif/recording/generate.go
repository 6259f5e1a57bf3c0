package recording

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

const gibibyte = 1 << 30

// NodeShape is the size of a node. GPUs is a number of devices.
type NodeShape struct {
	Cores int `json:"cores,omitempty"`
	GiB   int `json:"gib,omitempty"`
	GPUs  int `json:"gpus,omitempty"`
}

// Generated specifies a cluster with nodes of a few shapes and groups of equal pods. The same specification and seed give the same
// cluster, byte for byte, on the same architecture. The default coefficients of variation are from the openb trace.
type Generated struct {
	// Nodes is the number of nodes. They have the Shapes in turn. Zones is the number of zones, 0 for none;
	// each round of shapes is in the next zone.
	Nodes, Zones int
	Shapes       []NodeShape
	// Pods is the number of pods, with Churn the number of concurrent pods. Replicas is the mean number of
	// such pods in a group. The pods of a group are equal.
	Pods, Replicas int
	// Fill and MemoryFill are the CPU and the memory that concurrent pods request, as fractions of
	// the capacity of all nodes. Best-effort pods count with their nominal amounts. Requests are
	// limited to half of the smallest node, which may lower the actual fractions.
	Fill, MemoryFill float64
	// GPU is the fraction of groups whose pods request GPUs: one device, or in a tenth of these groups all devices of
	// the smallest node with GPUs. Best-effort pods request no GPUs.
	GPU float64
	// CPUCV and PerCoreCV are the coefficients of variation of CPU requests and of memory per core.
	CPUCV, PerCoreCV float64
	// Batch is the fraction of groups that are jobs. kube-scheduler spreads the pods of the remaining groups.
	Batch float64
	// BestEffort and Guaranteed are the fractions of groups whose pods have no requests and whose
	// pods have limits equal to their requests.
	BestEffort, Guaranteed float64
	// Over is the time in seconds during which pods arrive, 0 for all at once. Life is the mean run
	// time of pods in seconds, 0 for pods that do not end.
	Over, Life int64
	// Churn is the time in seconds during which pods arrive and end in a steady state, 0 for none. The cluster
	// fills during fillTime before, and from then on the expected fill is constant. LifeCV is the
	// coefficient of variation of the run times of these pods, which have a log-normal distribution with the mean Life.
	Churn  int64
	LifeCV float64
	// Bursts is the number of bursts, at equal intervals within Over. BurstShare is the fraction of
	// pods that arrive in bursts, all pods of a burst at once.
	Bursts     int
	BurstShare float64
}

// maxFill is the largest fill. A higher one is a typo, such as 90 for 90%.
const maxFill = 10

// ParseGenerated parses a specification. Nodes and pods are required.
//
//	nodes=500,pods=15000
//	nodes=100,shapes=16x64+64x256,pods=3000,fill=0.8,over=3600,life=600
//	nodes=60,shapes=16x64+32x128x4,pods=900,fill=0.9,churn=86400,life=7200,gpu=0.1
//
//	nodes       1 to 100000
//	shapes      CORESxGIB or CORESxGIBxGPUS separated by +; 16x64+32x128+64x256
//	zones       0 to 100; 0
//	pods        0 to 1000000
//	replicas    1 to 10000; 10
//	fill        0.01 to 10, or 1% to 1000%; 0.7
//	memory-fill as fill
//	cpu-cv      0 to 3; 0.8
//	memory-cv   0 to 3; 0.4
//	batch       0 to 1; 0
//	best-effort 0 to 1; 0
//	guaranteed  0 to 1; 0
//	gpu         0 to 1; 0
//	over        seconds, 0 to 31536000; 0
//	life        seconds, 0 to 31536000; 0
//	churn       seconds, 0 to 31536000; 0
//	life-cv     0 to 10; 2 with churn
//	bursts      0 to 10000; 0
//	burst-share 0 to 1; 0.2
func ParseGenerated(text string) (Generated, error) {
	fields, err := ParseFields(text)
	if err != nil {
		return Generated{}, err
	}
	const year = 365 * 24 * 3600
	fields.require("nodes", fmt.Sprintf("a whole number from 1 to %d", maxNodes))
	fields.require("pods", fmt.Sprintf("a whole number from 0 to %d", maxPods))
	s := Generated{
		Nodes:      fields.Int("nodes", 1, 1, maxNodes),
		Pods:       fields.Int("pods", 0, 0, maxPods),
		Replicas:   fields.Int("replicas", 10, 1, 10_000),
		Fill:       fields.Share("fill", 0.7, 0.01, maxFill),
		CPUCV:      fields.Float("cpu-cv", 0.8, 0, 3),
		PerCoreCV:  fields.Float("memory-cv", 0.4, 0, 3),
		Batch:      fields.Float("batch", 0, 0, 1),
		BestEffort: fields.Float("best-effort", 0, 0, 1),
		Guaranteed: fields.Float("guaranteed", 0, 0, 1),
		GPU:        fields.Float("gpu", 0, 0, 1),
		Zones:      fields.Int("zones", 0, 0, 100),
		Over:       int64(fields.Int("over", 0, 0, year)),
		Life:       int64(fields.Int("life", 0, 0, year)),
	}
	s.MemoryFill = fields.Share("memory-fill", s.Fill, 0.01, maxFill)
	s.Shapes = parseShapes(fields)
	s.readBursts(fields)
	s.readChurn(fields, year)
	if s.GPU > 0 && !slices.ContainsFunc(s.Shapes, func(shape NodeShape) bool { return shape.GPUs > 0 }) {
		fields.Fail("gpu", fmt.Sprint(s.GPU), "0 without a shape with GPUs")
	}
	if s.BestEffort+s.Guaranteed > 1 {
		fields.Fail("guaranteed", fmt.Sprint(s.Guaranteed), fmt.Sprintf("at most 1 in total with best-effort, %v", s.BestEffort))
	}
	return s, fields.Err()
}

// readBursts reads the fields of bursts.
func (s *Generated) readBursts(fields *Fields) {
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

// readChurn reads the fields of churn.
func (s *Generated) readChurn(fields *Fields, longest int) {
	s.Churn = int64(fields.Int("churn", 0, 0, longest))
	variation := 0.0
	if s.Churn > 0 {
		variation = 2
	}
	s.LifeCV = fields.Float("life-cv", variation, 0, 10)
	switch {
	case s.Churn == 0 && fields.Has("life-cv"):
		fields.Fail("life-cv", fmt.Sprint(s.LifeCV), "absent without churn")
	case s.Churn == 0:
	case s.Over > 0:
		fields.Fail("churn", fmt.Sprint(s.Churn), "0 with over")
	case s.Life == 0:
		fields.Fail("churn", fmt.Sprint(s.Churn), "0 without life")
	case s.totalPods() > maxPods:
		fields.Fail("churn", fmt.Sprint(s.Churn),
			fmt.Sprintf("so short that pods (1 + churn/life), %d, is at most %d", s.totalPods(), maxPods))
	}
}

// totalPods returns the number of all pods; with churn it is higher than the number of concurrent pods.
func (s Generated) totalPods() int {
	if s.Churn == 0 {
		return s.Pods
	}
	return int(math.Round(float64(s.Pods) * (1 + float64(s.Churn)/float64(s.Life))))
}

// parseShapes reads the sizes of nodes.
func parseShapes(fields *Fields) []NodeShape {
	text := fields.Text("shapes", "16x64+32x128+64x256")
	var shapes []NodeShape
	for part := range strings.SplitSeq(text, "+") {
		shape, ok := ParseNodeShape(strings.TrimSpace(part))
		if !ok {
			fields.Fail("shapes", text, "CORESxGIB or CORESxGIBxGPUS separated by +, from 1x1 to 10000x131072x1000")
			return nil
		}
		shapes = append(shapes, shape)
	}
	return shapes
}

// ParseNodeShape parses CORESxGIB or CORESxGIBxGPUS.
func ParseNodeShape(text string) (NodeShape, bool) {
	parts := strings.Split(text, "x")
	if len(parts) < 2 || len(parts) > 3 {
		return NodeShape{}, false
	}
	var numbers [3]int
	for i, allowed := range [][2]int{{1, 10_000}, {1, 1 << 17}, {0, maxGPU / 1000}}[:len(parts)] {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < allowed[0] || n > allowed[1] {
			return NodeShape{}, false
		}
		numbers[i] = n
	}
	return NodeShape{numbers[0], numbers[1], numbers[2]}, true
}

// allDevicesShare is the fraction of groups with GPUs whose pods request all devices of a node.
const allDevicesShare = 0.1

// generatedGroup is a workload with equal pods.
type generatedGroup struct {
	Owner
	cpu, memory float64 // millicores and bytes, before scaling
	class       v1.PodQOSClass
	gpu         int64 // number of devices
}

// Input generates the cluster of a valid specification.
func (s Generated) Input(seed uint64, limits Limits) Input {
	in := s.cluster(seed)
	in.Complete(limits, seed)
	return in
}

// cluster generates the cluster, whose pods are not complete.
func (s Generated) cluster(seed uint64) Input {
	in := Input{Pods: make([]InputPod, s.totalPods())}
	in.assume("nodes and pods are generated with the seed %d", seed)
	var capacity, smallest resources.Amounts
	in.Nodes, capacity, smallest = s.nodes()
	r := rand.New(rand.NewPCG(seed, 0x706c696d736f6c6c))
	groups := make([]generatedGroup, max(1, s.Pods/s.Replicas))
	for i := range groups {
		groups[i] = s.group(r, i, smallest)
	}
	groupOf := make([]int32, len(in.Pods))
	for i := range groupOf {
		groupOf[i] = int32(r.IntN(len(groups)))
	}
	s.scale(groups, groupOf, capacity)
	for i := range in.Pods {
		in.Pods[i] = s.pod(r, i, &groups[groupOf[i]], smallest)
	}
	sortByArrival(in.Pods)
	return in
}

// nodes generates the nodes. It returns their capacity, and the smallest amount of each resource on a
// node; for GPUs, on a node that has some.
func (s Generated) nodes() (nodes []Node, capacity, smallest resources.Amounts) {
	for i := range s.Nodes {
		shape := s.Shapes[i%len(s.Shapes)]
		amounts := resources.Amounts{
			CPU:      int64(shape.Cores) * 1000,
			Memory:   int64(shape.GiB) * gibibyte,
			Extended: devices(GPU, int64(shape.GPUs)),
		}
		n := NewNode(fmt.Sprintf("node-%05d", i), amounts)
		if s.Zones > 0 {
			n.Object.Labels[v1.LabelTopologyZone] = fmt.Sprintf("zone-%d", i/len(s.Shapes)%s.Zones)
		}
		nodes = append(nodes, n)
		capacity = capacity.Add(amounts)
		if i == 0 {
			smallest = amounts
		}
		gpus := smallest.Extended.Get(GPU)
		smallest = smallest.Min(amounts)
		if smallest.Extended.IsZero() {
			smallest.Extended = devices(GPU, max(gpus, int64(shape.GPUs)))
		}
	}
	return nodes, capacity, smallest
}

// group generates the group with a number.
func (s Generated) group(r *rand.Rand, number int, smallest resources.Amounts) generatedGroup {
	g := generatedGroup{Owner: Owner{Name: fmt.Sprintf("group-%05d", number)}, cpu: Lognormal(r, s.CPUCV)}
	g.memory = g.cpu * Lognormal(r, s.PerCoreCV)
	switch u := r.Float64(); {
	case u < s.BestEffort:
		g.class = v1.PodQOSBestEffort
	case u < s.BestEffort+s.Guaranteed:
		g.class = v1.PodQOSGuaranteed
	default:
		g.class = v1.PodQOSBurstable
	}
	if s.Batch > 0 { // Otherwise a seed gives the same cluster as without jobs.
		g.IsJob = r.Float64() < s.Batch
	}
	if s.GPU > 0 && r.Float64() < s.GPU {
		g.gpu = 1
		if r.Float64() < allDevicesShare {
			g.gpu = smallest.Extended.Get(GPU)
		}
	}
	return g
}

// Lognormal returns a random number of a log-normal distribution with mean 1 and a coefficient of
// variation.
func Lognormal(r *rand.Rand, cv float64) float64 {
	variance := math.Log1p(cv * cv)
	return math.Exp(math.Sqrt(variance)*r.NormFloat64() - variance/2)
}

// scale scales the requests of the groups so that concurrent pods request the specified fractions of
// the capacity. groupOf has the group of each pod.
func (s Generated) scale(groups []generatedGroup, groupOf []int32, capacity resources.Amounts) {
	var cpu, memory float64
	for _, g := range groupOf {
		cpu, memory = cpu+groups[g].cpu, memory+groups[g].memory
	}
	if s.Churn > 0 { // Pods is the number of concurrent pods.
		share := float64(s.Pods) / float64(len(groupOf))
		cpu, memory = cpu*share, memory*share
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
// of the smallest node, so that every pod fits a node. Best-effort pods have usage without requests.
func (s Generated) pod(r *rand.Rand, number int, g *generatedGroup, smallest resources.Amounts) InputPod {
	size := resources.Amounts{
		CPU:    int64(min(max(math.Round(g.cpu/10), 1)*10, float64(smallest.CPU/2))),
		Memory: int64(min(max(math.Round(g.memory/(1<<20)), 1)*(1<<20), float64(smallest.Memory/2))),

		Extended: devices(GPU, g.gpu),
	}
	p := NewPod(fmt.Sprintf("pod-%06d", number), size, 0, Never)
	p.Owner, p.Resources.Class = &g.Owner, g.class
	if g.class == v1.PodQOSBestEffort {
		p.Requests = resources.Amounts{Pods: 1}
	}
	s.times(r, number, &p)
	return p
}

// times generates the arrival and the end of a pod.
func (s Generated) times(r *rand.Rand, number int, p *InputPod) {
	if s.Churn > 0 {
		s.churn(r, number, p)
		return
	}
	if s.Over > 0 {
		p.Arrival = r.Int64N(s.Over)
	}
	if s.Bursts > 0 && r.Float64() < s.BurstShare {
		// Bursts are not at the ends, so that the first one adds to existing pods.
		p.Arrival = s.Over * int64(1+r.IntN(s.Bursts)) / int64(1+s.Bursts)
	}
	if s.Life > 0 {
		p.Duration = 1 + int64(min(r.ExpFloat64()*float64(s.Life), maxSecond/2))
	}
}

// churn generates the arrival and the end of a pod in a steady state. The first pods arrive during fillTime. From then on their
// run times have the distribution of pods that run at an instant: the original distribution weighted by the run time; a uniform
// fraction of the run time remains. Later pods arrive at a constant rate.
func (s Generated) churn(r *rand.Rand, number int, p *InputPod) {
	variance := math.Log1p(s.LifeCV * s.LifeCV)
	mu := math.Log(float64(s.Life)) - variance/2
	if number < s.Pods {
		mu += variance // weighted by the run time
	}
	life := math.Exp(mu + math.Sqrt(variance)*r.NormFloat64())
	if number < s.Pods {
		p.Arrival = r.Int64N(fillTime)
		life = float64(fillTime-p.Arrival) + life*r.Float64()
	} else {
		p.Arrival = fillTime + r.Int64N(s.Churn)
	}
	p.Duration = int64(max(1, math.Round(min(life, maxSecond/2))))
}
