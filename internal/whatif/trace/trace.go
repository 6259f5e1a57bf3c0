// Package trace represents the input of a what-if without Kubernetes types: the nodes of a cluster and
// the pods that arrive over time. Its subpackages read public traces and generate clusters.
package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Never is the end of pods that do not end.
const Never = math.MaxInt64

// Bounds of a trace. With them, sums over all nodes or pods cannot overflow, and the memory of a trace
// is limited.
const (
	MaxNodes = 100_000
	MaxPods  = 1_000_000
	// MaxCPU is the largest CPU of a node or pod in millicores: a million cores.
	MaxCPU = 1_000_000_000
	// MaxMemory is the largest memory of a node or pod in bytes: a pebibyte.
	MaxMemory = 1 << 50
	// MaxGPU is the largest GPU of a node or pod in thousandths of a device: a thousand devices.
	MaxGPU = 1_000_000
	// MaxSecond is the latest time. As nanoseconds it fits in 64 bits.
	MaxSecond = 1 << 32
	// MaxName is the largest length of a name in bytes.
	MaxName = 253
)

// Amounts has a non-negative amount of each resource.
type Amounts struct {
	CPU    int64 // millicores
	Memory int64 // bytes
	GPU    int64 // thousandths of a device
}

// IsZero reports whether all amounts are 0.
func (a Amounts) IsZero() bool { return a == Amounts{} }

// Class is the class of service of a pod in a trace.
type Class uint8

// The classes. The QoS class in Kubernetes follows from requests and limits; a class in a trace is a
// hint for generating values that the trace lacks.
const (
	// Unclassed pods have no class in the trace.
	Unclassed Class = iota
	// BestEffort pods use capacity that others leave unused.
	BestEffort
	// Burstable pods use more than their requests if capacity is available.
	Burstable
	// Guaranteed pods have limits equal to their requests.
	Guaranteed
	// LatencySensitive pods serve interactive requests.
	LatencySensitive
)

// Node is a machine.
type Node struct {
	Name string
	// Capacity is the node's allocatable resources.
	Capacity Amounts
	// GPUModel is the model of the node's devices, empty if it has none or if unknown.
	GPUModel string
	// Zone is the failure domain, empty if unknown.
	Zone string
}

// Pod is a pod.
type Pod struct {
	Name string
	// Group identifies pods of the same workload, such as a deployment or a job; empty for a pod of its own.
	Group string
	// Batch is set if the workload is a job: its pods run to completion, and kube-scheduler does not spread them.
	// It is the same for all pods of a group.
	Batch bool
	// Request is the pod's request.
	Request Amounts
	// Limit is the pod's limit if the trace has it (HasLimit): an amount of 0 is no limit. Limits
	// that a trace does not have are generated.
	Limit    Amounts
	HasLimit bool
	// Nominal is the base of the pod's usage if that is not its request: best-effort pods have
	// usage without requests.
	Nominal Amounts
	Class   Class
	// GPUModels are the models that the pod can run on, any if empty.
	GPUModels []string
	// Arrival is the second at which the pod is created, Start the second at which it starts in the
	// trace (Arrival if it never does), and End the second at which it terminates, or Never.
	// Arrival <= Start <= End.
	Arrival, Start, End int64
	// Node is the node on which the pod runs in the trace, empty if unknown. It does not constrain
	// scheduling.
	Node string
}

// Runs returns the number of seconds from the start to the end of the pod, or Never.
func (p *Pod) Runs() int64 {
	if p.End == Never {
		return Never
	}
	return p.End - p.Start
}

// UsedFrom returns the base of the pod's usage: Nominal or, if that is zero, its request.
func (p *Pod) UsedFrom() Amounts {
	if p.Nominal.IsZero() {
		return p.Request
	}
	return p.Nominal
}

// Cluster is a trace.
type Cluster struct {
	Nodes []Node
	// Pods are ordered by arrival. Pods that arrive in the same second keep the order of the trace.
	Pods []Pod
	// Assumed describes assumptions and generated values, a sentence each.
	Assumed []string
}

// Sort orders the pods by arrival.
func (c *Cluster) Sort() {
	slices.SortStableFunc(c.Pods, func(a, b Pod) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

// Rebase shifts all times so that the first pod arrives at second 0.
func (c *Cluster) Rebase() {
	if len(c.Pods) == 0 {
		return
	}
	first := c.Pods[0].Arrival
	for i := range c.Pods {
		first = min(first, c.Pods[i].Arrival)
	}
	for i := range c.Pods {
		p := &c.Pods[i]
		p.Arrival, p.Start = p.Arrival-first, p.Start-first
		if p.End != Never {
			p.End -= first
		}
	}
}

// Pack makes a number of pods arrive in each second and removes their ends, so that a trace with few
// concurrent pods fills its cluster. perSecond must be at least 1.
func (c *Cluster) Pack(perSecond int) {
	for i := range c.Pods {
		second := int64(i / perSecond)
		c.Pods[i].Arrival, c.Pods[i].Start, c.Pods[i].End = second, second, Never
	}
	c.Assumed = append(c.Assumed, fmt.Sprintf("pods arrive in the order of the trace at %d per second, and do not end", perSecond))
}

// ValidName reports whether a name has 1 to MaxName letters, digits and . _ - = + / only. Markup and
// control characters are invalid.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !(c >= '0' && c <= '9') && !strings.ContainsRune("._-=+/", rune(c)) {
			return false
		}
	}
	return true
}
