package generate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

const gibibyte = 1 << 30

// NodeShape is the size of a node. GPUs is a number of devices.
type NodeShape struct{ Cores, GiB, GPUs int }

// MarshalText implements encoding.TextMarshaler.
func (s NodeShape) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%dx%dx%d", s.Cores, s.GiB, s.GPUs), nil
}

// UnmarshalText parses CORESxGIB or CORESxGIBxGPUS.
func (s *NodeShape) UnmarshalText(text []byte) error {
	parts, numbers := strings.Split(strings.TrimSpace(string(text)), "x"), [3]int{}
	isValid := len(parts) == 2 || len(parts) == 3
	for i, allowed := range [][2]int{{1, 10_000}, {1, 1 << 17}, {0, maxGPU / 1000}}[:min(len(parts), 3)] {
		n, err := strconv.Atoi(parts[i])
		numbers[i], isValid = n, isValid && err == nil && n >= allowed[0] && n <= allowed[1]
	}
	if !isValid {
		return fmt.Errorf("invalid value %q: must be CORESxGIB or CORESxGIBxGPUS, from 1x1 to 10000x131072x1000", text)
	}
	*s = NodeShape{numbers[0], numbers[1], numbers[2]}
	return nil
}

// Generated specifies a cluster with nodes of a few shapes and groups of equal pods. The same specification and seed give the same
// cluster, byte for byte, on the same architecture. The default coefficients of variation are from the openb trace.
type Generated struct {
	// Nodes is the number of nodes. They have the Shapes in turn. Zones is the number of zones, 0 for none;
	// each round of shapes is in the next zone.
	Nodes  int         `json:"nodes" range:"1,100000"`
	Zones  int         `json:"zones" range:"0,100"`
	Shapes []NodeShape `json:"shapes"`
	// Pods is the number of pods, with Churn the number of concurrent pods. Replicas is the mean number of
	// such pods in a group. The pods of a group are equal.
	Pods     int `json:"pods" range:"0,1000000"`
	Replicas int `json:"replicas" range:"1,10000"`
	// Fill and MemoryFill are the CPU and the memory that concurrent pods request, as fractions of
	// the capacity of all nodes. Best-effort pods count with their nominal amounts. Requests are
	// limited to half of the smallest node, which may lower the actual fractions. MemoryFill is Fill by default.
	Fill       float64 `json:"fill" range:"0.01,10"`
	MemoryFill float64 `json:"memory-fill" range:"0.01,10"`
	// GPU is the fraction of groups whose pods request GPUs: one device, or in a tenth of these groups all devices of
	// the smallest node with GPUs. Best-effort pods request no GPUs.
	GPU float64 `json:"gpu" range:"0,1"`
	// CPUCV and PerCoreCV are the coefficients of variation of CPU requests and of memory per core.
	CPUCV     float64 `json:"cpu-cv" range:"0,3"`
	PerCoreCV float64 `json:"memory-cv" range:"0,3"`
	// Batch is the fraction of groups that are jobs. kube-scheduler spreads the pods of the remaining groups.
	Batch float64 `json:"batch" range:"0,1"`
	// BestEffort and Guaranteed are the fractions of groups whose pods have no requests and whose
	// pods have limits equal to their requests.
	BestEffort float64 `json:"best-effort" range:"0,1"`
	Guaranteed float64 `json:"guaranteed" range:"0,1"`
	// Over is the time in seconds during which pods arrive, 0 for all at once. Life is the mean run
	// time of pods in seconds, 0 for pods that do not end. All times are at most a year.
	Over int64 `json:"over" range:"0,31536000"`
	Life int64 `json:"life" range:"0,31536000"`
	// Churn is the time in seconds during which pods arrive and end in a steady state, 0 for none. The cluster
	// fills during fillTime before, and from then on the expected fill is constant. LifeCV is the
	// coefficient of variation of the run times of these pods, which have a log-normal distribution with the mean Life.
	Churn  int64   `json:"churn" range:"0,31536000"`
	LifeCV float64 `json:"life-cv" range:"0,10"`
	// Bursts is the number of bursts, at equal intervals within Over. BurstShare is the fraction of
	// pods that arrive in bursts, all pods of a burst at once.
	Bursts     int     `json:"bursts" range:"0,10000"`
	BurstShare float64 `json:"burst-share" range:"0,1"`
}

