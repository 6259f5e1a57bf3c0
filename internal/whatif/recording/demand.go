package recording

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// The CPU use of a node, as a fraction of its allocatable and of its capacity, between which it is saturated: its pods get what the node has,
// and what they used is a lower bound of their demand. If nodes exceed their capacity for a longer time, the recording is of a simulation,
// in which usage is demand.
const (
	saturatedFrom = 0.95
	saturatedTo   = 1.02
)

// stepsBefore is the number of steps before a saturated one whose mean is the demand of a pod if no other pod shows it.
const stepsBefore = 5

// demand is how the demand of pods was estimated: the number of steps in which a node was saturated and, for the pods on such nodes, of steps
// by pods of the same workload on other nodes, by the steps before, and without either.
type demand struct{ saturated, byOthers, before, unknown int }

// estimateDemand raises the CPU usage of pods while their node is saturated, from one step until another: to the mean of the pods of the same
// workload on nodes that are not saturated at that time or, without such pods, to the mean of the pod in the last steps in which its node
// was not. Usage is never lowered, and memory not changed: it is not elastic.
func estimateDemand(nodes []Node, pods []Pod, first, end int) (d demand) {
	used := map[string][]float32{}
	each := func(p *Pod, visit func(step int, cpu float64)) {
		for step := max(first, p.CPU.First); p.Node != "" && step < min(end, p.CPU.End()); step++ {
			if cpu, ok := p.CPU.At(step); ok {
				visit(step, cpu)
			}
		}
	}
	for i := range pods {
		p := &pods[i]
		if used[p.Node] == nil && p.Node != "" {
			used[p.Node] = make([]float32, end-first)
		}
		each(p, func(step int, cpu float64) { used[p.Node][step-first] += float32(cpu) })
	}
	full, above := map[string][]bool{}, 0
	for _, n := range nodes {
		allocatable, capacity := Amounts(n.Object.Status.Allocatable), Amounts(n.Object.Status.Capacity)
		least, most := saturatedFrom*float32(allocatable.CPU), saturatedTo*float32(max(allocatable.CPU, capacity.CPU))
		for i, cpu := range used[n.Object.Name] {
			if cpu > most {
				above++
			}
			if cpu < least || cpu > most || least == 0 {
				continue
			}
			if full[n.Object.Name] == nil {
				full[n.Object.Name] = make([]bool, end-first)
			}
			if !full[n.Object.Name][i] {
				d.saturated++
			}
			full[n.Object.Name][i] = true
		}
	}
	if d.saturated == 0 || above > d.saturated {
		return demand{}
	}
	isFull := func(p *Pod, step int) bool { return full[p.Node] != nil && full[p.Node][step-first] }
	// others has the sum and the number of pods of a workload on other nodes, in the steps in which it has a pod on a saturated one.
	type mean struct {
		sum  float64
		pods int
	}
	others := map[resources.Workload]map[int]*mean{}
	for i := range pods {
		p := &pods[i]
		if full[p.Node] == nil {
			continue
		}
		workload := resources.WorkloadOf(p.Object)
		if others[workload] == nil {
			others[workload] = map[int]*mean{}
		}
		each(p, func(step int, _ float64) {
			if isFull(p, step) && others[workload][step] == nil {
				others[workload][step] = &mean{}
			}
		})
	}
	for i := range pods {
		p := &pods[i]
		steps := others[resources.WorkloadOf(p.Object)]
		if len(steps) == 0 {
			continue
		}
		each(p, func(step int, cpu float64) {
			if m := steps[step]; m != nil && !isFull(p, step) {
				m.sum, m.pods = m.sum+cpu, m.pods+1
			}
		})
	}
	for i := range pods {
		p := &pods[i]
		if full[p.Node] == nil {
			continue
		}
		raised := Series{First: p.CPU.First, codes: slices.Clone(p.CPU.codes)}
		steps, last := others[resources.WorkloadOf(p.Object)], []float64{}
		each(p, func(step int, cpu float64) {
			if !isFull(p, step) {
				last = append(last[max(0, len(last)-stepsBefore+1):], cpu)
				return
			}
			wanted := cpu
			switch m := steps[step]; {
			case m.pods > 0:
				wanted = m.sum / float64(m.pods)
				d.byOthers++
			case len(last) > 0:
				wanted = 0
				for _, v := range last {
					wanted += v / float64(len(last))
				}
				d.before++
			default:
				d.unknown++
			}
			if wanted > cpu {
				raised.Set(step, wanted)
			}
		})
		p.CPU = raised
	}
	return d
}

// assume states how the demand was estimated. step is the length of a step in minutes, 0 for one instant.
func (d demand) assume(in *Input, step float64) {
	pods := d.byOthers + d.before + d.unknown
	if d.saturated == 0 {
		return
	}
	time := format.Of(d.saturated, "node") + " " + format.Form(d.saturated, "was", "were") + " saturated"
	if step > 0 {
		time = "nodes were saturated for " + format.Auto(step*float64(d.saturated)) + " node minutes"
	}
	in.assume("%s: pods used at least 95 %% of the CPU, and may have demanded more. The demand of pods there is estimated by pods of the same "+
		"workload on other nodes in %.0f %% of this time, by the steps before in %.0f %%, and taken as what they used in %.0f %%",
		time, share100(d.byOthers, pods), share100(d.before, pods), share100(d.unknown, pods))
}

func share100(part, all int) float64 { return 100 * float64(part) / float64(max(all, 1)) }

// demandAt returns the usage of a snapshot with the demand of the pods on saturated nodes, and how it was estimated.
func demandAt(objects *manifest.Objects, usage *load.PodReading) (*load.PodReading, demand) {
	nodes, pods := make([]Node, len(objects.Nodes)), make([]Pod, len(usage.Pods))
	for i, n := range objects.Nodes {
		nodes[i].Object = n
	}
	running := map[string]*v1.Pod{}
	for _, p := range objects.Running {
		running[resources.Name(p)] = p
	}
	for i, u := range usage.Pods {
		pods[i] = Pod{Object: &v1.Pod{}, CPU: NewSeries(0, u.CPU)}
		if p := running[u.Namespace+"/"+u.Name]; p != nil {
			pods[i].Object, pods[i].Node = p, p.Spec.NodeName
		}
	}
	d := estimateDemand(nodes, pods, 0, 1)
	out := *usage
	out.Pods = slices.Clone(usage.Pods)
	for i := range out.Pods {
		if cpu, _ := pods[i].CPU.At(0); cpu > 1.01*out.Pods[i].CPU { // not only by the rounding of a series
			out.Pods[i].CPU = cpu
		}
	}
	return &out, d
}
