package replay

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/outcome"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// old is for how long pods have run that run from the start.
const old = 24 * time.Hour

// FromObjects makes a run of manifests: the pods that have a node run there from
// the start, and the others all come at once, in their order. No pod ends.
func FromObjects(objects *manifest.Objects) Input {
	input := fromObjects(objects)
	input.Assumed = append([]string{"the pods without a node come at once, in the order given, and no pod ends"}, input.Assumed...)
	return input
}

// Rescheduled makes a run of manifests in which all pods come anew, in the order in
// which they were created, pack of them a second, or all at once if that is 0. Pods
// that belong to their node, those of DaemonSets and mirror pods, run there from the
// start. No pod ends.
func Rescheduled(objects *manifest.Objects, pack int) Input {
	var anew []*v1.Pod
	settled := *objects
	settled.Running, settled.Pending = nil, nil
	for _, pod := range objects.Running {
		if facts.IsNodeBound(pod) {
			settled.Running = append(settled.Running, pod)
			continue
		}
		free := *pod
		free.Spec.NodeName = ""
		anew = append(anew, &free)
	}
	n := len(anew)
	anew = append(anew, objects.Pending...)
	slices.SortStableFunc(anew, func(a, b *v1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	settled.Pending = anew
	input := fromObjects(&settled)
	come := "all at once"
	if pack > 0 {
		come = fmt.Sprintf("%d to a second", pack)
		for i := range anew {
			input.Pods[len(settled.Running)+i].Arrival = int64(i / pack)
		}
	}
	input.Assumed = append([]string{fmt.Sprintf(
		"the %d pods that have a node are taken off it, but for %d of DaemonSets and mirror pods; with the %d that have none they come anew, in the order in which they were created, %s, and no pod ends",
		len(objects.Running), len(settled.Running), len(anew)-n, come)}, input.Assumed...)
	return input
}

// fromObjects makes a run of the pods that have a node and those that have none, in
// this order.
func fromObjects(objects *manifest.Objects) Input {
	input := Input{Others: objects.Referred(), Workloads: objects.Workloads}
	for _, node := range objects.Nodes {
		input.Nodes = append(input.Nodes, Node{Object: node})
	}
	groups, bare := map[string]uint64{}, false
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		p := podOf(pod)
		bare = bare || p.Wants.CPURequest == 0 || p.Wants.MemoryRequest == 0
		group := facts.Name(pod)
		for _, owner := range pod.OwnerReferences {
			group = string(owner.UID)
		}
		if _, ok := groups[group]; !ok {
			groups[group] = uint64(len(groups))
		}
		p.Group = groups[group]
		input.Pods = append(input.Pods, p)
	}
	if bare {
		input.Assumed = append(input.Assumed, unrequested)
	}
	if n := len(objects.Running); n > 0 {
		input.Assumed = append(input.Assumed, fmt.Sprintf("the %d pods that have a node have run for a day", n))
	}
	return input
}

// podOf returns a pod. Its times are those of the run, not those of the cluster
// that it was read from.
func podOf(pod *v1.Pod) Pod {
	amounts := noderes.NewPod(pod)
	cpu, memory := amounts.Get(noderes.CPU), amounts.Get(noderes.Memory)
	shifted := *pod
	shifted.Status = v1.PodStatus{Phase: pod.Status.Phase, QOSClass: pod.Status.QOSClass, ContainerStatuses: pod.Status.ContainerStatuses, InitContainerStatuses: pod.Status.InitContainerStatuses}
	shifted.CreationTimestamp = metav1.NewTime(Epoch)
	if pod.Spec.NodeName != "" {
		shifted.CreationTimestamp = metav1.NewTime(Epoch.Add(-old))
		shifted.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: shifted.CreationTimestamp,
		}}
	}
	p := Pod{
		Object: &shifted, Runs: trace.Never,
		Needs: trace.Amounts{CPU: cpu.Request, Memory: memory.Request},
		Wants: outcome.Pod{
			CPURequest: float64(cpu.Request), MemoryRequest: float64(memory.Request),
			CPULimit: limitOf(cpu), MemoryLimit: limitOf(memory), Class: classes[qos.GetPodQOS(pod)],
		},
		CPU: float64(cpu.Request), Memory: float64(memory.Request),
	}
	if p.CPU == 0 {
		p.CPU = unrequestedCPU
	}
	if p.Memory == 0 {
		p.Memory = unrequestedMemory
	}
	return p
}

// classes of Kubernetes.
var classes = map[v1.PodQOSClass]outcome.Class{
	v1.PodQOSBestEffort: outcome.BestEffort, v1.PodQOSBurstable: outcome.Burstable, v1.PodQOSGuaranteed: outcome.Guaranteed,
}

// limitOf returns the limit of a pod, 0 if it has none.
func limitOf(a noderes.Amount) float64 {
	if a.Unbounded {
		return 0
	}
	return float64(a.Limit)
}
