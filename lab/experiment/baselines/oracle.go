package baselines

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Oracle is the name of the plugin that knows the usage of pods over their lives.
const Oracle = "Oracle"

// oracleStep is the time between two steps of the oracle in seconds.
const oracleStep = 300

// Future is what the pods of a run will use, by UID. Its zero value knows nothing.
type Future struct {
	pods map[types.UID]*recording.InputPod
	// end is the second at which the run ends.
	end int64
}

// NewFuture returns the future of the input of a run.
func NewFuture(in recording.Input) Future {
	f := Future{pods: make(map[types.UID]*recording.InputPod, len(in.Pods)), end: in.End}
	for i := range in.Pods {
		f.pods[in.Pods[i].Object.UID] = &in.Pods[i]
	}
	return f
}

// use is the usage of a pod, or of all pods of a node, at the steps from first on.
type use struct {
	first       int
	cpu, memory []float64
}

// usageOf returns the usage of a pod that is placed at a second, up to its limits, and false if it is not known.
func (f Future) usageOf(pod types.UID, placed int64) (use, bool) {
	p := f.pods[pod]
	if p == nil || p.IsGenerated {
		return use{}, false
	}
	end := f.end
	if p.Duration != recording.Never {
		end = min(end, placed+p.Duration)
	}
	u := use{first: int(placed / oracleStep)}
	for at := placed; at < end; at += oracleStep {
		demand := p.Resources
		demand.CPU, demand.Memory = p.Usage.At(at-placed, at)
		if demand.CPULimit > 0 {
			demand.CPU = min(demand.CPU, demand.CPULimit)
		}
		u.cpu, u.memory = append(u.cpu, demand.CPU), append(u.memory, demand.MemoryUse())
	}
	return u, true
}

// add adds the usage of a pod to the usage of a node, sign times.
func (u *use) add(pod use, sign float64) {
	for i := range pod.cpu {
		step := pod.first + i
		for step >= len(u.cpu) {
			u.cpu, u.memory = append(u.cpu, 0), append(u.memory, 0)
		}
		u.cpu[step] += sign * pod.cpu[i]
		u.memory[step] += sign * pod.memory[i]
	}
}

// stepCost is the cost of a step with the utilization of a resource: overload, and far below it the utilization to the power of 8,
// which ranks nodes without overload.
func stepCost(utilization float64) float64 {
	const overloadWeight = 100
	below := min(utilization, 1)
	below *= below
	below *= below
	return below*below + overloadWeight*max(utilization-1, 0)
}

// cost returns by how much a pod increases the cost of a node with allocatable amounts over the life of the pod.
func (u *use) cost(pod use, cpu, memory float64) float64 {
	sum := 0.0
	for i := range pod.cpu {
		var c, m float64
		if step := pod.first + i; step < len(u.cpu) {
			c, m = u.cpu[step], u.memory[step]
		}
		sum += stepCost((c+pod.cpu[i])/cpu) - stepCost(c/cpu) + stepCost((m+pod.memory[i])/memory) - stepCost(m/memory)
	}
	return sum
}

// oracle scores nodes by the overload that a pod will cause over its life.
type oracle struct {
	future Future
	store  *load.Store
	nodes  map[string]*oracleNode
	// costs of the pending pod, by node.
	costs map[string]float64
}

// oracleNode has the usage of the pods on a node.
type oracleNode struct {
	generation int64
	pods       map[types.UID]use
	sum        use
}

var (
	_ fwk.PreScorePlugin  = &oracle{}
	_ fwk.ScoreExtensions = &oracle{}
)

// newOracle returns the constructor of the oracle.
func newOracle(future Future) frameworkruntime.PluginFactory {
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		store, err := loadStore(ctx, handle)
		return &oracle{future: future, store: store, nodes: map[string]*oracleNode{}}, err
	}
}

// Name returns the name of the plugin.
func (o *oracle) Name() string { return Oracle }

// PreScore computes the costs of all nodes.
func (o *oracle) PreScore(_ context.Context, _ fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	pending, ok := o.future.usageOf(pod.UID, o.now(pod))
	if !ok {
		return fwk.NewStatus(fwk.Skip)
	}
	o.costs = make(map[string]float64, len(nodes))
	for _, info := range nodes {
		node := info.Node()
		o.costs[node.Name] = o.update(info).cost(pending, float64(node.Status.Allocatable.Cpu().MilliValue()),
			float64(node.Status.Allocatable.Memory().Value()))
	}
	return nil
}

// now returns the second of the run: of the last reading of load and its age, or of the creation of the pod if it is later.
func (o *oracle) now(pod *v1.Pod) int64 {
	second := recording.Second(pod.CreationTimestamp.Time)
	if snapshot := o.store.Fresh(); snapshot != nil {
		age, _ := o.store.Age()
		second = max(second, recording.Second(snapshot.Reading().Time.Add(age)))
	}
	return max(second, 0)
}

// update returns the usage of the pods of a node.
func (o *oracle) update(info fwk.NodeInfo) *use {
	name := info.Node().Name
	n := o.nodes[name]
	if n == nil {
		n = &oracleNode{pods: map[types.UID]use{}}
		o.nodes[name] = n
	}
	if n.generation == info.GetGeneration() {
		return &n.sum
	}
	n.generation = info.GetGeneration()
	present := make(map[types.UID]bool, len(info.GetPods()))
	for _, p := range info.GetPods() {
		pod := p.GetPod()
		present[pod.UID] = true
		if _, known := n.pods[pod.UID]; known {
			continue
		}
		if u, ok := o.future.usageOf(pod.UID, boundAt(pod)); ok {
			n.pods[pod.UID] = u
			n.sum.add(u, 1)
		}
	}
	for uid, u := range n.pods {
		if !present[uid] {
			n.sum.add(u, -1)
			delete(n.pods, uid)
		}
	}
	return &n.sum
}

// boundAt returns the second at which a pod was bound.
func boundAt(pod *v1.Pod) int64 {
	at := pod.CreationTimestamp.Time
	if _, condition := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); condition != nil {
		at = condition.LastTransitionTime.Time
	}
	return max(recording.Second(at), 0)
}

// Score returns 0: NormalizeScore sets the scores.
func (o *oracle) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}

// ScoreExtensions returns the plugin.
func (o *oracle) ScoreExtensions() fwk.ScoreExtensions { return o }

// NormalizeScore scores nodes by their rank, so that the node with the lowest cost has the highest score.
func (o *oracle) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(o.costs[scores[a].Name], o.costs[scores[b].Name]) })
	for rank, i := range order {
		scores[i].Score = maxScore - int64(min(rank, maxScore))
	}
	return nil
}
