package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// CacheOptions returns the options of the cache of the member cluster: it has pods that have a node
// and are not finished, and only the data of pods and nodes that the agent uses.
func CacheOptions() cache.Options {
	return cache.Options{NewInformer: newInformer, ByObject: map[client.Object]cache.ByObject{
		&v1.Pod{}: {
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("spec.nodeName", ""),
				fields.OneTermNotEqualSelector("status.phase", string(v1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(v1.PodFailed)),
			),
			Transform: observe,
		},
		&v1.Node{}: {Transform: observe},
	}}
}

// newInformer returns an informer without an index by namespace, which cacheKeys do not have.
func newInformer(
	lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, _ toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(lw, object, resync, toolscache.Indexers{})
}

// observedNode is the data of a node that the agent uses.
type observedNode struct {
	cacheKey
	node     capacity.Node
	cordoned bool
}

// observedPod is the data of a pod that the agent uses.
type observedPod struct {
	cacheKey
	pod capacity.Pod
}

// cacheKey is the key of an object in a cache: its name, after its namespace and a slash if it has one.
type cacheKey string

// keyOf returns the key of an object.
func keyOf(object metav1.Object) cacheKey {
	return cacheKey(toolscache.MetaObjectToName(object).String())
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. The name is the key: a cache makes the same key of a name without a namespace, and
// does not copy it. Without event handlers, a cache needs nothing else.
func (k cacheKey) GetObjectMeta() metav1.Object { return &metav1.ObjectMeta{Name: string(k)} }

// observe is a cache transform that converts nodes and pods to the data that the agent uses.
func observe(object any) (any, error) {
	switch object := object.(type) {
	case *v1.Node:
		return &observedNode{keyOf(object), capacity.NewNode(object), object.Spec.Unschedulable}, nil
	case *v1.Pod:
		return &observedPod{keyOf(object), capacity.NewPod(object)}, nil
	}
	return object, nil // converted already
}

// observer reads the nodes and pods of a cluster from the stores of its cache.
type observer struct{ nodes, pods toolscache.Store }

// newObserver returns an observer of a cache that has CacheOptions.
func newObserver(ctx context.Context, informers cache.Informers) (*observer, error) {
	o := &observer{}
	for object, store := range map[client.Object]*toolscache.Store{&v1.Node{}: &o.nodes, &v1.Pod{}: &o.pods} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		// A list of the cache would copy all pods.
		shared, ok := informer.(toolscache.SharedIndexInformer)
		if !ok {
			return nil, fmt.Errorf("the cache has no store of %T", object)
		}
		*store = shared.GetStore()
	}
	return o, nil
}

// sortedNodes returns the nodes by name. Their order matters: sums of floats depend on it, and the first
// quantity determines the format of a sum.
func (o *observer) sortedNodes() (nodes []*observedNode) {
	for _, object := range o.nodes.List() {
		if node, ok := object.(*observedNode); ok {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b *observedNode) int { return cmp.Compare(a.cacheKey, b.cacheKey) })
	return nodes
}

// eachPod is an iterator over the pods that occupy a node. Most of its time it waits for memory: it reads the nodes of some pods at once,
// so that the CPU waits for all of them together.
func (o *observer) eachPod(yield func(*capacity.Pod) bool) {
	var pods []*capacity.Pod
	for objects := range slices.Chunk(o.pods.List(), 32) {
		pods = pods[:0]
		for _, object := range objects {
			if pod, ok := object.(*observedPod); ok && pod.pod.Node != (capacity.NodeName{}) {
				pods = append(pods, &pod.pod)
			}
		}
		for _, pod := range pods {
			if !yield(pod) {
				return
			}
		}
	}
}

// podSums are the sums over the pods on one node.
type podSums [scored]resources.Sum

