// Package prediction keeps the model that predicts the usage of pods: it passes each reading of load,
// with the pods that were on the nodes, to a predict.Learner.
//
// # History
//
// HistoryKeeper keeps the history of the usage of workloads over restarts of the scheduler: it rebuilds the history from past
// metrics if the source has them, and otherwise saves it in a ConfigMap.
//
// # Metrics
//
// Metrics exposes the errors of the predicted utilization of nodes, and the state of the history of
// workloads, as Prometheus metrics. No metric has a label for nodes, pods or workloads.
package prediction

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Pods calls visit with every node and the pods that run on it. The order of nodes and pods does not
// matter. It is called by the goroutine that reads load.
type Pods func(visit func(node *v1.Node, pods []*v1.Pod))

// Keeper keeps the model. Its methods are safe for concurrent use.
type Keeper struct {
	pods  Pods
	model atomic.Pointer[predict.Model]

	mu      sync.Mutex
	learner *predict.Learner
	// used is the usage by pod, from the newest reading that the learner has not received.
	used   map[types.NamespacedName]load.PodUsage
	usedAt time.Time
	known  map[types.UID]*knownPod
	// readings is the number of readings of the load of nodes.
	readings uint64
	buffer   []predict.PodReading
	// nodes are the nodes of the reading, in its order.
	nodes []*v1.Node
	// missed is called with the predicted and the measured mean load of a node, as fractions of its allocatable amount.
	missed func(resource v1.ResourceName, predicted, measured float64)
}

// knownPod has what follows from the object of a pod, which is valid as long as the object does not change, and the learner's state for
// the pod.
type knownPod struct {
	pod      *v1.Pod
	declared predict.Declared
	created  float64
	arrival  resources.Arrival
	state    predict.PodState
	// reading is the number of the newest reading with the pod.
	reading uint64
}

// New returns a keeper with the model before the first reading. missed is called with the predicted and the measured mean load
// of a node, as fractions of its allocatable amount.
func New(options predict.Options, pods Pods, missed func(resource v1.ResourceName, predicted, measured float64)) *Keeper {
	k := &Keeper{
		pods: pods, missed: missed, learner: predict.NewLearner(options), known: map[types.UID]*knownPod{},
		used: map[types.NamespacedName]load.PodUsage{},
	}
	k.model.Store(predict.NewModel())
	return k
}

// Model returns the newest model.
func (k *Keeper) Model() *predict.Model { return k.model.Load() }

// Watch makes the keeper learn from the stores: from each reading of the load of nodes, together with the
// usage of pods since the previous one. Without fresh load of nodes it learns from each reading of the usage of pods. pods may be
// nil.
func (k *Keeper) Watch(nodes *load.Store, pods *load.PodStore) {
	if pods != nil {
		pods.Observe(func(reading *load.PodReading) {
			k.keepUsage(reading)
			if nodes.Fresh() == nil { // the load of nodes has no source, has not been read yet, or is too old
				k.learn(load.Reading{Time: reading.Time, Window: reading.Window})
			}
		})
	}
	nodes.Observe(func(s *load.Snapshot) { k.learn(s.Reading()) })
}

// keepUsage keeps the usage of pods for the next reading of the load of nodes.
func (k *Keeper) keepUsage(reading *load.PodReading) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.used)
	for _, p := range reading.Pods {
		k.used[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
	}
	k.usedAt = reading.Time
}

// Known returns the number of workloads whose usage is known, and the time of the newest usage of pods.
func (k *Keeper) Known() (workloads int, updated time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Model().Workloads(), k.usedAt
}

// Replay learns from past usage of pods: from a reading in which the load of all nodes is unknown.
func (k *Keeper) Replay(reading *load.PodReading) {
	k.keepUsage(reading)
	k.learn(load.Reading{Time: reading.Time})
}

// Workloads returns the history of the usage of all workloads.
func (k *Keeper) Workloads() []predict.Past {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.learner.Export()
}

// Restore adds a history that was saved at an earlier time, without the ignored workloads, whose pods cannot have used what it says.
// Predictions use it before the first reading.
func (k *Keeper) Restore(workloads []predict.Past, saved, now time.Time) (ignored int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var largest [predict.Resources]float64
	k.pods(func(node *v1.Node, _ []*v1.Pod) {
		for r, resource := range Predicted {
			largest[r] = max(largest[r], float64(resource.CapacityOf(node)))
		}
	})
	possible := slices.DeleteFunc(slices.Clone(workloads), func(w predict.Past) bool {
		return pods(&w) > maxPods || largest[predict.CPU] > 0 && // there are nodes
			(w.CPU.Mean > largest[predict.CPU] || w.Memory.Mean > largest[predict.Memory])
	})
	k.model.Store(k.learner.Import(possible, second(saved), second(now)))
	return len(workloads) - len(possible)
}

