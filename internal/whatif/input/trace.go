package input

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/usage"
)

// FromTrace converts a trace. Pods without limits in the trace get generated limits
// that depend on the seed.
func FromTrace(cluster *trace.Cluster, limits usage.Limits, seed uint64) Cluster {
	in := Cluster{Assumptions: slices.Clone(cluster.Assumed)}
	in.Assumptions = append(in.Assumptions, fmt.Sprintf("each node has a capacity of %d pods, the kubelet's default", MaxPodsPerNode))
	for i := range cluster.Nodes {
		in.Nodes = append(in.Nodes, Node{Object: NodeOf(&cluster.Nodes[i])})
	}
	c := traceConverter{groups: map[string]uint64{}, shapes: map[string]int{}, workloads: map[string]*workload{}}
	generated, sharesGPU, noRequests := 0, false, false
	in.Pods = make([]Pod, len(cluster.Pods))
	for i := range cluster.Pods {
		p := &cluster.Pods[i]
		limit := p.Limit
		if !p.HasLimit {
			generated++
			limit.CPU, limit.Memory = limits.ForPod(seed, uint64(i), p.Request.CPU, p.Request.Memory)
		}
		sharesGPU = sharesGPU || p.Request.GPU%1000 != 0
		noRequests = noRequests || p.UsedFrom().IsZero()
		in.Pods[i] = c.pod(p, i, limit)
	}
	in.References = c.references
	if len(c.workloads) > 0 {
		in.Assumptions = append(in.Assumptions, c.workloadAssumption())
	}
	if generated > 0 {
		in.Assumptions = append(in.Assumptions, "the limits of "+format.Part(generated, len(cluster.Pods), "pod")+" are generated")
	}
	if sharesGPU {
		in.Assumptions = append(in.Assumptions, "the GPUs of a node count as one device of which pods take parts")
	}
	if noRequests {
		in.Assumptions = append(in.Assumptions, noRequestsAssumption)
	}
	return in
}

// noRequestsAssumption is the assumption about pods without requests.
const noRequestsAssumption = "the usage of pods without requests is a multiple of 100 millicores and 200 MiB, the defaults of kube-scheduler"

// Requests that kube-scheduler assumes for pods without requests
// (pkg/scheduler/util.GetNonzeroRequests).
const (
	defaultCPURequest    = 100
	defaultMemoryRequest = 200 << 20
)

// NodeOf converts a node of a trace.
func NodeOf(n *trace.Node) *v1.Node {
	labels := map[string]string{v1.LabelHostname: n.Name}
	if n.Zone != "" {
		labels[v1.LabelTopologyZone] = n.Zone
	}
	if n.GPUModel != "" {
		labels[GPUModelLabel] = n.GPUModel
	}
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(n.Capacity.CPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n.Capacity.Memory, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(MaxPodsPerNode, resource.DecimalSI),
	}
	if n.Capacity.GPU > 0 {
		amounts[GPU] = *resource.NewQuantity(n.Capacity.GPU, resource.DecimalSI)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, CreationTimestamp: metav1.NewTime(Time(0))},
		Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// traceConverter converts pods of a trace, and numbers their groups and shapes.
type traceConverter struct {
	groups map[string]uint64
	shapes map[string]int
	// workloads own the pods of groups; references are those that kube-scheduler reads.
	workloads  map[string]*workload
	references []runtime.Object
}

// workloadAssumption is the assumption about the workloads of pods.
func (c *traceConverter) workloadAssumption() string {
	return fmt.Sprintf(
		"the pods of a group belong to a workload: %d ReplicaSets, whose pods kube-scheduler spreads by default, and %d Jobs",
		len(c.references),
		len(c.workloads)-len(c.references),
	)
}

// workload returns the workload of a pod, none for a pod without a group.
func (c *traceConverter) workload(p *trace.Pod) *workload {
	if p.Group == "" {
		return &workload{}
	}
	w, ok := c.workloads[p.Group]
	if !ok {
		w = newWorkload(p, len(c.workloads))
		c.workloads[p.Group] = w
		if w.object != nil {
			c.references = append(c.references, w.object)
		}
	}
	return w
}

func (c *traceConverter) pod(p *trace.Pod, number int, limit trace.Amounts) Pod {
	group := p.Group
	if group == "" {
		group = p.Name
	}
	if _, ok := c.groups[group]; !ok {
		c.groups[group] = uint64(len(c.groups))
	}
	// The key has everything that filters read. Scores do not decide whether a pod
	// fits.
	key := fmt.Sprint(p.Request, p.GPUModels)
	if c.shapes[key] == 0 {
		c.shapes[key] = len(c.shapes) + 1
	}
	resources := result.Pod{
		CPURequest: float64(p.Request.CPU), MemoryRequest: float64(p.Request.Memory),
		CPULimit: float64(limit.CPU), MemoryLimit: float64(limit.Memory),
	}
	resources.Class = result.ClassOf(resources.CPURequest, resources.CPULimit, resources.MemoryRequest, resources.MemoryLimit)
	base := p.UsedFrom()
	if base.IsZero() {
		base = trace.Amounts{CPU: defaultCPURequest, Memory: defaultMemoryRequest}
	}
	return Pod{
		Object: podObject(p, number, limit, c.workload(p)), Group: c.groups[group], Resources: resources,
		Shape: c.shapes[key], Requests: p.Request,
		BaseCPU: float64(base.CPU), BaseMemory: float64(base.Memory), Arrival: p.Arrival, Duration: p.Runs(),
	}
}

// podObject returns the pod of a workload. The labels and owners are those of the workload, not copies.
func podObject(p *trace.Pod, number int, limit trace.Amounts, w *workload) *v1.Pod {
	limit.GPU = p.Request.GPU
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: v1.NamespaceDefault, UID: types.UID(fmt.Sprintf("%d", number)),
			CreationTimestamp: metav1.NewTime(Time(p.Arrival)), Labels: w.labels, OwnerReferences: w.owners,
		},
		Spec: v1.PodSpec{
			SchedulerName: v1.DefaultSchedulerName,
			Containers: []v1.Container{{
				Name:      "main",
				Resources: v1.ResourceRequirements{Requests: resourceList(p.Request), Limits: resourceList(limit)},
			}},
		},
	}
	if len(p.GPUModels) > 0 && p.Request.GPU > 0 {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: GPUModelLabel, Operator: v1.NodeSelectorOpIn, Values: p.GPUModels}},
			}}},
		}}
	}
	return pod
}

// resourceList returns the amounts that are not 0.
func resourceList(a trace.Amounts) v1.ResourceList {
	list := v1.ResourceList{}
	if a.CPU > 0 {
		list[v1.ResourceCPU] = *resource.NewMilliQuantity(a.CPU, resource.DecimalSI)
	}
	if a.Memory > 0 {
		list[v1.ResourceMemory] = *resource.NewQuantity(a.Memory, resource.BinarySI)
	}
	if a.GPU > 0 {
		list[GPU] = *resource.NewQuantity(a.GPU, resource.DecimalSI)
	}
	return list
}
