package recording

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// runningSeconds is how long pods with a node have been running at the start.
const runningSeconds = 24 * 3600

// FromManifests converts manifests: pods with a node run there from the start, and pods without a node
// arrive at second 0 in their order. With Reschedule all pods are scheduled again. No pod ends.
func (s Source) FromManifests(objects *manifest.Objects) Input {
	if s.Reschedule {
		return s.rescheduled(objects)
	}
	return fromManifests(objects, "the pods without a node arrive at the start, in the order given, and no pod ends")
}

// arrivalSeconds is the shortest time over which pods arrive again by default: the load of the first pods is measured, and known to the
// scheduler, long before the last pods arrive.
const arrivalSeconds = 3600

// rescheduled converts manifests so that all pods are scheduled again: they arrive in the order of
// their creation. Pods that are bound to their node, such as DaemonSet pods, mirror pods and pods whose creator chose it, run
// there from the start. No pod ends.
func (s Source) rescheduled(objects *manifest.Objects) Input {
	var arriving []*v1.Pod
	kept := *objects
	kept.Running, kept.Pending = nil, nil
	for _, pod := range objects.Running {
		if resources.IsNodeBound(pod) || resources.HasFixedNode(pod) {
			kept.Running = append(kept.Running, pod)
		} else {
			arriving = append(arriving, Bind(pod, ""))
		}
	}
	removed := len(arriving)
	arriving = append(arriving, objects.Pending...)
	slices.SortStableFunc(arriving, func(a, b *v1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	kept.Pending = arriving
	arrival, rate := s.arrival, s.rate()
	if n := int64(len(arriving)); s.Pack < 0 && n < arrivalSeconds/defaultPack {
		arrival, rate = func(i int) int64 { return int64(i) * arrivalSeconds / n }, "spread over an hour"
	}
	in := fromManifests(&kept, fmt.Sprintf(
		"%s removed from %s (all but %d of DaemonSets, mirror pods and pods created on a node) and %s again, "+
			"together with %s: in the order of creation, %s; no pod ends",
		format.PartAre(removed, len(objects.Running), "running pod"), format.Form(removed, "its node", "their nodes"), len(kept.Running),
		format.Form(removed, "arrives", "arrive"), format.Of(len(objects.Pending), "pending pod"), rate))
	for i := range arriving {
		in.Pods[len(kept.Running)+i].Arrival = arrival(i)
	}
	return in
}

// fromManifests converts the running pods, followed by the pending pods, with an assumption about the pending pods.
func fromManifests(objects *manifest.Objects, assumption string) Input {
	in := Input{
		References: objects.Referred(), Workloads: objects.Workloads, Warnings: objects.Warnings, Missing: objects.Missing,
		HasLimits: true, Kubernetes: objects.Kubernetes, Assumptions: []string{assumption},
	}
	for _, node := range objects.Nodes {
		in.Nodes = append(in.Nodes, Node{Object: node, Gone: Never})
	}
	groups := groups{}
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		p := fromPod(pod)
		p.Group = groups.numberOf(pod)
		in.Pods = append(in.Pods, p)
	}
	n := len(objects.Running)
	in.assumeIf(n > 0, "%s with a node %s been running for a day", format.Of(n, "pod"), format.Form(n, "has", "have"))
	in.References = releaseClaims(in.References, in.Pods)
	in.assumeNotSimulated()
	return in
}

// fromPod converts a pod. Its timestamps are from the run, not from the cluster that it was read
// from.
func fromPod(pod *v1.Pod) InputPod {
	object := *pod
	object.Status = v1.PodStatus{
		Phase: pod.Status.Phase, QOSClass: pod.Status.QOSClass,
		ContainerStatuses: pod.Status.ContainerStatuses, InitContainerStatuses: pod.Status.InitContainerStatuses,
		ResourceClaimStatuses: pod.Status.ResourceClaimStatuses,
	}
	object.CreationTimestamp = metav1.NewTime(Time(0))
	if pod.Spec.NodeName != "" {
		object.CreationTimestamp = metav1.NewTime(Time(-runningSeconds))
		setRunning(&object, pod.Spec.NodeName, Time(-runningSeconds))
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
func (u constantUsage) At(int64) (cpu, memory float64) { return u.cpu, u.memory }

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