// learn passes a reading of the load of nodes to the learner, and publishes the model.
func (k *Keeper) learn(measured load.Reading) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reading := predict.Reading{Second: second(measured.Time), Window: measured.Window.Seconds()}
	k.readings++
	k.buffer, k.nodes = k.buffer[:0], k.nodes[:0]
	var ends []int
	k.pods(func(node *v1.Node, pods []*v1.Pod) {
		n := predict.NodeReading{Name: node.Name}
		for r, resource := range Predicted {
			n.Capacity[r] = float64(resource.CapacityOf(node))
		}
		if l, ok := measured.Nodes[node.Name]; ok {
			n.Measured[predict.CPU] = amounts(l.CPU, l.HasCPU, n.Capacity[predict.CPU])
			n.Measured[predict.Memory] = amounts(l.Memory, l.HasMemory, n.Capacity[predict.Memory])
		}
		// The load of a young node is an average since its creation.
		window := min(measured.Window, max(measured.Time.Sub(node.CreationTimestamp.Time), 0))
		for _, pod := range pods {
			k.buffer = append(k.buffer, k.podReading(pod, measured.Time, window))
		}
		k.nodes = append(k.nodes, node)
		reading.Nodes, ends = append(reading.Nodes, n), append(ends, len(k.buffer))
	})
	begin := 0
	for i, end := range ends {
		reading.Nodes[i].Pods = k.buffer[begin:end]
		begin = end
	}
	clear(k.used)
	if len(k.known) > len(k.buffer) {
		maps.DeleteFunc(k.known, func(_ types.UID, p *knownPod) bool { return p.reading != k.readings })
	}
	k.model.Store(k.learner.Observe(&reading))
	k.reportMissed(&reading)
}

// second returns a time in seconds.
func second(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }

// reportMissed reports the predictions of a reading with the measured values.
func (k *Keeper) reportMissed(reading *predict.Reading) {
	for i, node := range k.nodes {
		for r, resource := range Predicted {
			n := &reading.Nodes[i]
			allocatable := float64(resource.AllocatableOf(node))
			if n.Measured[r].Known && allocatable > 0 && !math.IsNaN(n.Predicted[r]) {
				k.missed(resource.Name(), n.Predicted[r]/allocatable, n.Measured[r].Mean/allocatable)
			}
		}
	}
}

// Predicted are the resources that are predicted, by index.
var Predicted = [predict.Resources]resources.Resource{predict.CPU: resources.CPUResource, predict.Memory: resources.MemoryResource}

// amounts converts a utilization to amounts.
func amounts(u load.Utilization, known bool, capacity float64) predict.Measured {
	return predict.Measured{Mean: u.Mean * capacity, Known: known && u.Valid()}
}

// podReading returns the reading of a pod, and adds the pod to the known pods.
func (k *Keeper) podReading(pod *v1.Pod, end time.Time, window time.Duration) predict.PodReading {
	known := k.known[pod.UID]
	if known == nil {
		known = &knownPod{}
		k.known[pod.UID] = known
	}
	known.reading = k.readings
	if known.pod != pod {
		amounts := resources.NewPod(pod)
		known.pod, known.declared = pod, Declared(&amounts)
		known.created, known.arrival = second(pod.CreationTimestamp.Time), resources.ArrivalOf(pod)
	}
	p := predict.PodReading{
		Declared: known.declared, State: &known.state, Created: known.created, Seen: 1 - known.arrival.MissingFraction(end, window),
	}
	if used, ok := k.used[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; ok {
		p.Used, p.IsUsed = [predict.Resources]float64{used.CPU, used.Memory}, used.Valid()
	}
	return p
}

// Declared returns what a pod declares.
func Declared(pod *resources.Pod) predict.Declared {
	p := predict.Declared{Workload: pod.Workload()}
	for i, r := range Predicted {
		a := pod.Get(r)
		p.Amounts[i] = predict.Amount{Request: float64(a.Request), Limit: float64(max(a.Limit, a.Request))}
		if a.Unbounded {
			p.Amounts[i].Limit = 0
		}
	}
	return p
}
