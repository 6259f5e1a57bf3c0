package input

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
)

// runningSeconds is how long pods with a node have been running at the start.
const runningSeconds = 24 * 3600

// FromManifests converts manifests: pods with a node run there from the start, and
// the others arrive at second 0 in their order. No pod ends.
func FromManifests(objects *manifest.Objects) Cluster {
	in := fromManifests(objects)
	in.Assumptions = append([]string{"the pods without a node arrive at the start, in the order given, and no pod ends"}, in.Assumptions...)
	return in
}

// Rescheduled converts manifests so that all pods are scheduled again: they arrive
// in the order of their creation, podsPerSecond of them each second, or all at the
// start if it is 0. Pods that are bound to their node, those of DaemonSets and mirror
// pods, run there from the start. No pod ends.
func Rescheduled(objects *manifest.Objects, podsPerSecond int) Cluster {
	var arriving []*v1.Pod
	kept := *objects
	kept.Running, kept.Pending = nil, nil
	for _, pod := range objects.Running {
		if resources.IsNodeBound(pod) {
			kept.Running = append(kept.Running, pod)
			continue
		}
		unassigned := *pod
		unassigned.Spec.NodeName = ""
		arriving = append(arriving, &unassigned)
	}
	removed := len(arriving)
	arriving = append(arriving, objects.Pending...)
	slices.SortStableFunc(arriving, func(a, b *v1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	kept.Pending = arriving
	in := fromManifests(&kept)
	rate := "all at the start"
	if podsPerSecond > 0 {
		rate = fmt.Sprintf("%d per second", podsPerSecond)
		for i := range arriving {
			in.Pods[len(kept.Running)+i].Arrival = int64(i / podsPerSecond)
		}
	}
	in.Assumptions = append([]string{fmt.Sprintf(
		"%s removed from %s (all but %d of DaemonSets and mirror pods) and %s again, "+
			"together with %s: in the order of creation, %s; no pod ends",
		format.PartAre(removed, len(objects.Running), "running pod"), format.Form(removed, "its node", "their nodes"), len(kept.Running),
		format.Form(removed, "arrives", "arrive"), format.Of(len(objects.Pending), "pending pod"), rate)}, in.Assumptions...)
	return in
}

// fromManifests converts the running pods, followed by the pending ones.
func fromManifests(objects *manifest.Objects) Cluster {
	in := Cluster{References: objects.Referred(), Workloads: objects.Workloads}
	for _, node := range objects.Nodes {
		in.Nodes = append(in.Nodes, Node{Object: node})
	}
	groups, noRequests := map[resources.Workload]uint64{}, false
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		p := fromPod(pod)
		noRequests = noRequests || p.Resources.CPURequest == 0 || p.Resources.MemoryRequest == 0
		group := resources.WorkloadOf(pod)
		if _, ok := groups[group]; !ok {
			groups[group] = uint64(len(groups))
		}
		p.Group = groups[group]
		in.Pods = append(in.Pods, p)
	}
	if noRequests {
		in.Assumptions = append(in.Assumptions, noRequestsAssumption)
	}
	if n := len(objects.Running); n > 0 {
		in.Assumptions = append(in.Assumptions, fmt.Sprintf("%s with a node %s been running for a day",
			format.Of(n, "pod"), format.Form(n, "has", "have")))
	}
	in.References = releaseClaims(in.References, in.Pods)
	in.Assumptions = append(in.Assumptions, in.notSimulated()...)
	return in
}

// fromPod converts a pod. Its timestamps are those of the run, not those of the
// cluster that it was read from.
func fromPod(pod *v1.Pod) Pod {
	amounts := resources.NewPod(pod)
	cpu, memory := amounts.Get(resources.CPUResource), amounts.Get(resources.MemoryResource)
	object := *pod
	object.Status = v1.PodStatus{
		Phase: pod.Status.Phase, QOSClass: pod.Status.QOSClass,
		ContainerStatuses: pod.Status.ContainerStatuses, InitContainerStatuses: pod.Status.InitContainerStatuses,
		ResourceClaimStatuses: pod.Status.ResourceClaimStatuses,
	}
	object.CreationTimestamp = metav1.NewTime(Time(0))
	if pod.Spec.NodeName != "" {
		object.CreationTimestamp = metav1.NewTime(Time(-runningSeconds))
		object.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: object.CreationTimestamp,
		}}
	}
	p := Pod{
		Object: &object, Duration: trace.Never,
		Requests: trace.Amounts{CPU: cpu.Request, Memory: memory.Request},
		Resources: result.Pod{
			CPURequest: float64(cpu.Request), MemoryRequest: float64(memory.Request),
			CPULimit: limitOf(cpu), MemoryLimit: limitOf(memory), Class: qosClasses[qos.GetPodQOS(pod)],
		},
		BaseCPU: float64(cpu.Request), BaseMemory: float64(memory.Request),
	}
	if p.BaseCPU == 0 {
		p.BaseCPU = defaultCPURequest
	}
	if p.BaseMemory == 0 {
		p.BaseMemory = defaultMemoryRequest
	}
	return p
}

// qosClasses maps the QoS classes of Kubernetes.
var qosClasses = map[v1.PodQOSClass]result.Class{
	v1.PodQOSBestEffort: result.BestEffort, v1.PodQOSBurstable: result.Burstable, v1.PodQOSGuaranteed: result.Guaranteed,
}

// limitOf returns the limit of a pod, 0 if there is none.
func limitOf(a resources.Amount) float64 {
	if a.Unbounded {
		return 0
	}
	return float64(a.Limit)
}
