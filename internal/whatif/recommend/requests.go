package recommend

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// A workload keeps its requests if its use was recorded for less than minUse seconds or minReadings times.
const (
	minUse      = 24 * 3600
	minReadings = 100
)

// histogram counts readings of use in classes that grow by 2^(1/binsPerOctave), about 4.4 %, from 1 on. Class 0 has smaller readings.
type histogram map[int16]float64

const binsPerOctave = 16

// add adds a reading with a weight.
func (h histogram) add(value, weight float64) {
	bin := 0
	if value >= 1 {
		bin = 1 + int(math.Log2(value)*binsPerOctave)
	}
	h[int16(bin)] += weight
}

// quantile returns the upper end of the class that has the quantile of the weights, 0 without readings.
func (h histogram) quantile(q float64) float64 {
	bins := slices.Sorted(maps.Keys(h))
	var all, sum float64
	for _, bin := range bins {
		all += h[bin]
	}
	for i, bin := range bins {
		if sum += h[bin]; sum >= q*all*(1-1e-12) || i == len(bins)-1 {
			return math.Exp2(float64(bin) / binsPerOctave)
		}
	}
	return 0
}

// workloadUse is the use of the pods of a workload.
type workloadUse struct {
	resources.Workload
	// running is the number of pods that run at the end.
	pods, running, readings int
	// gaps is the number of readings that are missing between others.
	gaps    int
	seconds int64
	// cpu in millicores and memory in bytes, each reading with weight 1.
	cpu, memory histogram
	// decayedCPU has the readings of CPU, and dailyMemory the daily peaks of memory of each pod, with weights that halve in a day before
	// the end, as in the Vertical Pod Autoscaler.
	decayedCPU, dailyMemory histogram
	// peaks has the daily peaks of memory of each pod, with weight 1.
	peaks histogram
	// pod is the last pod of the workload, and template has the names of the containers of its template, nil if they are not known.
	pod      *v1.Pod
	template []string
}

