package agent

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// CacheOptions returns the options of the cache of the member cluster: it has pods that have a node
// and are not finished, and only the fields of pods and nodes that the agent uses.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1.Pod{}: {
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("spec.nodeName", ""),
				fields.OneTermNotEqualSelector("status.phase", string(v1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(v1.PodFailed)),
			),
			Transform: stripFields,
		},
		&v1.Node{}: {Transform: stripFields},
	}}
}

// observer counts nodes and pods, one change at a time.
type observer struct {
	mu     sync.Mutex
	ledger *Ledger
	nodes  map[string]nodeResources
	// capacity and allocatable are the sums over the nodes. They are computed again if stale.
	capacity, allocatable v1.ResourceList
	stale                 bool
}

// nodeResources is the contribution of a node to the resources of the ManagedCluster.
type nodeResources struct {
	capacity, allocatable v1.ResourceList
	cordoned              bool
}

func (r nodeResources) equals(other nodeResources) bool {
	return r.cordoned == other.cordoned && equality.Semantic.DeepEqual(r.capacity, other.capacity) &&
		equality.Semantic.DeepEqual(r.allocatable, other.allocatable)
}

func newObserver() *observer {
	return &observer{ledger: NewLedger(), nodes: map[string]nodeResources{}, stale: true}
}

// watch adds handlers for the nodes and pods of a cache, and returns functions that report whether
// the initial objects have been counted.
func (o *observer) watch(ctx context.Context, informers cache.Informers) ([]toolscache.InformerSynced, error) {
	var synced []toolscache.InformerSynced
	for _, kind := range []struct {
		object      client.Object
		set, remove func(any)
	}{
		{&v1.Node{}, handlerOf(o.setNode), handlerOf(o.deleteNode)},
		{&v1.Pod{}, handlerOf(o.setPod), handlerOf(o.deletePod)},
	} {
		informer, err := informers.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: kind.set, UpdateFunc: func(_, now any) { kind.set(now) }, DeleteFunc: kind.remove,
		})
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// handlerOf returns an event handler for objects of one type. An object that was deleted while the
// watch was interrupted is passed in its last known state.
func handlerOf[T any](f func(T)) func(any) {
	return func(object any) {
		if deleted, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = deleted.Obj
		}
		if typed, ok := object.(T); ok {
			f(typed)
		}
	}
}

func (o *observer) setNode(node *v1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger.SetNode(node.Name, nodeAmounts{
		Schedulable: acceptsPods(
			node,
		),
		Allocatable: resources.CPUAndMemory(node.Status.Allocatable),
		Machine:     resources.CPUAndMemory(node.Status.Capacity),
	})
	resources := nodeResources{node.Status.Capacity, node.Status.Allocatable, node.Spec.Unschedulable}
	if before, known := o.nodes[node.Name]; !known || !before.equals(resources) {
		o.nodes[node.Name], o.stale = resources, true
	}
}

func (o *observer) deleteNode(node *v1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger.DeleteNode(node.Name)
	delete(o.nodes, node.Name)
	o.stale = true
}

func (o *observer) setPod(pod *v1.Pod) {
	counted := podOf(pod)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger.SetPod(resources.Name(pod), counted)
}

func (o *observer) deletePod(pod *v1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger.DeletePod(resources.Name(pod))
}

// acceptsPods reports whether a node accepts a pod without tolerations. A node without conditions,
// for example from a manifest, counts as ready.
func acceptsPods(node *v1.Node) bool {
	if !resources.IsSchedulable(node) {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect != v1.TaintEffectPreferNoSchedule {
			return false
		}
	}
	ready := resources.ReadyCondition(node)
	return ready == nil || ready.Status == v1.ConditionTrue
}

// podOf returns the part of a pod that the ledger counts. Finished pods and placeholders, which any
// other pod preempts, are not counted: they have no node.
func podOf(pod *v1.Pod) (out podAmounts) {
	if resources.IsFinished(pod) || pod.Labels[slack.PlaceholderLabel] != "" {
		return out
	}
	out.Node = pod.Spec.NodeName
	amounts := resources.NewPod(pod)
	for i, r := range []resources.Resource{resources.CPU: resources.CPUResource, resources.Memory: resources.MemoryResource} {
		amount := amounts.Get(r)
		out.Requests[i], out.Limits[i], out.Unbounded[i] = amount.Request, amount.Limit, amount.Unbounded
	}
	return out
}

// state returns the state that the cluster is scored by.
func (o *observer) state(pools []Slack, store *load.Store) State {
	o.mu.Lock()
	defer o.mu.Unlock()
	state := State{Sums: o.ledger.Sums(), Slack: pools}
	if store == nil {
		return state
	}
	if fresh := store.Fresh(); fresh != nil {
		state.LoadRisk, state.LoadKnown = o.ledger.LoadRisk(func(name string) Load {
			node, _ := fresh.Node(name)
			return Load{
				Load:  [...]risk.Load{resources.CPU: risk.Load(node.CPU), resources.Memory: risk.Load(node.Memory)},
				Known: [...]bool{resources.CPU: node.HasCPU, resources.Memory: node.HasMemory},
			}
		})
	}
	return state
}

// resources returns the capacity of all nodes, and the allocatable resources of the nodes that are not
// cordoned, as the agent of Open Cluster Management does. The caller must not change the lists.
func (o *observer) resources() (capacity, allocatable v1.ResourceList) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stale {
		o.capacity, o.allocatable, o.stale = v1.ResourceList{}, v1.ResourceList{}, false
		// The order of the nodes matters: the first quantity determines the format of a sum.
		for _, name := range slices.Sorted(maps.Keys(o.nodes)) {
			node := o.nodes[name]
			addTo(o.capacity, node.capacity)
			if !node.cordoned {
				addTo(o.allocatable, node.allocatable)
			}
		}
	}
	return o.capacity, o.allocatable
}

// addTo adds a list to a sum.
func addTo(sum, list v1.ResourceList) {
	for name, quantity := range list {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
