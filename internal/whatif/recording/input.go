package recording

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// epoch is the instant at which every run starts.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Time returns the instant of a second of a run.
func Time(second int64) time.Time { return epoch.Add(time.Duration(second) * time.Second) }

// Clock returns the instant of a second of a run of the input.
func (in *Input) Clock(second int64) time.Time {
	if in.Start.IsZero() {
		return Time(second)
	}
	return in.Start.Add(time.Duration(second) * time.Second)
}

// Second returns the second of a run at an instant.
func Second(instant time.Time) int64 { return int64(instant.Sub(epoch) / time.Second) }

// Input is the input of a run: the nodes and the pods of a cluster over time.
type Input struct {
	// Name of the input, for people.
	Name string
	// Warnings about probable mistakes in the input.
	Warnings []string
	// Missing are sentences about claims, usage and demand of pods that the input lacks.
	Missing []string
	// Nodes in the order in which they are added to the scheduler. None appears before second 0.
	Nodes []Node
	// Pods with a node run from the start. Pods without a node are pending from their arrival.
	Pods []InputPod
	// References are the objects that pods refer to: claims, volumes, classes,
	// namespaces, and the ReplicaSets and StatefulSets that own them.
	References []runtime.Object
	// Workloads own pods; some have slack of their own.
	Workloads []runtime.Object
	// Kubernetes is the version of the API server of the cluster, empty if it is not known.
	Kubernetes string
	// Assumptions lists everything that was assumed or generated, one sentence each.
	Assumptions []string
	// Start is the instant of second 0, by which schedules of slack apply; zero is the first second of the year 2000.
	Start time.Time
	// End is the second at which the run ends.
	End int64
	// Part is the part of a recording that is the input, nil for other inputs.
	Part *Part
}

// Step is the interval in seconds at which runs evaluate usage.
const Step = 60

// SetEnd makes the run end a number of seconds after the last arrival.
func (in *Input) SetEnd(tail int64) {
	last := int64(0)
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Object.Spec.NodeName == "" {
			last = max(last, p.Arrival)
		}
	}
	in.End = (last+Step-1)/Step*Step + tail
}

// Usage is the usage of a pod.
type Usage interface {
	// At returns the usage in millicores and bytes. Recorded usage depends on the age, the seconds since the pod was placed on its
	// node, which is negative before the run. Generated usage depends on the seconds that have elapsed since the first step of the run.
	At(age, elapsed int64) (cpu, memory float64)
	// OfCopy returns the usage of a copy of the pod that has another number among the pods of the run.
	OfCopy(number int) Usage
}

// InputPod is a pod of the input of a run.
type InputPod struct {
	Object *v1.Pod
	// Group is equal for pods of one workload.
	Group uint64
	// Resources has the requests, limits and class; the demand is set at every step.
	Resources result.Demand
	// BaseCPU and BaseMemory, in millicores and bytes, are the amounts of which generated
	// usage is a multiple.
	BaseCPU, BaseMemory float64
	// Shape is equal for pods with equal requests whose scheduling depends only on the labels and
	// free resources of nodes: if one of them fits on no node, none does. It is 0 for pods with
	// other dependencies.
	Shape int
	// Requests of the pod, as returned by Amounts, and a pod slot.
	Requests resources.Amounts
	// Arrival is the second at which the pod is created; Duration is how long it runs,
	// Never if it does not end.
	Arrival, Duration int64
	// Usage of the pod; IsGenerated is set if it was neither recorded nor measured.
	Usage       Usage
	IsGenerated bool
	// Recorded is the history of the pod in a recording, nil for other inputs.
	Recorded *Recorded
}

// Recorded is the history of a pod in a recording.
type Recorded struct {
	// Node is the node on which the pod ran, empty if it was never scheduled.
	Node string
	// Fixed is set if the pod is placed on Node when it arrives, without the scheduler. A fixed pod without a node
	// waits until it is deleted.
	Fixed bool
	// Waited is how many seconds the pod waited before its arrival.
	Waited int64
	// Deleted is the second at which a never scheduled pod was deleted, 0 if it was not deleted.
	Deleted int64
}

