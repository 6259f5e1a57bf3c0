// Package trace is the neutral form of what a what-if runs over: the nodes of a
// cluster and the pods that come to it, without Kubernetes. Packages below read
// it from public traces or generate it.
package trace

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Never is the second at which pods end that do not.
const Never = math.MaxInt64

// Bounds of what a trace may have. Sums over all nodes or pods stay far from
// what a number can hold, and so does the memory that a trace takes.
const (
	MaxNodes = 100_000
	MaxPods  = 1_000_000
	// MaxCPU of a node or pod, in millicores: a million cores.
	MaxCPU = 1_000_000_000
	// MaxMemory of a node or pod, in bytes: a pebibyte.
	MaxMemory = 1 << 50
	// MaxGPU of a node or pod, in thousandths of a device: a thousand devices.
	MaxGPU = 1_000_000
	// MaxSecond is the last point in time, so that nanoseconds fit in 64 bits.
	MaxSecond = 1 << 32
	// MaxName is how long a name may be, in bytes.
	MaxName = 253
)

// Amounts are how much there is of each resource, at least 0.
type Amounts struct {
	CPU    int64 // millicores
	Memory int64 // bytes
	GPU    int64 // thousandths of a device
}

// IsZero reports whether there is nothing of anything.
func (a Amounts) IsZero() bool { return a == Amounts{} }

// Class is what a trace says about how a pod wants to be served.
type Class uint8

// The classes. What Kubernetes makes of a pod follows from its requests and
// limits; a class is a hint for those who make up what the trace leaves out.
const (
	// Unclassed: the trace does not say.
	Unclassed Class = iota
	// BestEffort pods take what is left.
	BestEffort
	// Burstable pods use more than they request when they can.
	Burstable
	// Guaranteed pods have what they request, and no more.
	Guaranteed
	// LatencySensitive pods serve someone who waits.
	LatencySensitive
)

// Node is a machine.
type Node struct {
	Name string
	// Capacity is what it has for pods.
	Capacity Amounts
	// GPUModel is which devices it has, empty if none or unknown.
	GPUModel string
	// Zone is where it stands, empty if unknown.
	Zone string
}

// Pod is something that wants to run.
type Pod struct {
	Name string
	// Group is what the pod belongs to with others of its kind: a deployment, a job.
	Group string
	// Request is what it asks for.
	Request Amounts
	// Limit is what it may use at most. HasLimit says whether the trace has it: if
	// so, an amount of 0 is no limit; if not, it has to be made up.
	Limit    Amounts
	HasLimit bool
	// Nominal is what the use of the pod is reckoned from where that is not its
	// request: best-effort pods request nothing and use something all the same.
	Nominal Amounts
	Class   Class
	// GPUModels are the devices it can run on, any if empty.
	GPUModels []string
	// Arrival is the second at which it comes; Start the second at which the trace
	// has it start, or Arrival where it never did; End the second at which it goes,
	// or Never. Arrival <= Start <= End.
	Arrival, Start, End int64
	// Node is where the trace has it run, empty if unknown. It says nothing about
	// where it has to run.
	Node string
}

// Runs returns for how many seconds the pod runs once it has started, or Never.
func (p *Pod) Runs() int64 {
	if p.End == Never {
		return Never
	}
	return p.End - p.Start
}

// UsedFrom returns the amounts that the use of the pod is reckoned from.
func (p *Pod) UsedFrom() Amounts {
	if p.Nominal.IsZero() {
		return p.Request
	}
	return p.Nominal
}

// Cluster is a whole trace.
type Cluster struct {
	Nodes []Node
	// Pods in the order of their arrival, those of one second in that of the trace.
	Pods []Pod
	// Assumed says what had to be supposed or generated, a sentence each.
	Assumed []string
	// Skipped counts what was left out, by reason.
	Skipped map[string]int
}

// Sort puts the pods in the order of their arrival.
func (c *Cluster) Sort() {
	slices.SortStableFunc(c.Pods, func(a, b Pod) int {
		switch {
		case a.Arrival < b.Arrival:
			return -1
		case a.Arrival > b.Arrival:
			return 1
		}
		return 0
	})
}

// Skip counts something that is left out.
func (c *Cluster) Skip(reason string) {
	if c.Skipped == nil {
		c.Skipped = map[string]int{}
	}
	c.Skipped[reason]++
}

// Rebase moves all times so that the first pod arrives at 0.
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

// Pack makes all pods arrive one after the other, so many to a second, and never
// end. A trace whose pods are few at any one time fills its cluster like this.
// perSecond is at least 1.
func (c *Cluster) Pack(perSecond int) {
	for i := range c.Pods {
		second := int64(i / perSecond)
		c.Pods[i].Arrival, c.Pods[i].Start, c.Pods[i].End = second, second, Never
	}
	c.Assumed = append(c.Assumed, fmt.Sprintf("all pods arrive one after the other, %d to a second, and do not end", perSecond))
}

// ValidName reports whether a name is one that a trace may have: up to MaxName
// letters, digits and any of . _ - = + /. Markup and control characters are not.
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
