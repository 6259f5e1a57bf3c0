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

	"github.com/plimsoll-k8s/plimsoll/internal/algo/clusterscore"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// CacheOptions are those of the member cluster's cache: pods that have a node and
// have not ended, and of pods and nodes only what counts.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1.Pod{}: {
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("spec.nodeName", ""),
				fields.OneTermNotEqualSelector("status.phase", string(v1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(v1.PodFailed)),
			),
			Transform: slim,
		},
		&v1.Node{}: {Transform: slim},
	}}
}

// observer counts nodes and pods, told one change at a time.
type observer struct {
	mu     sync.Mutex
	ledger *clusterscore.Ledger
	nodes  map[string]nodeResources
	// capacity and allocatable are the sums of the nodes', made anew where stale.
	capacity, allocatable v1.ResourceList
	stale                 bool
}

// nodeResources are what the ManagedCluster counts of a node.
type nodeResources struct {
	capacity, allocatable v1.ResourceList
	cordoned              bool
}

func (r nodeResources) equals(other nodeResources) bool {
	return r.cordoned == other.cordoned && equality.Semantic.DeepEqual(r.capacity, other.capacity) && equality.Semantic.DeepEqual(r.allocatable, other.allocatable)
}

func newObserver() *observer {
	return &observer{ledger: clusterscore.NewLedger(), nodes: map[string]nodeResources{}, stale: true}
}

// watch makes the observer follow the nodes and pods of a cache, and returns what
// says whether those that there were have been counted.
func (o *observer) watch(ctx context.Context, informers cache.Informers) ([]toolscache.InformerSynced, error) {
	var synced []toolscache.InformerSynced
	for _, kind := range []struct {
		object      client.Object
		set, remove func(any)
	}{
		{&v1.Node{}, onto(o.setNode), onto(o.deleteNode)},
		{&v1.Pod{}, onto(o.setPod), onto(o.deletePod)},
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

// onto returns a handler of events about one type, for which what was missed
// while the watch was broken is deleted as it was last seen.
func onto[T any](f func(T)) func(any) {
	return func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if typed, ok := object.(T); ok {
			f(typed)
		}
	}
}

func (o *observer) setNode(node *v1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger.SetNode(node.Name, clusterscore.Node{
		Schedulable: isOpen(node), Allocatable: amountsOf(node.Status.Allocatable), Machine: amountsOf(node.Status.Capacity),
	})
	is := nodeResources{node.Status.Capacity, node.Status.Allocatable, node.Spec.Unschedulable}
	if before, known := o.nodes[node.Name]; !known || !before.equals(is) {
		o.nodes[node.Name], o.stale = is, true
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
	o.ledger.SetPod(facts.Name(pod), counted)
}

func (o *observer) deletePod(pod *v1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger.DeletePod(facts.Name(pod))
}

// isOpen reports whether a pod without tolerations may be put on a node. A node
// without conditions, which only a manifest or a test has, counts as ready.
func isOpen(node *v1.Node) bool {
	if !facts.IsSchedulable(node) {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect != v1.TaintEffectPreferNoSchedule {
			return false
		}
	}
	ready := facts.ReadyCondition(node)
	return ready == nil || ready.Status == v1.ConditionTrue
}

// podOf returns a pod as the ledger counts it. Pods that have ended are on no
// node, nor are placeholders of resource slack: they give way to any other.
func podOf(pod *v1.Pod) (out clusterscore.Pod) {
	if facts.IsFinished(pod) || pod.Labels[slack.PlaceholderLabel] != "" {
		return out
	}
	out.Node = pod.Spec.NodeName
	amounts := noderes.NewPod(pod)
	for i, r := range []noderes.Resource{clusterscore.CPU: noderes.CPU, clusterscore.Memory: noderes.Memory} {
		amount := amounts.Get(r)
		out.Requests[i], out.Limits[i], out.Unbounded[i] = amount.Request, amount.Limit, amount.Unbounded
	}
	return out
}

func amountsOf(list v1.ResourceList) clusterscore.Amounts {
	return clusterscore.Amounts{
		clusterscore.CPU: noderes.CPU.Amount(list[v1.ResourceCPU]), clusterscore.Memory: noderes.Memory.Amount(list[v1.ResourceMemory]),
	}
}

// state returns what the cluster is scored by now.
func (o *observer) state(pools []clusterscore.Slack, store *load.Store) clusterscore.State {
	o.mu.Lock()
	defer o.mu.Unlock()
	state := clusterscore.State{Sums: o.ledger.Sums(), Slack: pools}
	if store == nil {
		return state
	}
	if fresh := store.Fresh(); fresh != nil {
		state.LoadRisk, state.LoadKnown = o.ledger.LoadRisk(func(name string) clusterscore.Load {
			node, _ := fresh.Node(name)
			return clusterscore.Load{
				Load:  [...]risk.Load{clusterscore.CPU: node.CPU, clusterscore.Memory: node.Memory},
				Known: [...]bool{clusterscore.CPU: node.HasCPU, clusterscore.Memory: node.HasMemory},
			}
		})
	}
	return state
}

// resources returns what all nodes have, and what of it pods may have on those
// that are not cordoned: as the agent of Open Cluster Management counts them.
// The lists are not to be changed.
func (o *observer) resources() (capacity, allocatable v1.ResourceList) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stale {
		o.capacity, o.allocatable, o.stale = v1.ResourceList{}, v1.ResourceList{}, false
		// In order: the first quantity decides how a sum is written.
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
