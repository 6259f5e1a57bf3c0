// Package cluster draws clusters whose pods use what real machines used, and writes them as recordings.
//
// A drawn workload is a Deployment on a workload of a data set. Each of its pods follows the series of one of the machines of that
// workload, shifted by a few minutes, at the time of the day at which the pod runs. Requests are drawn; the usage of a workload is
// scaled to them as Options.Level says. All times are the same on all machines of a data set with dates.
package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

// Kind is how pods come and go.
type Kind string

const (
	// Stay has pods that arrive in the first hour and stay.
	Stay Kind = "stay"
	// Churn has pods that run for Life on average. A pod that ends is replaced.
	Churn Kind = "churn"
	// Rollout has pods that stay, and that a rolling update replaces in the first hours of the second day.
	Rollout Kind = "rollout"
)

// Kinds are all kinds.
var Kinds = []Kind{Stay, Churn, Rollout}

// The size of a drawn cluster.
const (
	// Nodes of Cores and GiB each.
	Nodes = 60
	Cores = 16
	GiB   = 64
	// Pods is the number of concurrent pods, maxReplicas the largest number of pods of a workload.
	Pods        = 720
	maxReplicas = 19
	// Fill is the CPU and the memory that concurrent pods request, as fractions of all nodes. Pods without requests count with
	// the amounts by which their usage is scaled.
	Fill = 0.9
	// Hours is the length of a recording. All pods have arrived after fillSeconds.
	Hours       = 36
	fillSeconds = 3600
	// Life is the mean run time of pods with churn in seconds, lifeCV its coefficient of variation.
	Life   = 3 * 3600
	lifeCV = 1
	// updateStart is the second from which on workloads are updated, within updateSeconds. A pod ends surgeSeconds after its
	// successor was created, and the pods of a workload are replaced at this interval.
	updateStart   = 24 * 3600
	updateSeconds = 3 * 3600
	surgeSeconds  = 60
	// cpuCV and perCoreCV are the coefficients of variation of CPU requests and of memory per core.
	cpuCV     = 0.5
	perCoreCV = 0.4
	// noiseCV is the coefficient of variation of the factor by which requests miss the usage of their workload.
	noiseCV = 0.4
	// maxShift is the largest shift of the series of a pod in minutes.
	maxShift = 10
	// percentile of the month before by which requests are set, and the least share of what is provisioned that they are set to.
	percentile   = 0.9
	minRequested = 0.05
	// memoryShare is the memory that pods use of their requests where the data has none: so little that memory is never short.
	memoryShare = 0.5
	// limitRatio is the limit of a pod as a multiple of its request.
	limitRatio = 2
)

// Options describe a cluster.
type Options struct {
	// Set is one of usage.Sets.
	Set  string
	Kind Kind
	// BestEffort is the share of pods without requests and limits.
	BestEffort float64
	// Use replaces the mean usage unless it is 0.
	Use float64
}

// Level is the mean usage of concurrent pods as a multiple of their requests. It is higher without best-effort pods, which cause overload
// at any level. It does not apply to Bitbrains, whose requests are set by the month before.
func (o Options) Level() float64 {
	switch {
	case o.Use > 0:
		return o.Use
	case o.BestEffort > 0:
		return 0.7
	}
	return 0.85
}

// workload is a drawn Deployment.
type workload struct {
	name       string
	source     *usage.Workload
	bestEffort bool
	// cpu and memory are the requests of a pod in millicores and bytes.
	cpu, memory float64
	// cpuScale and memoryScale turn values of the series into millicores and bytes.
	cpuScale, memoryScale float64
	// update is the second of the rolling update.
	update int64
}

// pod is a drawn pod. It exists from one second to another, recording.Never if it does not end.
type pod struct {
	workload    *workload
	machine     *usage.Machine
	generation  int
	start, end  int64
	firstDay    int
	shiftMinute int
	node        string
}

// draw has the state of drawing a cluster.
type draw struct {
	Options
	set       *usage.Set
	random    *rand.Rand
	workloads []*workload
	pods      []*pod
	// date is the first day of sets with dates, minute the minute of the first day at which the recording starts.
	date   string
	minute int
}

// Draw returns a recording of a cluster on a data set. The same set, options and seed give the same recording.
func Draw(set *usage.Set, o Options, seed uint64) (*recording.Recording, error) {
	if set.Name != o.Set || len(set.Workloads) == 0 || !slices.Contains(Kinds, o.Kind) || !(o.BestEffort >= 0 && o.BestEffort < 1) {
		return nil, fmt.Errorf("invalid options %+v for %d workloads of the data set %q", o, len(set.Workloads), set.Name)
	}
	d := &draw{Options: o, set: set, random: rand.New(rand.NewPCG(seed, 0x7265616c))}
	d.chooseTime()
	slots := d.drawWorkloads()
	replicas := map[*workload]int64{}
	for _, w := range slots {
		d.drawPods(w, replicas[w])
		replicas[w]++
	}
	d.scale(slots)
	slices.SortStableFunc(d.pods, func(a, b *pod) int { return int(a.start - b.start) })
	d.place()
	return d.recording(seed)
}

