package recording

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// runningSeconds is how long pods with a node have been running at the start.
const runningSeconds = 24 * 3600

// FromManifests returns the pods of manifests or of a snapshot: pods with a node run there from the start, and pods without a node
// arrive at second 0 in their order. With Reschedule all pods arrive in the order of their creation, but for pods that are bound to their
// node, such as DaemonSet pods, mirror pods and pods whose creator chose it. No pod ends.
func (s Source) FromManifests(objects *manifest.Objects) Input {
	in := &Part{objects: objects, isInstant: true}
	for _, node := range objects.Nodes {
		in.nodes = append(in.nodes, Node{Object: node, Gone: Never})
	}
	for _, pod := range objects.Running {
		in.pods = append(in.pods, Pod{
			Object: Unbind(pod), Node: pod.Spec.NodeName, Created: -runningSeconds, Scheduled: -runningSeconds, Ended: Never,
		})
	}
	for _, pod := range objects.Pending {
		in.pods = append(in.pods, Pod{Object: pod, Scheduled: Never, Ended: Never})
	}
	if s.Reschedule {
		arrives := func(p Pod) bool { return p.Node == "" || !isBound(p.Object) }
		arriving := slices.DeleteFunc(slices.Clone(in.pods), func(p Pod) bool { return !arrives(p) })
		slices.SortStableFunc(arriving, func(a, b Pod) int {
			return a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time)
		})
		for i := range arriving {
			arriving[i].Created = 0
		}
		in.pods = append(slices.DeleteFunc(in.pods, arrives), arriving...)
	}
	return in.Input(s)
}

// isBound reports whether a pod stays on its node.
func isBound(pod *v1.Pod) bool { return resources.IsNodeBound(pod) || resources.HasFixedNode(pod) }

// arrivalSeconds is the shortest time over which the pods of manifests arrive again by default: the load of the first pods is measured, and
// known to the scheduler, long before the last pods arrive.
const arrivalSeconds = 3600

// assumeInstant adds the assumptions about manifests and snapshots.
func (c *partConverter) assumeInstant(in *Input) {
	running, pending := len(c.objects.Running), len(c.objects.Pending)
	if c.source.Reschedule {
		arriving := int64(running - c.running + pending)
		rate := c.source.rate()
		if c.source.Pack == 0 && arriving < arrivalSeconds {
			rate = "spread over an hour"
			for i := range arriving {
				in.Pods[c.running+int(i)].Arrival = i * arrivalSeconds / arriving
			}
		}
		in.assume("%s removed from %s (all but %d of DaemonSets, mirror pods and pods created on a node) and %s again, "+
			"together with %s: in the order of creation, %s; no pod ends",
			format.PartAre(running-c.running, running, "running pod"), format.Form(running-c.running, "its node", "their nodes"), c.running,
			format.Form(running-c.running, "arrives", "arrive"), format.Of(pending, "pending pod"), rate)
	} else {
		in.assume("the pods without a node arrive at the start, in the order given, and no pod ends")
	}
	in.assumeIf(c.running > 0, "%s with a node %s been running for a day",
		format.Of(c.running, "pod"), format.Form(c.running, "has", "have"))
	in.assumeNotSimulated()
}

// fromPod converts a pod that does not end.
func fromPod(pod *v1.Pod) InputPod {
	object := *pod
	object.Status = v1.PodStatus{
		Phase: pod.Status.Phase, QOSClass: pod.Status.QOSClass,
		ContainerStatuses: pod.Status.ContainerStatuses, InitContainerStatuses: pod.Status.InitContainerStatuses,
		ResourceClaimStatuses: pod.Status.ResourceClaimStatuses,
	}
	demand := demandOf(pod)
	return InputPod{
		Object: &object, Duration: Never, Requests: PodAmounts(pod), Resources: demand,
		BaseCPU: cmp.Or(demand.CPURequest, defaultCPURequest), BaseMemory: cmp.Or(demand.MemoryRequest, defaultMemoryRequest),
	}
}

// demandOf returns the requests, the limits and the class of a pod.
func demandOf(pod *v1.Pod) result.Demand {
	amounts := resources.NewPod(pod)
	cpu, memory := amounts.Get(resources.CPUResource), amounts.Get(resources.MemoryResource)
	return result.Demand{
		CPURequest: float64(cpu.Request), MemoryRequest: float64(memory.Request),
		CPULimit: limitOf(cpu), MemoryLimit: limitOf(memory), Class: qos.GetPodQOS(pod),
	}
}

// limitOf returns the limit of a pod, 0 if there is none.
func limitOf(a resources.Amount) float64 {
	if a.Unbounded {
		return 0
	}
	return float64(a.Limit)
}

// constantUsage is the usage of a pod that was measured once.
type constantUsage struct{ cpu, memory float64 }

// At implements Usage.
func (u constantUsage) At(int64, int64) (cpu, memory float64) { return u.cpu, u.memory }

// OfCopy implements Usage.
func (u constantUsage) OfCopy(int) Usage { return u }

// setUsage sets the usage of pods to their measured usage. The usage of other pods remains generated.
func (in *Input) setUsage(reading *load.PodReading) {
	used := make(map[string]load.PodUsage, len(reading.Pods))
	for _, pod := range reading.Pods {
		used[pod.Namespace+"/"+pod.Name] = pod
	}
	measured := 0
	for i := range in.Pods {
		object := in.Pods[i].Object
		if u, ok := used[object.Namespace+"/"+object.Name]; ok {
			in.Pods[i].Usage = constantUsage{u.CPU, u.Memory}
			measured++
		}
	}
	in.assume(
		"the usage of %s is what %s measured until %s over %s, and does not change",
		format.Part(measured, len(in.Pods), "pod"), reading.Source, reading.Time.UTC().Format(time.RFC3339), reading.Window)
}