// ParseGenerated parses a specification, such as nodes=100,shapes=16x64+64x256,pods=3000,fill=80%. Nodes and pods are required.
func ParseGenerated(text string) (Generated, error) {
	s := Generated{
		Shapes: []NodeShape{{16, 64, 0}, {32, 128, 0}, {64, 256, 0}}, Replicas: 10, Fill: 0.7, CPUCV: 0.8, PerCoreCV: 0.4,
		LifeCV: 2, BurstShare: 0.2,
	}
	set, err := resources.DecodePairs(text, &s)
	if err != nil {
		return s, err
	}
	if set["memory-fill"] == nil {
		s.MemoryFill = s.Fill
	}
	switch {
	case set["nodes"] == nil || set["pods"] == nil:
		return s, errors.New("nodes, pods: required: must be nodes=N,pods=N")
	case s.GPU > 0 && !slices.ContainsFunc(s.Shapes, func(shape NodeShape) bool { return shape.GPUs > 0 }):
		return s, format.InvalidValue("gpu", s.GPU, "0 without a shape with GPUs")
	case s.BestEffort+s.Guaranteed > 1:
		return s, format.InvalidValue("guaranteed", s.Guaranteed, fmt.Sprintf("at most 1 in total with best-effort, %v", s.BestEffort))
	}
	return s, s.validateArrivals(set)
}

// validateArrivals returns an error for fields of bursts and churn that exclude each other. set has the fields that are set.
func (s Generated) validateArrivals(set map[string]any) error {
	switch {
	case s.Bursts > 0 && s.Over == 0:
		return format.InvalidValue("bursts", s.Bursts, "0 without over")
	case s.Bursts == 0 && set["burst-share"] != nil:
		return format.InvalidValue("burst-share", s.BurstShare, "absent without bursts")
	case s.Churn == 0 && set["life-cv"] != nil:
		return format.InvalidValue("life-cv", s.LifeCV, "absent without churn")
	case s.Churn > 0 && s.Over > 0:
		return format.InvalidValue("churn", s.Churn, "0 with over")
	case s.Churn > 0 && s.Life == 0:
		return format.InvalidValue("churn", s.Churn, "0 without life")
	case s.totalPods() > maxPods:
		return format.InvalidValue("churn", s.Churn,
			fmt.Sprintf("so short that pods (1 + churn/life), %d, is at most %d", s.totalPods(), maxPods))
	}
	return nil
}

