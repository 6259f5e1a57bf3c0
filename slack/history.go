package slack

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// History is the pods of a pool over time: the input of Simulate and Recommend. Seconds are counted from its start.
type History struct {
	// Start is the time of second 0, by which schedules apply, and Seconds the length.
	Start   time.Time
	Seconds int64
	// Pods are ordered by Arrival. Pods of DaemonSets are left out: NodeType is without them.
	Pods []HistoryPod
	// Workloads are the workloads for which Recommend searches mirrors, with their kind, namespace and name.
	Workloads []Workload
}

// HistoryPod is a pod of a history.
type HistoryPod struct {
	// Arrival is the second at which the pod is created. A pod with a negative arrival has a node at the start.
	Arrival int64
	// Duration is how long the pod runs once it has a node, or from second 0, in seconds: math.MaxInt64 if it
	// does not end.
	Duration int64
	// MilliCPU and Memory, in bytes, are the requests.
	MilliCPU, Memory int64
	// Workload is the number of the workload of the pod in History.Workloads, from 1, or 0 if it is not one of them.
	Workload int32
}

func (p *HistoryPod) requests() resources.Amounts {
	return resources.Amounts{CPU: p.MilliCPU, Memory: p.Memory}
}

// NodeType is the nodes that an autoscaler adds to and removes from a pool. Times are in seconds.
type NodeType struct {
	// MilliCPU, Memory, in bytes, and Slots, in pods, are the capacity of a node without pods of DaemonSets.
	MilliCPU, Memory, Slots int64
	// Boot is the time until a new node is ready, and Interval the time between two passes of the autoscaler.
	Boot, Interval int64
	// Idle is how long a node must be unneeded before it is removed, and AfterAdd the time without removals after
	// a node was added. A node is unneeded below a Utilization.
	Idle, AfterAdd int64
	Utilization    float64
	// Cost of a node per hour, and Max, the maximum number of nodes.
	Cost float64
	Max  int
}

// Defaults of Cluster Autoscaler, in seconds: scan-interval, scale-down-unneeded-time and scale-down-delay-after-add, and
// scale-down-utilization-threshold.
const (
	ScanInterval  = 10
	UnneededTime  = 600
	DelayAfterAdd = 600
	Threshold     = 0.5
)

func (n *NodeType) capacity() resources.Amounts {
	return resources.Amounts{CPU: n.MilliCPU, Memory: n.Memory}
}

// Waits counts pods by the seconds that they waited for a node.
type Waits map[int64]int64

// Pods returns the number of pods.
func (w Waits) Pods() (sum int64) {
	for _, n := range w {
		sum += n
	}
	return sum
}

// Percentile returns the shortest time within which a percentage of the pods has a node, 0 without pods.
func (w Waits) Percentile(percent float64) time.Duration {
	// Rounding errors of the product are less than a millionth of a pod, and percentages have at most three decimals.
	required := int64(math.Ceil(percent*float64(w.Pods())/100 - 1e-6))
	for _, seconds := range slices.Sorted(maps.Keys(w)) {
		if required -= w[seconds]; required <= 0 {
			return time.Duration(seconds) * time.Second
		}
	}
	return 0
}

// Longer returns how many pods waited longer than a time.
func (w Waits) Longer(than time.Duration) (sum int64) {
	for seconds, n := range w {
		if time.Duration(seconds)*time.Second > than {
			sum += n
		}
	}
	return sum
}
