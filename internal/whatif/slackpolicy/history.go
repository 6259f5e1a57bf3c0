package slackpolicy

import (
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// History is the pods of a pool over time. Seconds are counted from its start. Amounts are CPU, memory and pod slots.
type History struct {
	// Start is the time of second 0, by which schedules apply, and Seconds the length.
	Start   time.Time
	Seconds int64
	// Nodes are the nodes at the start. Pods without a node at the start get additional nodes.
	Nodes []InitialNode
	// Pods are ordered by Arrival. Pods of DaemonSets are left out: the nodes are without them.
	Pods []Pod
}

// InitialNode is a node at the start of a history.
type InitialNode struct {
	// Allocatable is without the pods of DaemonSets.
	Allocatable resources.Amounts
	// IsScaled is set if the autoscaler may remove the node.
	IsScaled bool
	// Cost per hour.
	Cost float64
}

// Pod is a pod of a history.
type Pod struct {
	// Arrival is the second at which the pod is created. A pod with a negative arrival has a node at the start.
	Arrival int64
	// Duration is how long the pod runs once it has a node, or from second 0, in seconds: math.MaxInt64 if it
	// does not end.
	Duration int64
	Requests resources.Amounts
	// Node is the number of the pod's node in History.Nodes at the start, from 1, or 0 if it has none.
	Node int32
}

// NodeType is the nodes that an autoscaler adds to and removes from a pool.
type NodeType struct {
	// Allocatable is the capacity of a node without pods of DaemonSets.
	Allocatable resources.Amounts
	// Boot is the time until a new node is ready, in seconds.
	Boot int64
	// Cost of a node per hour, Min and Max, the bounds of their number.
	Cost     float64
	Min, Max int
	autoscaler.Loop
}

// size returns the CPU and memory of a node.
func (n *NodeType) size() resources.Amounts { return withoutSlots(n.Allocatable) }

// withoutSlots returns the CPU and memory of amounts.
func withoutSlots(a resources.Amounts) resources.Amounts {
	return resources.Amounts{CPU: a.CPU, Memory: a.Memory}
}