// totalPods returns the number of all pods; with churn it is higher than the number of concurrent pods.
func (s Generated) totalPods() int {
	if s.Churn == 0 {
		return s.Pods
	}
	return int(math.Round(float64(s.Pods) * (1 + float64(s.Churn)/float64(s.Life))))
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

// Recording generates the cluster of a valid specification, with a tail, as NewCluster has it.
func (s Generated) Recording(seed uint64, limits Limits, tail int64) *recording.Recording {
	c := s.cluster(seed)
	c.Limits, c.Tail = limits, tail
	r := c.Recording()
	r.Generated = slices.Insert(r.Generated, 0, fmt.Sprintf("nodes and pods are generated with the seed %d", seed))
	return r
}

// cluster generates the nodes and pods.
func (s Generated) cluster(seed uint64) NewCluster {
	c := NewCluster{Pods: make([]NewPod, s.totalPods()), Seed: seed}
	var capacity, smallest resources.Amounts
	c.Nodes, capacity, smallest = s.nodes()
	r := rand.New(rand.NewPCG(seed, 0x706c696d736f6c6c))
	groups := make([]generatedGroup, max(1, s.Pods/s.Replicas))
	for i := range groups {
		groups[i] = s.group(r, i, smallest)
	}
	groupOf := make([]int32, len(c.Pods))
	for i := range groupOf {
		groupOf[i] = int32(r.IntN(len(groups)))
	}
	s.scale(groups, groupOf, capacity)
	for i := range c.Pods {
		c.Pods[i] = s.pod(r, i, &groups[groupOf[i]], smallest)
	}
	slices.SortStableFunc(c.Pods, func(a, b NewPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return c
}

// nodes generates the nodes. It returns their capacity, and the smallest amount of each resource on a
// node; for GPUs, on a node that has some.
func (s Generated) nodes() (nodes []recording.Node, capacity, smallest resources.Amounts) {
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
// of the smallest node, so that every pod fits a node.
func (s Generated) pod(r *rand.Rand, number int, g *generatedGroup, smallest resources.Amounts) NewPod {
	p := NewPod{
		Name: fmt.Sprintf("pod-%06d", number), Owner: &g.Owner, Class: g.class, Duration: recording.Never,
		Requests: resources.Amounts{
			CPU:    int64(min(max(math.Round(g.cpu/10), 1)*10, float64(smallest.CPU/2))),
			Memory: int64(min(max(math.Round(g.memory/(1<<20)), 1)*(1<<20), float64(smallest.Memory/2))),
		},
	}
	if g.class != v1.PodQOSBestEffort {
		p.Requests.Extended = devices(GPU, g.gpu)
	}
	s.times(r, number, &p)
	return p
}

// times generates the arrival and the end of a pod.
func (s Generated) times(r *rand.Rand, number int, p *NewPod) {
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
func (s Generated) churn(r *rand.Rand, number int, p *NewPod) {
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

// Limits generates the limits of pods without limits.
type Limits struct {
	// CPU and Memory are limits as multiples of the request, at least 1.
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	// Unlimited is the fraction of pods that get no limits.
	Unlimited float64 `json:"unlimited"`
}

// maxRatio bounds limits over requests.
const maxRatio = 100

// DefaultLimits are twice the requests.
var DefaultLimits = Limits{CPU: 2, Memory: 2}

// Validate returns an error that names the field of an invalid value.
func (l Limits) Validate() error {
	isRatio := func(ratio float64) bool { return ratio >= 1 && ratio <= maxRatio }
	switch {
	case !(l.Unlimited >= 0 && l.Unlimited <= 1):
		return fmt.Errorf("unlimited: invalid value %v: must be a number from 0 to 1", l.Unlimited)
	case l.Unlimited < 1 && !isRatio(l.CPU):
		return fmt.Errorf("cpu: invalid value %v: must be a number from 1 to %d", l.CPU, maxRatio)
	case l.Unlimited < 1 && !isRatio(l.Memory):
		return fmt.Errorf("memory: invalid value %v: must be a number from 1 to %d", l.Memory, maxRatio)
	}
	return nil
}

// forPod returns the limits of a pod with the given requests, 0 for no limit. There is no limit
// without a request. Which pods get no limits depends on the seed and the pod alone, so that a
// larger fraction includes the pods of a smaller fraction.
func (l Limits) forPod(seed, pod uint64, cpu, memory int64) (cpuLimit, memoryLimit int64) {
	if uniform(seed, limitStream, pod, 0) < l.Unlimited {
		return 0, 0
	}
	return times(cpu, l.CPU), times(memory, l.Memory)
}

// times returns an amount times a ratio, rounded up and saturated.
func times(amount int64, ratio float64) int64 {
	product := math.Ceil(float64(amount) * ratio)
	if product >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(int64(product), amount)
}

// String describes the limits.
func (l Limits) String() string {
	text := fmt.Sprintf("cpu=%v,memory=%v", l.CPU, l.Memory)
	if l.CPU == l.Memory {
		text = fmt.Sprintf("ratio=%v", l.CPU)
	}
	if l.Unlimited > 0 {
		text += fmt.Sprintf(",unlimited=%v", l.Unlimited)
	}
	return text
}
