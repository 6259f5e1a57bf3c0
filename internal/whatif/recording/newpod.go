package recording

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Bounds of generated clusters. With them, sums over all nodes or pods cannot overflow, and the memory of an
// input is limited.
const (
	maxPods = 1_000_000
	// maxGPU is the largest GPU of a node or pod in thousandths of a device: a thousand devices.
	maxGPU = 1_000_000
	// maxSecond is the latest time. As nanoseconds it fits in 64 bits.
	maxSecond = 1 << 32
)

// fillTime is the time in seconds during which a cluster fills before its pods arrive and end in a steady state: so long that a
// scheduler can have learned from the first pods when it places the last pods, as in a cluster in use.
const fillTime = 3600

// NewNode returns a node with allocatable amounts that exists from the start.
func NewNode(name string, allocatable resources.Amounts) Node {
	amounts := resourceList(allocatable)
	amounts[v1.ResourcePods] = *resource.NewQuantity(maxPodsPerNode, resource.DecimalSI)
	return Node{Gone: Never, Object: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1.LabelHostname: name}, CreationTimestamp: metav1.NewTime(Time(0)),
		},
		Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}}
}

// NewPod returns a pod that Input.Complete completes. Its limits are generated unless its class is changed: pods of class
// BestEffort get no limits, and pods of class Guaranteed limits equal to their requests.
func NewPod(name string, requests resources.Amounts, arrival, duration int64) InputPod {
	requests.Pods = 1
	return InputPod{
		Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, Requests: requests, Arrival: arrival, Duration: duration,
		BaseCPU: float64(requests.CPU), BaseMemory: float64(requests.Memory),
		Resources: result.Demand{Class: v1.PodQOSBurstable},
	}
}

// sortByArrival orders pods. Pods that arrive in the same second keep their order.
func sortByArrival(pods []InputPod) {
	slices.SortStableFunc(pods, func(a, b InputPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

// Complete completes pods that NewPod returned, and adds the assumptions about them. Generated limits depend on the seed.
func (in *Input) Complete(limits Limits, seed uint64) {
	in.assume("each node has a capacity of %d pods, the kubelet's default", maxPodsPerNode)
	generated, noRequests := 0, false
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Resources.Class == v1.PodQOSBurstable {
			generated++
		}
		p.complete(i, limits, seed)
		if p.BaseCPU == 0 && p.BaseMemory == 0 && p.Requests.Extended.IsZero() {
			noRequests, p.BaseCPU, p.BaseMemory = true, defaultCPURequest, defaultMemoryRequest
		}
	}
	in.addWorkloads()
	setShapes(in.Pods)
	in.assumeIf(generated > 0, "the limits of %s are generated", format.Part(generated, len(in.Pods), "pod"))
	in.assumeIf(noRequests, noRequestsAssumption)
}

// complete adds the limits and the object of the pod with a number.
func (p *InputPod) complete(number int, limits Limits, seed uint64) {
	limit := p.Requests
	switch p.Resources.Class {
	case v1.PodQOSBestEffort:
		limit.CPU, limit.Memory = 0, 0
	case v1.PodQOSBurstable:
		limit.CPU, limit.Memory = limits.forPod(
			seed, uint64(number), p.Requests.CPU, p.Requests.Memory)
	case v1.PodQOSGuaranteed: // the limits are the requests
	}
	p.Object.Namespace, p.Object.UID = v1.NamespaceDefault, types.UID(fmt.Sprint(number))
	p.Object.CreationTimestamp = metav1.NewTime(Time(p.Arrival))
	p.Object.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Object.Spec.Containers = []v1.Container{{
		Name:      "main",
		Resources: v1.ResourceRequirements{Requests: resourceList(p.Requests), Limits: resourceList(limit)},
	}}
	p.Resources = demandOf(p.Object)
}

// devices returns a number of devices of a resource.
func devices(name v1.ResourceName, n int64) resources.ExtendedAmounts {
	return resources.ExtendedAmounts{}.With(name, n)
}

// resourceList returns the CPU, the memory and the devices that are not 0.
func resourceList(a resources.Amounts) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu := a.CPU; cpu > 0 {
		list[v1.ResourceCPU] = *resource.NewMilliQuantity(cpu, resource.DecimalSI)
	}
	if memory := a.Memory; memory > 0 {
		list[v1.ResourceMemory] = *resource.NewQuantity(memory, resource.BinarySI)
	}
	for name, amount := range a.Extended.All() {
		list[name] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return list
}

// Owner owns generated pods, as the controllers of Kubernetes do: a ReplicaSet of a Deployment, or a Job.
//
// kube-scheduler spreads the pods of a ReplicaSet over nodes and zones by default (PodTopologySpread with its
// system defaults). It finds them by the selector of the ReplicaSet that the owner reference names. A Service
// would select the same pods and change nothing. kube-scheduler reads no selector of Jobs.
type Owner struct {
	Name string
	// IsJob is set if the pods run to completion, and kube-scheduler does not spread them.
	IsJob bool

	// group and shape of the pods, which are equal.
	group  uint64
	shape  int
	labels map[string]string
	owners []metav1.OwnerReference
}

// addWorkloads makes workloads own their pods, and numbers the groups.
func (in *Input) addWorkloads() {
	group, workloads := uint64(0), 0
	for i := range in.Pods {
		p := &in.Pods[i]
		w := p.Owner
		if w == nil {
			p.Group = group
			group++
			continue
		}
		if w.owners == nil {
			if set := w.create(workloads); set != nil {
				in.References = append(in.References, set)
			}
			w.group = group
			workloads++
			group++
		}
		p.Group, p.Object.Labels, p.Object.OwnerReferences = w.group, w.labels, w.owners
	}
	in.assumeIf(workloads > 0,
		"the pods of a group belong to a workload: %d ReplicaSets, whose pods kube-scheduler spreads by default, and %d Jobs",
		len(in.References), workloads-len(in.References))
}

// create sets the labels and the owner of the pods of the workload with a number. It returns the ReplicaSet, nil for a Job.
func (w *Owner) create(number int) runtime.Object {
	app := w.Name
	if len(validation.IsValidLabelValue(app)) > 0 {
		app = fmt.Sprintf("group-%d", number)
	}
	w.labels = map[string]string{"app": app}
	owner := metav1.OwnerReference{Name: w.Name, UID: types.UID(fmt.Sprintf("workload-%d", number)), Controller: new(true)}
	if w.IsJob {
		owner.APIVersion, owner.Kind = batchv1.SchemeGroupVersion.String(), "Job"
		w.owners = []metav1.OwnerReference{owner}
		return nil
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(w.Name)) // never fails
	text := rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
	w.labels[appsv1.DefaultDeploymentUniqueLabelKey] = text
	owner.APIVersion, owner.Kind, owner.Name = appsv1.SchemeGroupVersion.String(), "ReplicaSet", w.Name+"-"+text
	w.owners = []metav1.OwnerReference{owner}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: v1.NamespaceDefault, UID: owner.UID, Labels: w.labels},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: w.labels}},
	}
}
