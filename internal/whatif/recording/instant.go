package recording

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// loadWindow is the window in seconds over which the load of nodes is averaged.
const loadWindow = 15 * 60

// Instant is a cluster at one time.
type Instant struct {
	Objects *manifest.Objects
	// Load and Usage are nil if the load of nodes or the usage of pods is unknown.
	Load  *load.Reading
	Usage *load.PodReading
	Time  time.Time
}

// At returns the cluster at a second of the part, with the usage of its pods, and the load of the nodes that pods cause: the sum of their
// usage, as a fraction of the machine.
func (in *Part) At(second int64) Instant {
	objects := &manifest.Objects{
		Workloads: in.objects.Workloads, Others: in.objects.Others, Warnings: append([]string{}, in.objects.Warnings...),
		Kubernetes: in.objects.Kubernetes,
	}
	nodes := map[string]*v1.Node{}
	for _, n := range in.nodes {
		if n.Appeared <= second && second < n.Gone {
			objects.Nodes = append(objects.Nodes, n.Object)
			nodes[n.Object.Name] = n.Object
		}
	}
	unknown := 0
	for i := range in.pods {
		p := &in.pods[i]
		if p.Created > second || p.Ended <= second {
			continue
		}
		pod := *p.Object
		pod.CreationTimestamp = metav1.NewTime(in.Time(p.Created))
		if p.Scheduled > second {
			objects.Pending = append(objects.Pending, &pod)
			continue
		}
		if nodes[p.Node] == nil {
			unknown++
			continue
		}
		pod.Status.Phase = v1.PodRunning
		setRunning(&pod, p.Node, in.Time(p.Scheduled))
		objects.Running = append(objects.Running, &pod)
	}
	objects.Others = manifest.GenerateClaims(slices.Concat(objects.Running, objects.Pending), objects.Others)
	if unknown > 0 {
		objects.Warnings = append(objects.Warnings, format.Are(unknown, "pod")+" ignored: the node is not in the recording at that time")
	}
	reading, usage := in.load(second, nodes), in.podUsage(second)
	return Instant{objects, &reading, &usage, in.Time(second)}
}

// podUsage returns the usage of pods at a second of the part.
func (in *Part) podUsage(second int64) load.PodReading {
	step := time.Duration(in.about.Step) * time.Second
	last := int(time.Duration(in.from+second) * time.Second / step)
	reading := load.PodReading{Source: "recording", Time: in.about.From.Add(time.Duration(last) * step), Window: step}
	for i := range in.pods {
		p := &in.pods[i]
		cpu, hasCPU := p.CPU.At(last)
		memory, hasMemory := p.Memory.At(last)
		if hasCPU && hasMemory && p.Scheduled <= second && second < p.Ended {
			reading.Pods = append(reading.Pods, load.PodUsage{Namespace: p.Object.Namespace, Name: p.Object.Name, CPU: cpu, Memory: memory})
		}
	}
	return reading
}

// load returns the load of nodes at a second of the part.
func (in *Part) load(second int64, nodes map[string]*v1.Node) load.Reading {
	window := load.NewSampleWindow(loadWindow * time.Second)
	step := int64(in.about.Step)
	last := (in.from + second) / step
	for at := max(last-(loadWindow-1)/step, 0); at <= last; at++ {
		instant := in.about.From.Add(time.Duration(at*step) * time.Second)
		for name, used := range in.usedBy(int(at)) {
			node, ok := nodes[name]
			if !ok {
				continue
			}
			machine := Amounts(node.Status.Capacity)
			window.Add(name, instant, load.Sample{
				CPU:    min(result.Ratio(used.CPU, float64(machine.CPU)), 1),
				Memory: min(result.Ratio(used.Memory, float64(machine.Memory)), 1),
			})
		}
	}
	reading := load.Reading{
		Source: "recording", Time: in.about.From.Add(time.Duration(last*step) * time.Second), Nodes: map[string]load.Node{},
	}
	for name := range nodes {
		if measured, ok := window.Load(name); ok {
			reading.Nodes[name] = measured
			reading.Window = max(reading.Window, window.Covered(name, time.Duration(step)*time.Second))
		}
	}
	return reading
}

// usedBy returns the usage of the pods of each node, in millicores and bytes, at a step of the recording.
func (in *Part) usedBy(step int) map[string]load.Sample {
	second := int64(step*in.about.Step) - in.from
	used := map[string]load.Sample{}
	for i := range in.pods {
		p := &in.pods[i]
		if p.Scheduled > second || p.Ended <= second || p.Scheduled == Never {
			continue
		}
		u := used[p.Node]
		if cpu, ok := p.CPU.At(step); ok {
			u.CPU += cpu
		}
		if memory, ok := p.Memory.At(step); ok {
			u.Memory += memory
		}
		used[p.Node] = u
	}
	return used
}