// chooseTime draws the first day and the time of the day.
func (d *draw) chooseTime() {
	days := map[string]bool{}
	for _, w := range d.set.Workloads {
		for _, m := range w.Machines {
			for _, day := range m.Days {
				days[day.Name] = true
			}
		}
	}
	names := make([]string, 0, len(days))
	for name := range days {
		names = append(names, name)
	}
	slices.Sort(names)
	d.date = names[d.random.IntN(len(names))]
	d.minute = 60 * d.random.IntN(24)
}

// drawWorkloads draws the workloads, and returns the workload of each concurrent pod.
func (d *draw) drawWorkloads() (slots []*workload) {
	var order []int
	for len(slots) < Pods {
		if len(order) == 0 {
			order = d.random.Perm(len(d.set.Workloads))
		}
		source := &d.set.Workloads[order[0]]
		order = order[1:]
		w := &workload{name: fmt.Sprintf("workload-%03d", len(d.workloads)), source: source, cpu: d.lognormal(cpuCV)}
		w.memory = w.cpu * d.lognormal(perCoreCV)
		w.update = updateStart + d.random.Int64N(updateSeconds)
		typicalCPU, typicalMemory := typical(source)
		w.cpuScale, w.memoryScale = d.lognormal(noiseCV)/typicalCPU, d.lognormal(noiseCV)/typicalMemory
		d.workloads = append(d.workloads, w)
		for range min(1+d.random.IntN(maxReplicas), Pods-len(slots)) {
			slots = append(slots, w)
		}
	}
	d.chooseBestEffort(slots)
	return slots
}

// chooseBestEffort removes the requests of workloads until the pods without requests are the share, as nearly as possible.
func (d *draw) chooseBestEffort(slots []*workload) {
	replicas := map[*workload]int{}
	for _, w := range slots {
		replicas[w]++
	}
	missing := int(math.Round(d.BestEffort * Pods))
	for _, i := range d.random.Perm(len(d.workloads)) {
		if w := d.workloads[i]; replicas[w] <= missing {
			w.bestEffort = true
			missing -= replicas[w]
		}
	}
}

// lognormal returns a random number of a log-normal distribution with mean 1 and a coefficient of variation.
func (d *draw) lognormal(cv float64) float64 {
	return generate.Lognormal(d.random, cv)
}

// typical returns the usage of a workload by which its requests are set: the percentile of the month before, or the mean if that
// is unknown. It is at least a small amount.
func typical(w *usage.Workload) (cpu, memory float64) {
	const least = 1e-3
	var allCPU, allMemory []float32
	before := false
	for i := range w.Machines {
		m := &w.Machines[i]
		days := m.Days
		if len(m.Before) > 0 {
			before, days = true, m.Before
			cpu, memory = max(cpu, minRequested*m.Provisioned.CPU), max(memory, minRequested*m.Provisioned.Memory)
		}
		for _, day := range days {
			allCPU, allMemory = append(allCPU, day.CPU...), append(allMemory, day.Memory...)
		}
	}
	level := mean
	if before {
		level = func(values []float32) float64 { return quantile(values, percentile) }
	}
	return max(cpu, level(allCPU), least), max(memory, level(allMemory), least)
}

// mean returns the mean of values, 0 if there are none.
func mean(values []float32) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(max(len(values), 1))
}

// quantile returns the value that a share of values do not exceed, 0 if there are none. It orders the values.
func quantile(values []float32, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return float64(values[min(int(share*float64(len(values))), len(values)-1)])
}

// drawPods draws a replica of a workload, by its number in the workload, and its successors.
func (d *draw) drawPods(w *workload, replica int64) {
	const end = Hours * 3600
	first := d.newPod(w, 0, d.random.Int64N(fillSeconds))
	switch d.Kind {
	case Stay:
	case Rollout:
		begin := w.update + replica*surgeSeconds
		first.end = begin + surgeSeconds
		d.newPod(w, 1, begin)
	case Churn:
		life := d.lognormal(lifeCV) * Life * d.random.Float64() // A part of the life was before the recording.
		for p := first; ; life = d.lognormal(lifeCV) * Life {
			p.end = p.start + int64(max(life, surgeSeconds))
			if p.end >= end {
				p.end = recording.Never
				return
			}
			p = d.newPod(w, 0, p.end)
		}
	}
}

// newPod draws a pod.
func (d *draw) newPod(w *workload, generation int, start int64) *pod {
	m := &w.source.Machines[d.random.IntN(len(w.source.Machines))]
	p := &pod{workload: w, machine: m, generation: generation, start: start, end: recording.Never}
	p.shiftMinute = d.random.IntN(2*maxShift+1) - maxShift
	if d.Set == usage.Google {
		p.firstDay = d.random.IntN(len(m.Days)) // Days are of the job, not dates.
	} else if i := slices.IndexFunc(m.Days, func(day usage.Day) bool { return day.Name >= d.date }); i > 0 {
		p.firstDay = i
	}
	d.pods = append(d.pods, p)
	return p
}
