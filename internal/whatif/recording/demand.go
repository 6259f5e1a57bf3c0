package recording

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// The CPU use of a node, as a fraction of its allocatable and of its capacity, between which it is saturated: its pods get what the node
// has, and what they used is a lower bound of their demand. If nodes exceed their capacity for a longer time, the recording is of a
// simulation, in which usage is demand.
const (
	saturatedFrom = result.DefaultSaturation
	saturatedTo   = 1.02
)

// stepsBefore is the number of steps before a saturated one whose mean is the demand of a pod if no other pod shows it.
const stepsBefore = 5

// demand is how the demand of pods was estimated: the number of steps in which a node was saturated and, for the pods on such nodes, of
// steps by pods of the same workload on other nodes, by the steps before, and without either.
type demand struct{ saturated, byOthers, before, unknown int }

// estimator estimates the demand of pods from one step until another.
type estimator struct {
	demand
	pods       []Pod
	first, end int
	// full has the steps in which a node is saturated, by the name of the node.
	full map[string][]bool
}

// estimateDemand raises the CPU usage of pods while their node is saturated, from one step until another: to the mean of the pods of the
// same workload on nodes that are not saturated at that time or, without such pods, to the mean of the pod in the last steps in which its
// node was not. Usage is never lowered, and memory not changed: it is not elastic.
func estimateDemand(nodes []Node, pods []Pod, first, end int) demand {
	e := estimator{pods: pods, first: first, end: end, full: map[string][]bool{}}
	if !e.findSaturated(nodes) {
		return demand{}
	}
	others := e.meansOfOthers()
	for i := range pods {
		if p := &pods[i]; e.full[p.Node] != nil {
			e.raise(p, others[resources.WorkloadOf(p.Object)])
		}
	}
	return e.demand
}

// each visits the steps in which a pod has usage on a node.
func (e *estimator) each(p *Pod, visit func(step int, cpu float64)) {
	for step := max(e.first, p.CPU.First); p.Node != "" && step < min(e.end, p.CPU.End()); step++ {
		if cpu, ok := p.CPU.At(step); ok {
			visit(step, cpu)
		}
	}
}

// findSaturated finds the steps in which nodes are saturated. It returns false if there are none, or if nodes do not limit their pods.
func (e *estimator) findSaturated(nodes []Node) bool {
	used, above := map[string][]float32{}, 0
	for i := range e.pods {
		p := &e.pods[i]
		if used[p.Node] == nil {
			used[p.Node] = make([]float32, e.end-e.first)
		}
		e.each(p, func(step int, cpu float64) { used[p.Node][step-e.first] += float32(cpu) })
	}
	for _, n := range nodes {
		name, allocatable := n.Object.Name, Amounts(n.Object.Status.Allocatable).CPU
		most := saturatedTo * float32(max(allocatable, Amounts(n.Object.Status.Capacity).CPU))
		for i, cpu := range used[name] {
			switch {
			case cpu > most:
				above++
			case cpu >= saturatedFrom*float32(allocatable) && allocatable > 0:
				if e.full[name] == nil {
					e.full[name] = make([]bool, e.end-e.first)
				}
				e.full[name][i] = true
				e.saturated++
			}
		}
		delete(used, name) // a node may be there again
	}
	return e.saturated > 0 && above <= e.saturated
}

func (e *estimator) isFull(p *Pod, step int) bool {
	return e.full[p.Node] != nil && e.full[p.Node][step-e.first]
}

// mean is a mean of some pods.
type mean struct {
	sum  float64
	pods int
}

// meansOfOthers returns what the pods of each workload use on average on nodes that are not saturated, in the steps in which the
// workload has a pod on a saturated one.
func (e *estimator) meansOfOthers() map[resources.Workload]map[int]*mean {
	out := map[resources.Workload]map[int]*mean{}
	for i := range e.pods {
		p := &e.pods[i]
		if e.full[p.Node] == nil {
			continue
		}
		workload := resources.WorkloadOf(p.Object)
		if out[workload] == nil {
			out[workload] = map[int]*mean{}
		}
		e.each(p, func(step int, _ float64) {
			if e.isFull(p, step) && out[workload][step] == nil {
				out[workload][step] = &mean{}
			}
		})
	}
	for i := range e.pods {
		p := &e.pods[i]
		if steps := out[resources.WorkloadOf(p.Object)]; len(steps) > 0 {
			e.each(p, func(step int, cpu float64) {
				if m := steps[step]; m != nil && !e.isFull(p, step) {
					m.sum, m.pods = m.sum+cpu, m.pods+1
				}
			})
		}
	}
	return out
}

// raise raises the usage of a pod to its demand. others is that of its workload on other nodes.
func (e *estimator) raise(p *Pod, others map[int]*mean) {
	raised := Series{First: p.CPU.First, codes: slices.Clone(p.CPU.codes)}
	var last []float64
	e.each(p, func(step int, cpu float64) {
		if !e.isFull(p, step) {
			last = append(last[max(0, len(last)-stepsBefore+1):], cpu)
			return
		}
		wanted := 0.0
		switch m := others[step]; {
		case m.pods > 0:
			wanted = m.sum / float64(m.pods)
			e.byOthers++
		case len(last) > 0:
			wanted = stat.Mean(last, nil)
			e.before++
		default:
			e.unknown++
		}
		if wanted > cpu {
			raised.Set(step, wanted)
		}
	})
	p.CPU = raised
}

// note states for how long nodes were saturated, and how the demand was estimated. step is the length of a step in minutes, 0 for one
// instant.
func (d demand) note(in *Input, step float64) {
	if d.saturated == 0 {
		return
	}
	time := format.Are(d.saturated, "node") + " saturated"
	if step > 0 {
		time = "Nodes were saturated for " + format.Auto(step*float64(d.saturated)) + " node minutes"
	}
	pods := d.byOthers + d.before + d.unknown
	in.Missing = append(slices.Clone(in.Missing), fmt.Sprintf(
		"%s: pods used at least 95 %% of the CPU, and may have demanded more. Their demand is estimated by pods of the same workload on "+
			"other nodes in %.0f %% of this time, by the steps before in %.0f %%, and taken as what they used in %.0f %%.",
		time, share100(d.byOthers, pods), share100(d.before, pods), share100(d.unknown, pods)))
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
