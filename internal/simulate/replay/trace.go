package replay

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/outcome"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// GPU is thousandths of devices of a node, all together: Kubernetes has no name for
// parts of a device. It is made up in Kubernetes' own domain, as the scheduler
// checks at each node how names in others are spelled, and that would take a
// quarter of a run.
const GPU v1.ResourceName = "kubernetes.io/gpu-thousandths"

// gpuModel is the label of nodes that says which devices they have.
const gpuModel = "plimsoll.dev/gpu-model"

// podsPerNode is how many pods a node of a trace takes, the kubelet's default.
const podsPerNode = 110

// FromTrace makes Kubernetes objects of a trace. Pods of which the trace does not
// say the limits get them from limits and the seed.
func FromTrace(cluster *trace.Cluster, limits usage.Limits, seed uint64) Input {
	input := Input{Assumed: append([]string(nil), cluster.Assumed...)}
	input.Assumed = append(input.Assumed, fmt.Sprintf("a node takes up to %d pods, the kubelet's default", podsPerNode))
	for i := range cluster.Nodes {
		input.Nodes = append(input.Nodes, Node{Object: nodeOf(&cluster.Nodes[i])})
	}
	m := maker{groups: map[string]uint64{}, shapes: map[string]int{}}
	made, shared, best := 0, false, false
	input.Pods = make([]Pod, len(cluster.Pods))
	for i := range cluster.Pods {
		p := &cluster.Pods[i]
		limit := p.Limit
		if !p.HasLimit {
			made++
			limit.CPU, limit.Memory = limits.Of(seed, uint64(i), p.Request.CPU, p.Request.Memory)
		}
		shared = shared || p.Request.GPU%1000 != 0
		best = best || p.UsedFrom().IsZero()
		input.Pods[i] = m.pod(p, i, limit)
	}
	if made > 0 {
		input.Assumed = append(input.Assumed, fmt.Sprintf("the limits of %d of %d pods are generated", made, len(cluster.Pods)))
	}
	if shared {
		input.Assumed = append(input.Assumed, "parts of a GPU can be taken from any of a node's, as if they were one")
	}
	if best {
		input.Assumed = append(input.Assumed, unrequested)
	}
	return input
}

// unrequested says what pods use that request nothing.
const unrequested = "the use of pods that request nothing is reckoned from 100 millicores and 200 MiB, as kube-scheduler does"

// What kube-scheduler takes a pod to use that requests nothing
// (pkg/scheduler/util.GetNonzeroRequests).
const (
	unrequestedCPU    = 100
	unrequestedMemory = 200 << 20
)

func nodeOf(n *trace.Node) *v1.Node {
	labels := map[string]string{v1.LabelHostname: n.Name}
	if n.Zone != "" {
		labels[v1.LabelTopologyZone] = n.Zone
	}
	if n.GPUModel != "" {
		labels[gpuModel] = n.GPUModel
	}
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(n.Capacity.CPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n.Capacity.Memory, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	if n.Capacity.GPU > 0 {
		amounts[GPU] = *resource.NewQuantity(n.Capacity.GPU, resource.DecimalSI)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels},
		Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// maker makes pods. It numbers their groups and shapes.
type maker struct {
	groups map[string]uint64
	shapes map[string]int
}

func (m *maker) pod(p *trace.Pod, number int, limit trace.Amounts) Pod {
	group := p.Group
	if group == "" {
		group = p.Name
	}
	if _, ok := m.groups[group]; !ok {
		m.groups[group] = uint64(len(m.groups))
	}
	// What filters look at. Scores may look at more, and do not decide whether a
	// pod fits.
	key := fmt.Sprint(p.Request, p.GPUModels)
	if m.shapes[key] == 0 {
		m.shapes[key] = len(m.shapes) + 1
	}
	wants := outcome.Pod{
		CPURequest: float64(p.Request.CPU), MemoryRequest: float64(p.Request.Memory),
		CPULimit: float64(limit.CPU), MemoryLimit: float64(limit.Memory),
	}
	wants.Class = outcome.ClassOf(wants.CPURequest, wants.CPULimit, wants.MemoryRequest, wants.MemoryLimit)
	from := p.UsedFrom()
	if from.IsZero() {
		from = trace.Amounts{CPU: unrequestedCPU, Memory: unrequestedMemory}
	}
	return Pod{
		Object: object(p, number, limit), Group: m.groups[group], Wants: wants, Shape: m.shapes[key], Needs: p.Request,
		CPU: float64(from.CPU), Memory: float64(from.Memory), Arrival: p.Arrival, Runs: p.Runs(),
	}
}

func object(p *trace.Pod, number int, limit trace.Amounts) *v1.Pod {
	limit.GPU = p.Request.GPU
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: v1.NamespaceDefault, UID: types.UID(fmt.Sprintf("%d", number)),
			CreationTimestamp: metav1.NewTime(Epoch.Add(time.Duration(p.Arrival) * time.Second)),
		},
		Spec: v1.PodSpec{
			SchedulerName: v1.DefaultSchedulerName,
			Containers: []v1.Container{{
				Name:      "main",
				Resources: v1.ResourceRequirements{Requests: list(p.Request), Limits: list(limit)},
			}},
		},
	}
	if len(p.GPUModels) > 0 && p.Request.GPU > 0 {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: gpuModel, Operator: v1.NodeSelectorOpIn, Values: p.GPUModels}},
			}}},
		}}
	}
	return pod
}

// list returns the amounts that are not 0.
func list(a trace.Amounts) v1.ResourceList {
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
