package generate

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
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

// GPU is the resource name of the GPUs of generated nodes and pods.
const GPU v1.ResourceName = "nvidia.com/gpu"

// GPUModelLabel is the node label with the model of the node's GPUs.
const GPUModelLabel = "plimsoll.dev/gpu-model"

// maxPodsPerNode is the pod capacity of generated nodes, the kubelet's default.
const maxPodsPerNode = 110

// NewNode returns a node with allocatable amounts that exists from the start.
func NewNode(name string, allocatable resources.Amounts) recording.Node {
	amounts := resourceList(allocatable)
	amounts[v1.ResourcePods] = *resource.NewQuantity(maxPodsPerNode, resource.DecimalSI)
	return recording.Node{Gone: recording.Never, Object: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1.LabelHostname: name}, CreationTimestamp: metav1.NewTime(recording.Time(0)),
		},
		Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}}
}

// NewPod is a pod to generate.
type NewPod struct {
	Name string
	// Requests of the pod. A pod of class BestEffort requests nothing, and its usage is a multiple of them.
	Requests resources.Amounts
	// Class is BestEffort for a pod without requests and limits, Guaranteed for a pod with limits equal to its requests. Limits of other
	// pods are generated.
	Class v1.PodQOSClass
	// Owner is nil for a pod without an owner.
	Owner *Owner
	// Arrival is the second at which the pod is created, and Duration how long it runs, Never if it does not end.
	Arrival, Duration int64
	// Spec has what the pod requires besides its requests, without containers.
	Spec v1.PodSpec
}

// NewCluster is a cluster to generate.
type NewCluster struct {
	Nodes []recording.Node
	// Pods are ordered by their arrival.
	Pods []NewPod
	// Limits are generated, and depend on the Seed.
	Limits Limits
	Seed   uint64
	// Tail is for how many seconds after the last arrival the cluster is recorded.
	Tail int64
}

// Recording returns the cluster as a recording that is marked as generated: its pods run from their arrival on, on no particular node, and
// their usage is not known.
func (c *NewCluster) Recording() *recording.Recording {
	r := &recording.Recording{Nodes: c.Nodes, Generated: []string{
		fmt.Sprintf("each node has a capacity of %d pods, the kubelet's default", maxPodsPerNode),
	}}
	owned, limited, last := map[*Owner]*metav1.ObjectMeta{}, 0, int64(0)
	for i := range c.Pods {
		p := &c.Pods[i]
		pod := recording.Pod{
			Object: c.object(i), Created: p.Arrival, Scheduled: p.Arrival, Started: p.Arrival, Ended: recording.Never,
			BaseCPU: float64(p.Requests.CPU), BaseMemory: float64(p.Requests.Memory),
		}
		if p.Duration != recording.Never {
			pod.Ended = p.Arrival + p.Duration
		}
		if p.Class != v1.PodQOSBestEffort && p.Class != v1.PodQOSGuaranteed {
			limited++
		}
		if p.Owner != nil {
			if owned[p.Owner] == nil {
				owned[p.Owner] = addWorkload(r, p.Owner, len(owned))
			}
			pod.Object.Labels, pod.Object.OwnerReferences = owned[p.Owner].Labels, owned[p.Owner].OwnerReferences
		}
		r.Pods, last = append(r.Pods, pod), max(last, p.Arrival)
	}
	if sets := len(r.Objects); len(owned) > 0 {
		r.Generated = append(r.Generated, fmt.Sprintf(
			"the pods of a group belong to a workload: %d ReplicaSets, whose pods kube-scheduler spreads by default, and %d Jobs",
			sets, len(owned)-sets))
	}
	if limited > 0 {
		r.Generated = append(r.Generated, fmt.Sprintf("the limits of %s are generated", format.Part(limited, len(c.Pods), "pod")))
	}
	end := max((last+recording.Step-1)/recording.Step*recording.Step+c.Tail, recording.Step)
	r.About = recording.About{From: recording.Time(0), To: recording.Time(end), Step: recording.Step}
	return r
}

// object returns the object of the pod with a number, without its owner.
func (c *NewCluster) object(number int) *v1.Pod {
	p := &c.Pods[number]
	requests, limit := p.Requests, p.Requests
	switch p.Class {
	case v1.PodQOSBestEffort:
		requests, limit = resources.Amounts{}, resources.Amounts{}
	case v1.PodQOSGuaranteed: // the limits are the requests
	default:
		limit.CPU, limit.Memory = c.Limits.forPod(c.Seed, uint64(number), requests.CPU, requests.Memory)
	}
	pod := &v1.Pod{Spec: p.Spec, ObjectMeta: metav1.ObjectMeta{
		Name:              p.Name,
		Namespace:         v1.NamespaceDefault,
		UID:               types.UID(fmt.Sprint(number)),
		CreationTimestamp: metav1.NewTime(recording.Time(p.Arrival)),
	}}
	pod.Spec.SchedulerName = v1.DefaultSchedulerName
	pod.Spec.Containers = []v1.Container{{
		Name:      "main",
		Resources: v1.ResourceRequirements{Requests: resourceList(requests), Limits: resourceList(limit)},
	}}
	return pod
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
}

// addWorkload adds the workload with a number to a recording, unless it is a Job, and returns the labels and the owner of its pods.
func addWorkload(r *recording.Recording, w *Owner, number int) *metav1.ObjectMeta {
	app := w.Name
	if len(validation.IsValidLabelValue(app)) > 0 {
		app = fmt.Sprintf("group-%d", number)
	}
	labels := map[string]string{"app": app}
	owner := metav1.OwnerReference{Name: w.Name, UID: types.UID(fmt.Sprintf("workload-%d", number)), Controller: new(true)}
	if w.IsJob {
		owner.APIVersion, owner.Kind = batchv1.SchemeGroupVersion.String(), "Job"
		return &metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(w.Name)) // never fails
	text := rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
	labels[appsv1.DefaultDeploymentUniqueLabelKey] = text
	owner.APIVersion, owner.Kind, owner.Name = appsv1.SchemeGroupVersion.String(), "ReplicaSet", w.Name+"-"+text
	raw, _ := json.Marshal(&appsv1.ReplicaSet{ // cannot fail
		TypeMeta:   metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: v1.NamespaceDefault, UID: owner.UID, Labels: labels},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	})
	r.Objects = append(r.Objects, kinds.Object{Kind: kinds.Of(appsv1.GroupName, owner.Kind), JSON: raw})
	return &metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}}
}
