package baselines

import (
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/load"
)

func scoreTargetLoadPacking(pod *v1.Pod, n node) int64 {
	capacity := n.Node().Status.Capacity.Cpu().MilliValue()
	if capacity == 0 {
		return 0
	}
	predicted := n.load.CPU.Mean*float64(capacity) + float64(predictPod(pod))
	n.unmeasured(func(p *v1.Pod) { predicted += float64(predictPod(p)) })
	return targetLoadPacking(100 * predicted / float64(capacity))
}

// predictPod returns the millicores that TargetLoadPacking predicts for a pod.
func predictPod(pod *v1.Pod) (millicores int64) {
	for i := range pod.Spec.Containers {
		resources := &pod.Spec.Containers[i].Resources
		millicores += predictMillicores(resources.Requests.Cpu().MilliValue(), resources.Limits.Cpu().MilliValue())
	}
	return millicores
}

func scoreLoadVariation(pod *v1.Pod, n node) int64 {
	allocatable := amountsOf(n.Node().Status.Allocatable)
	if allocatable.cpu == 0 || allocatable.memory == 0 {
		return 0
	}
	request, _ := requestsAndLimits(pod)
	return int64(math.Round(min(
		loadVariation(n.load.CPU.Mean, fraction(request.cpu, allocatable.cpu), n.load.CPU.StdDev),
		loadVariation(n.load.Memory.Mean, fraction(request.memory, allocatable.memory), n.load.Memory.StdDev),
	)))
}

func scoreLowRisk(pod *v1.Pod, n node) int64 {
	allocatable := amountsOf(n.Node().Status.Allocatable)
	request, limit := requestsAndLimits(pod)
	if request == (amounts{}) && limit == (amounts{}) || allocatable.cpu == 0 || allocatable.memory == 0 {
		return 0 // best-effort pods are not scored
	}
	var requestBefore, limitBefore amounts
	for _, info := range n.GetPods() {
		r, l := requestsAndLimits(info.GetPod())
		requestBefore.add(r)
		limitBefore.add(atLeast(l, r))
	}
	request.add(requestBefore)
	podRequest, podLimit := requestsAndLimits(pod)
	limit = atLeast(podLimit, podRequest)
	limit.add(limitBefore)
	cpu := commitment{
		fraction(request.cpu, allocatable.cpu), fraction(limit.cpu, allocatable.cpu),
		fraction(requestBefore.cpu, allocatable.cpu), fraction(limitBefore.cpu, allocatable.cpu),
	}
	memory := commitment{
		fraction(request.memory, allocatable.memory), fraction(limit.memory, allocatable.memory),
		fraction(requestBefore.memory, allocatable.memory), fraction(limitBefore.memory, allocatable.memory),
	}
	risk := max(lowRisk(cpu, n.load.CPU.Mean, n.load.CPU.StdDev, true), lowRisk(memory, n.load.Memory.Mean, n.load.Memory.StdDev, true))
	return int64(math.Round(maxScore * (1 - risk)))
}

// atLeast returns the higher amount of each resource.
func atLeast(a, b amounts) amounts { return amounts{max(a.cpu, b.cpu), max(a.memory, b.memory)} }

func fraction(amount, of int64) float64 { return float64(amount) / float64(of) }

func scoreLoadAware(pod *v1.Pod, n node) int64 {
	allocatable := amountsOf(n.Node().Status.Allocatable)
	used := estimatePod(pod)
	used.add(amounts{int64(n.load.CPU.Mean * float64(allocatable.cpu)), int64(n.load.Memory.Mean * float64(allocatable.memory))})
	n.unmeasured(func(p *v1.Pod) { used.add(estimatePod(p)) })
	return koordScore(used.cpu, allocatable.cpu, used.memory, allocatable.memory)
}

// estimatePod returns the usage that Koordinator estimates for a pod.
func estimatePod(pod *v1.Pod) amounts {
	requests, limits := requestsAndLimits(pod)
	return amounts{
		koordEstimate(requests.cpu, limits.cpu, koordCPUFactor, koordDefaultCPU),
		koordEstimate(requests.memory, limits.memory, koordMemoryFactor, koordDefaultMemory),
	}
}

// peaks keeps the highest utilization of each node over an hour and a day, for Crane.
type peaks struct {
	mu    sync.Mutex
	nodes map[string]*nodePeaks
}

type nodePeaks struct{ cpuHour, cpuDay, memoryHour, memoryDay window }

func newPeaks() *peaks { return &peaks{nodes: map[string]*nodePeaks{}} }

func (p *peaks) score(_ *v1.Pod, n node) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	highest := p.nodes[n.Node().Name]
	if highest == nil {
		return 0
	}
	bound := func(within time.Duration) (count int64) {
		n.boundSince(n.now.Add(-within), func(*v1.Pod) { count++ })
		return count
	}
	return crane(
		craneUsage{n.load.CPU.Mean, highest.cpuHour.max(), highest.cpuDay.max()},
		craneUsage{n.load.Memory.Mean, highest.memoryHour.max(), highest.memoryDay.max()},
		craneHotValue(bound(5*time.Minute), bound(time.Minute)),
	)
}

// add adds a reading.
func (p *peaks) add(snapshot *load.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reading := snapshot.Reading()
	for name, measured := range reading.Nodes {
		n := p.nodes[name]
		if n == nil {
			n = &nodePeaks{
				cpuHour: window{length: time.Hour}, cpuDay: window{length: 24 * time.Hour},
				memoryHour: window{length: time.Hour}, memoryDay: window{length: 24 * time.Hour},
			}
			p.nodes[name] = n
		}
		for _, w := range []*window{&n.cpuHour, &n.cpuDay} {
			w.add(reading.Time, measured.CPU.Mean)
		}
		for _, w := range []*window{&n.memoryHour, &n.memoryDay} {
			w.add(reading.Time, measured.Memory.Mean)
		}
	}
}

// window has the values that can still become the highest value within length: later values are lower.
type window struct {
	length time.Duration
	values []timed
}

type timed struct {
	time  time.Time
	value float64
}

// add adds a value and removes values that are too old or not higher than it.
func (w *window) add(now time.Time, value float64) {
	kept := w.values
	for len(kept) > 0 && kept[len(kept)-1].value <= value {
		kept = kept[:len(kept)-1]
	}
	kept = append(kept, timed{now, value})
	for now.Sub(kept[0].time) > w.length {
		kept = kept[1:]
	}
	w.values = kept
}

// max returns the highest value, 0 if there is none.
func (w *window) max() float64 {
	if len(w.values) == 0 {
		return 0
	}
	return w.values[0].value
}