// usesOf returns the use of the workloads of a recording from one second until another, ordered by name. Pods of DaemonSets and mirror pods
// are left out: their number does not depend on requests.
func usesOf(r *recording.Recording, start, end int64) []*workloadUse {
	const day = 24 * 3600
	byWorkload := map[resources.Workload]*workloadUse{}
	step := int64(r.About.Step)
	for i := range r.Pods {
		p := &r.Pods[i]
		if p.Created >= end || p.Ended <= start || resources.IsNodeBound(p.Object) {
			continue
		}
		w := resources.WorkloadOf(p.Object)
		u := byWorkload[w]
		if u == nil {
			u = &workloadUse{
				Workload: w, cpu: histogram{}, memory: histogram{}, decayedCPU: histogram{}, dailyMemory: histogram{},
				peaks: histogram{},
			}
			byWorkload[w] = u
		}
		u.pod = p.Object
		if u.pods++; p.Ended >= end {
			u.running++
		}
		peaks := map[int64]float64{}
		for s := max(p.CPU.First, int(start/step)); s < p.CPU.End() && int64(s)*step < end; s++ {
			cpu, hasCPU := p.CPU.At(s)
			memory, hasMemory := p.Memory.At(s)
			if !hasCPU || !hasMemory {
				u.gaps++
				continue
			}
			u.readings++
			u.seconds += step
			u.cpu.add(cpu, 1)
			u.memory.add(memory, 1)
			before := float64(end-int64(s)*step) / day
			u.decayedCPU.add(cpu, math.Exp2(-before))
			peaks[int64(before)] = max(peaks[int64(before)], memory)
		}
		for before, peak := range peaks {
			u.dailyMemory.add(peak, math.Exp2(-float64(before)))
			u.peaks.add(peak, 1)
		}
	}
	return slices.SortedFunc(maps.Values(byWorkload), func(a, b *workloadUse) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}

// rule states how requests follow from use.
type rule struct {
	// Name for people, such as "CPU p90, memory p99 + 15 %".
	Name string
	// cpu and memory are the quantiles, 1 for the maximum; cpuMargin and memoryMargin are added, as fractions.
	cpu, memory, cpuMargin, memoryMargin float64
	isVPA                                bool
	// table has the requests of the workloads, empty to keep all. kept are workloads that it leaves out or keeps within bounds.
	table []recording.WorkloadRequests
	kept  []keptWorkloads
	// rising is by how much the CPU and memory of the pods of each namespace rise together.
	rising map[string][2]int64
	// released is what the requests of the table release over time, CPU and memory as parts of a node, by which the table is ordered.
	released map[recording.WorkloadRequests]float64
}

// first returns the rule for the first workloads of its table.
func (r *rule) first(workloads int) *rule {
	out := *r
	out.table, out.kept = r.table[:workloads], slices.Clone(r.kept)
	out.Name += " for " + format.Part(workloads, len(r.table), "workload")
	for _, w := range r.table[workloads:] {
		out.kept = keep(out.kept, reasonEnough, w.Kind+" "+w.Namespace+"/"+w.Name)
	}
	return &out
}

// keepRequests is the rule that keeps all requests.
const keepRequests = "requests as they are"

// newRules returns the rules to try: to keep requests, the defaults of the Vertical Pod Autoscaler and of KRR (strategy simple), and
// quantiles, from low to high. Memory begins at the 95th percentile: throttling is slow, a kill is a kill.
func newRules() []rule {
	rules := []rule{
		{Name: keepRequests},
		{Name: "VPA's defaults", isVPA: true},
		{Name: "KRR's defaults", cpu: 0.95, memory: 1, memoryMargin: 0.15},
	}
	for _, q := range [][2]float64{{0.5, 0.95}, {0.5, 0.99}, {0.75, 0.99}, {0.9, 0.99}, {0.95, 0.99}, {0.99, 1}, {1, 1}} {
		r := rule{cpu: q[0], memory: q[1], memoryMargin: 0.15}
		r.Name = fmt.Sprintf("requests of CPU %s, memory %s + 15 %%", quantileName(q[0]), quantileName(q[1]))
		rules = append(rules, r)
	}
	return rules
}

// quantileName returns a quantile for people.
func quantileName(q float64) string {
	if q == 1 {
		return "maximum"
	}
	return fmt.Sprintf("p%g", 100*q)
}

// requestsFor returns the requests of a pod of a workload by the rule, in millicores and bytes.
func (r *rule) requestsFor(u *workloadUse) (cpu, memory int64) {
	// vertical-pod-autoscaler/pkg/recommender: target-cpu-percentile 0.9, memory percentile 0.9 of daily peaks, margin 0.15.
	q := *r
	useCPU, useMemory := u.cpu, u.memory
	if r.isVPA {
		q.cpu, q.memory, q.cpuMargin, q.memoryMargin, useCPU, useMemory = 0.9, 0.9, 0.15, 0.15, u.decayedCPU, u.dailyMemory
	}
	return max(recording.MinMilliCPU, int64(math.Ceil(useCPU.quantile(q.cpu)*(1+q.cpuMargin)))),
		max(recording.MinMemory, int64(math.Ceil(useMemory.quantile(q.memory)*(1+q.memoryMargin))))
}

// keptWorkloads are the workloads that keep their requests, or keep them within bounds, for one reason.
type keptWorkloads struct {
	// Reason continues "keep their requests".
	Reason    string   `json:"reason"`
	Workloads []string `json:"workloads"`
}

// keep adds a workload to those with a reason.
func keep(kept []keptWorkloads, reason, workload string) []keptWorkloads {
	for i := range kept {
		if kept[i].Reason == reason {
			kept[i].Workloads = append(kept[i].Workloads, workload)
			return kept
		}
	}
	return append(kept, keptWorkloads{reason, []string{workload}})
}

// fillRules sets the tables of rules, and returns the workloads that keep requests with all rules. Requests beyond the largest allocatable
// amounts are not recommended.
func fillRules(rules []rule, uses []*workloadUse, c *constraints, largest resources.Amounts) (kept []keptWorkloads) {
	for _, u := range uses {
		if reason, name := c.keepsAll(u); reason != "" {
			kept = keep(kept, reason, name)
			continue
		}
		allowed := [2]allowance{c.allowanceFor(u, resources.CPUResource), c.allowanceFor(u, resources.MemoryResource)}
		for i := range allowed {
			if reason := allowed[i].reason; reason != "" {
				kept = keep(kept, fmt.Sprintf(reason, allowed[i].Name()), u.text())
			}
		}
		for i := range rules {
			if rules[i].Name != keepRequests {
				rules[i].add(u, &allowed, largest)
			}
		}
	}
	for _, r := range rules {
		slices.SortStableFunc(r.table, func(a, b recording.WorkloadRequests) int { return cmp.Compare(r.released[b], r.released[a]) })
	}
	return kept
}

// add adds the requests of a workload to the table, within what is allowed of CPU and memory.
func (r *rule) add(u *workloadUse, allowed *[2]allowance, largest resources.Amounts) {
	if r.rising == nil {
		r.rising, r.released = map[string][2]int64{}, map[recording.WorkloadRequests]float64{}
	}
	rising := r.rising[u.Namespace]
	cpu, memory := r.requestsFor(u)
	cpu, isCPUCut := allowed[0].request(cpu, max(u.running, 1), &rising[0])
	memory, isMemoryCut := allowed[1].request(memory, max(u.running, 1), &rising[1])
	switch {
	case largest.CPU > 0 && (cpu > largest.CPU || memory > largest.Memory):
		r.kept = keep(r.kept, reasonTooLarge, u.text())
		return
	case isCPUCut || isMemoryCut:
		r.kept = keep(r.kept, reasonBounds, u.text())
	}
	r.rising[u.Namespace] = rising
	if cpu+memory > 0 {
		w := recording.WorkloadRequests{Namespace: u.Namespace, Kind: u.Kind, Name: u.Name, CPU: cpu, Memory: memory}
		r.table = append(r.table, w)
		r.released[w] = float64(u.seconds) * (allowed[0].released(cpu, largest.CPU) + allowed[1].released(memory, largest.Memory))
	}
}

// summary names at most three of the workloads.
func (k *keptWorkloads) summary() string {
	return fmt.Sprintf("%s %s requests %s: %s", format.Of(len(k.Workloads), "workload"),
		format.Form(len(k.Workloads), "keeps its", "keep their"), k.Reason, format.Abbreviate(k.Workloads, 3, ", "))
}

// isBelowP99 reports whether requests of the workload have less memory than the 99th percentile of its use.
func (u *workloadUse) isBelowP99(w *recording.WorkloadRequests) bool {
	return w.Memory > 0 && float64(w.Memory) < u.memory.quantile(0.99)
}

// text returns the kind, namespace and name of the workload.
func (u *workloadUse) text() string { return u.Kind + " " + u.Namespace + "/" + u.Name }