// podSums returns the sums over the pods by node, without placeholders, which any other pod preempts.
func (o *observer) podSums() map[capacity.NodeName]*podSums {
	sums := map[capacity.NodeName]*podSums{}
	for pod := range o.eachPod {
		if pod.Placeholder {
			continue
		}
		sum := sums[pod.Node]
		if sum == nil {
			sum = &podSums{}
			sums[pod.Node] = sum
		}
		sum[resources.CPU].Add(pod.Amounts.Get(resources.CPUResource))
		sum[resources.Memory].Add(pod.Amounts.Get(resources.MemoryResource))
	}
	return sums
}

// modelsOf returns the risk model of each resource of a node.
func modelsOf(node *capacity.Node, pods *podSums) (models [scored]risk.Resource) {
	allocatable, machine := resources.CPUAndMemory(node.Allocatable), resources.CPUAndMemory(node.Capacity)
	models[resources.CPU] = risk.NewCPU(float64(allocatable[resources.CPU]), float64(machine[resources.CPU]))
	models[resources.Memory] = risk.NewMemory(float64(allocatable[resources.Memory]), float64(machine[resources.Memory]))
	for r := range models {
		m := &models[r]
		m.Requests, m.Limits, m.Unbounded = float64(pods[r].Request), float64(pods[r].FlooredLimit), pods[r].Unbounded > 0
	}
	return models
}

// loadOf returns the measured load of each resource of a node, as fractions of the machine. A load that is
// not known is not valid.
func loadOf(fresh *load.Snapshot, node string) [scored]risk.Load {
	loads := [scored]risk.Load{{Mean: -1}, {Mean: -1}}
	measured, _ := fresh.Node(node)
	if measured.HasCPU {
		loads[resources.CPU] = risk.Load(measured.CPU)
	}
	if measured.HasMemory {
		loads[resources.Memory] = risk.Load(measured.Memory)
	}
	return loads
}

// state returns the state that the cluster is scored by, with fresh load, which may be nil.
//
// LoadRisk is the probability that the pods of the cluster use more than they request. The risk of a
// resource is the mean of the load risks of the nodes with known load (see risk.Resource.LoadRisk), weighted
// by allocatable amount; LoadRisk is the highest. A resource is skipped if the load of less than half of its
// allocatable amount is known.
func (o *observer) state(pools []Slack, fresh *load.Snapshot) State {
	state := State{Slack: pools}
	pods := o.podSums()
	var measured, weighted [scored]float64
	for _, node := range o.sortedNodes() {
		if !node.node.AcceptsPods() {
			continue
		}
		loads := loadOf(fresh, node.node.Name.Value())
		for r, model := range modelsOf(&node.node, cmp.Or(pods[node.node.Name], &podSums{})) {
			state.Sums[r].add(model)
			if loads[r].Valid() && model.Capacity > 0 {
				measured[r] += model.Capacity
				weighted[r] += model.Capacity * model.LoadRisk(loads[r], risk.DefaultWindow)
			}
		}
	}
	for r, sums := range state.Sums {
		if measured[r] > 0 && measured[r] >= sums.Allocatable/2 {
			state.LoadRisk, state.LoadKnown = max(state.LoadRisk, min(weighted[r]/measured[r], 1)), true
		}
	}
	return state
}

// summarize returns the summary of the cluster.
func (o *observer) summarize(in capacity.Input) *v1alpha1.ClusterCapacityStatus {
	for _, node := range o.sortedNodes() {
		in.Nodes = append(in.Nodes, &node.node)
	}
	in.Pods = o.eachPod
	return capacity.Summarize(&in)
}

// resources returns the capacity of all nodes, and the allocatable resources of the nodes that are not
// cordoned, as the agent of Open Cluster Management does.
func (o *observer) resources() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for _, node := range o.sortedNodes() {
		addTo(capacity, node.node.Capacity)
		if !node.cordoned {
			addTo(allocatable, node.node.Allocatable)
		}
	}
	return capacity, allocatable
}

// addTo adds a list to a sum.
func addTo(sum, list v1.ResourceList) {
	for name, quantity := range list {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
