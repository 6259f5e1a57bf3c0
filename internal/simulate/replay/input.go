// Package replay runs a cluster through time on a virtual clock: pods come and
// go, the real scheduler places them by load that is late and smoothed, and what
// comes of it is measured on what the pods truly use, which the scheduler never
// sees. Hours take seconds, and the same input gives the same outcome.
//
// Time is in whole seconds from the start of the run. At one second things happen
// in this order: pods end, nodes come up, readings of load arrive, pods that wait
// are tried again if anything has become free for them, pods arrive, an autoscaler
// adds and removes nodes, and at the end of that use is looked at.
package replay

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/outcome"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// Epoch is the instant at which every run starts.
var Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Input is what a run is about.
type Input struct {
	// Nodes in the order in which the scheduler is told of them.
	Nodes []Node
	// Pods that have a node run from the start. The others come in the order of
	// their arrival.
	Pods []Pod
	// Others are what pods refer to: claims, volumes, classes, namespaces.
	Others []runtime.Object
	// Workloads are what pods belong to; some want slack of their own.
	Workloads []runtime.Object
	// Assumed says what had to be supposed or generated, a sentence each.
	Assumed []string
}

// Node is a machine.
type Node struct {
	Object *v1.Node
	// Boot is when it comes up, 0 for a node that is there from the start.
	Boot int64
}

// Pod is something that wants to run.
type Pod struct {
	Object *v1.Pod
	// Group is a number that pods of one kind share.
	Group uint64
	// Wants is what the pod requests and may use at most, as the outcome is reckoned
	// with it. What it uses is added at every step.
	Wants outcome.Pod
	// CPU and Memory are what its use is a multiple of, in millicores and bytes.
	CPU, Memory float64
	// Shape is a number that pods share that ask the same of a node, and ask for
	// nothing but what nodes have and have free: if one of them fits nowhere, none
	// does. It is 0 for a pod of which that cannot be said.
	Shape int
	// Needs is what a pod with a shape requests.
	Needs trace.Amounts
	// Arrival is when it comes; Runs how long it runs, or trace.Never.
	Arrival, Runs int64
}
