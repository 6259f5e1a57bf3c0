package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// observer has the nodes and pods of a cluster.
type observer struct {
	nodes toolscache.Store
	pods  podStore
}

func newObserver() *observer {
	return &observer{
		nodes: toolscache.NewStore(toolscache.MetaNamespaceKeyFunc, toolscache.WithTransformer(convert)),
		pods:  podStore{pods: summarize.Pods{}},
	}
}

// convert converts nodes and pods to the data that the agent uses. It is idempotent.
func convert(object any) (any, error) {
	switch object := object.(type) {
	case *v1.Node:
		return summarize.NewNode(object), nil
	case *v1.Pod:
		return summarize.NewPod(object), nil
	}
	return object, nil
}

// podStore has the pods that have a node and are not finished. It is a toolscache.TransformingStore.
type podStore struct {
	mu   sync.Mutex
	pods summarize.Pods
}

// Transformer implements toolscache.TransformingStore.
func (s *podStore) Transformer() toolscache.TransformFunc { return convert }

// Add implements toolscache.ReflectorStore.
func (s *podStore) Add(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(object)
	return nil
}

// Update implements toolscache.ReflectorStore.
func (s *podStore) Update(object any) error { return s.Add(object) }

// Delete implements toolscache.ReflectorStore.
func (s *podStore) Delete(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod, ok := object.(*v1.Pod); ok {
		s.pods.Delete(pod)
	}
	return nil
}

// Replace implements toolscache.ReflectorStore.
func (s *podStore) Replace(objects []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.pods)
	for _, object := range objects {
		s.set(object)
	}
	return nil
}

// Resync implements toolscache.ReflectorStore.
func (s *podStore) Resync() error { return nil }

// set adds or replaces a pod, which may be converted. Must be called with the lock held.
func (s *podStore) set(object any) {
	object, _ = convert(object)
	if pod, ok := object.(summarize.Pod); ok {
		s.pods.Set(pod)
	}
}

// start keeps the nodes and pods of a cluster up to date until ctx ends, with goroutines of a group. It returns when it has all of them,
// or when ctx ends.
func (o *observer) start(ctx context.Context, config *rest.Config, group *wait.Group) error {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return err
	}
	occupiesNode := fields.AndSelectors(fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodFailed)))
	list := func(resource string, selector fields.Selector) *toolscache.ListWatch {
		return toolscache.NewListWatchFromClient(client.RESTClient(), resource, metav1.NamespaceAll, selector)
	}
	nodes := toolscache.NewReflector(list("nodes", fields.Everything()), &v1.Node{}, o.nodes, 0)
	pods := toolscache.NewReflector(list("pods", occupiesNode), &v1.Pod{}, &o.pods, 0)
	for _, reflector := range []*toolscache.Reflector{nodes, pods} {
		group.StartWithContext(ctx, reflector.RunWithContext)
	}
	const interval = 100 * time.Millisecond
	_ = wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		return nodes.LastSyncResourceVersion() != "" && pods.LastSyncResourceVersion() != "", nil
	}) // the only error is the end of ctx
	return nil
}

// sortedNodes returns the nodes by name. Their order matters: sums of floats depend on it, and the first
// quantity determines the format of a sum.
func (o *observer) sortedNodes() (nodes []*summarize.Node) {
	for _, object := range o.nodes.List() {
		if node, ok := object.(*summarize.Node); ok {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b *summarize.Node) int { return cmp.Compare(a.Name.Value(), b.Name.Value()) })
	return nodes
}

// modelsOf returns the risk model of each resource of a node with pods.
func modelsOf(node *summarize.Node, pods *resources.Sums) (models [scored]risk.Resource) {
	allocatable, machine := resources.CPUAndMemory(node.Allocatable), resources.CPUAndMemory(node.Capacity)
	models[resources.CPU] = risk.NewCPU(float64(allocatable.CPU), float64(machine.CPU))
	models[resources.Memory] = risk.NewMemory(float64(allocatable.Memory), float64(machine.Memory))
	for r, resource := range [scored]resources.Resource{resources.CPUResource, resources.MemoryResource} {
		sum, m := pods.Get(resource), &models[r]
		m.Requests, m.Limits, m.Unbounded = float64(sum.Request), float64(sum.FlooredLimit), sum.Unbounded > 0
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
func (o *observer) state(pools []slackAmounts, fresh *load.Snapshot) clusterState {
	state := clusterState{Slack: pools}
	o.pods.mu.Lock()
	defer o.pods.mu.Unlock()
	var measured, weighted [scored]float64
	for _, node := range o.sortedNodes() {
		if !node.AcceptsPods() {
			continue
		}
		loads := loadOf(fresh, node.Name.Value())
		for r, model := range modelsOf(node, o.pods.pods.Sums(node.Name)) {
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
func (o *observer) summarize(in summarize.Input) *v1alpha1.ClusterCapacityStatus {
	in.Nodes = o.sortedNodes()
	o.pods.mu.Lock()
	defer o.pods.mu.Unlock()
	in.Pods = o.pods.pods
	return summarize.Summarize(&in)
}

// resources returns the capacity of all nodes, and the allocatable resources of the nodes that are not
// cordoned, as the agent of Open Cluster Management does.
func (o *observer) resources() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for _, node := range o.sortedNodes() {
		addTo(capacity, node.Capacity)
		if !node.Cordoned {
			addTo(allocatable, node.Allocatable)
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