// Amounts returns the CPU, memory, pod slots and devices of a resource list.
func Amounts(list v1.ResourceList) resources.Amounts {
	amounts := resources.CPUAndMemory(list)
	amounts.Pods = resources.NewResource(v1.ResourcePods).Amount(list[v1.ResourcePods])
	isDevice := func(name v1.ResourceName) bool { return strings.Contains(string(name), "/") }
	amounts.Extended = resources.ExtendedOf(list, isDevice)
	return amounts
}

// PodAmounts returns the requests of a pod and a pod slot.
func PodAmounts(pod *v1.Pod) resources.Amounts {
	amounts := Amounts(resources.Requests(pod))
	amounts.Pods = 1
	return amounts
}

// noRequestsAssumption is the assumption about pods without requests.
const noRequestsAssumption = "the usage of pods without requests is a multiple of 100 millicores and 200 MiB, the defaults of " +
	"kube-scheduler"

// Requests that kube-scheduler assumes for pods without requests
// (pkg/scheduler/util.GetNonzeroRequests).
const (
	defaultCPURequest    = 100
	defaultMemoryRequest = 200 << 20
)

// groups numbers workloads.
type groups map[resources.Workload]uint64

// numberOf returns the number of the workload of a pod.
func (g groups) numberOf(pod *v1.Pod) uint64 {
	workload := resources.WorkloadOf(pod)
	if _, ok := g[workload]; !ok {
		g[workload] = uint64(len(g))
	}
	return g[workload]
}

// assume adds a sentence to the assumptions.
func (in *Input) assume(text string, args ...any) {
	in.Assumptions = append(in.Assumptions, fmt.Sprintf(text, args...))
}

// assumeIf adds a sentence to the assumptions if it applies.
func (in *Input) assumeIf(applies bool, text string, args ...any) {
	if applies {
		in.assume(text, args...)
	}
}

// Bind returns a copy of a pod that is bound to a node.
func Bind(pod *v1.Pod, node string) *v1.Pod {
	bound := *pod
	bound.Spec.NodeName = node
	return &bound
}

// Unbind returns a pod without its node: the pod itself if it has none.
func Unbind(pod *v1.Pod) *v1.Pod {
	if pod.Spec.NodeName == "" {
		return pod
	}
	unbound := *pod
	unbound.Spec.NodeName = ""
	isScheduled := func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled }
	unbound.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), isScheduled)
	return &unbound
}

// setShapes sets the shapes of pods. If one pod has required anti-affinity, where a pod fits depends on the other pods,
// and no pod has a shape.
func setShapes(pods []InputPod) {
	for i := range pods {
		if affinity := pods[i].Object.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil &&
			len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return
		}
	}
	shapes := map[string]int{}
	for i := range pods {
		spec := &pods[i].Object.Spec
		if dependsOnOthers(spec) {
			continue
		}
		key, err := json.Marshal(shapeOf(spec))
		if err != nil {
			continue // It cannot fail; a pod without a shape is correct.
		}
		if shapes[string(key)] == 0 {
			shapes[string(key)] = len(shapes) + 1
		}
		pods[i].Shape = shapes[string(key)]
	}
}

// shapeOf returns the part of a pod that decides whether it fits on a node.
func shapeOf(spec *v1.PodSpec) v1.PodSpec {
	shape := v1.PodSpec{
		Resources: spec.Resources, Overhead: spec.Overhead, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations,
		SchedulerName: spec.SchedulerName,
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		shape.Containers = append(shape.Containers, v1.Container{
			Resources: v1.ResourceRequirements{Requests: container.Resources.Requests},
		})
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		shape.Affinity = &v1.Affinity{NodeAffinity: spec.Affinity.NodeAffinity}
	}
	return shape
}

// dependsOnOthers reports whether the nodes that a pod fits on depend on other pods, or on objects other than nodes.
func dependsOnOthers(spec *v1.PodSpec) bool {
	if affinity := spec.Affinity; affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil) {
		return true
	}
	hasPort := func(c v1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p v1.ContainerPort) bool { return p.HostPort != 0 })
	}
	return len(spec.TopologySpreadConstraints)+len(spec.Volumes)+len(spec.ResourceClaims) > 0 || spec.SchedulingGroup != nil ||
		slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), hasPort)
}
