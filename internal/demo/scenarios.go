package demo

import (
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// What is expected of a pod, where it is not the name of a node.
const (
	// Pending: the pod fits nowhere.
	Pending = "pending"
	// Any: the pod is bound, it does not matter or is left to chance where.
	Any = "any"
)

// DefaultProfile is the profile that every scenario is also run with.
const DefaultProfile = "default-scheduler"

// Scenario is a small cluster and what happens in it.
type Scenario struct {
	Name string
	// Shows says in a sentence what is to be seen.
	Shows string
	// Profile of ours that it is about.
	Profile string
	Nodes   []Node
	// Running pods are there from the start.
	Running []Pod
	Steps   []Step
}

// NeedsService reports whether the scenario is about the messages of a
// load-watcher service, so that no other source of load can play it.
func (s Scenario) NeedsService() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Load != nil && step.Load.Message != "" })
}

// Node is a simulated node; memory is 64Gi if left out.
type Node struct {
	Name, CPU, Memory string
}

// Pod is a pod of one container. Amounts left out are not declared.
type Pod struct {
	Name string
	// Node that a running pod is on.
	Node                       string
	Request, Limit             string // CPU
	MemoryRequest, MemoryLimit string
}

// Step is one thing that happens; one of the fields is set.
type Step struct {
	// Arrives: a pod is created, and scheduled before the next step.
	Arrives *Arrival
	// Ends is the name of a pod that is deleted.
	Ends string
	// Load is what the load watcher says from now on.
	Load *Feed
	// LoadStops: the load watcher fails from now on, and what it said last
	// becomes too old to count.
	LoadStops bool
}

// Arrival is a pod and where it is expected to go.
type Arrival struct {
	Pod
	WantDefault, Want string
}

// Feed is what the load watcher says: utilization by node, or a message as it
// is sent.
type Feed struct {
	Nodes map[string]load.Node
	// Message has %d in place of the time.
	Message string
}

func arrives(pod Pod, wantDefault, want string) Step {
	return Step{Arrives: &Arrival{pod, wantDefault, want}}
}

// busy is a load with the same memory everywhere, so that CPU decides.
func busy(cpuMean, cpuDeviation float64) load.Node {
	return load.Node{
		CPU: load.Utilization{Mean: cpuMean, StdDev: cpuDeviation}, HasCPU: true,
		Memory: load.Utilization{Mean: 0.2, StdDev: 0.01}, HasMemory: true,
	}
}

// maxLoadAge is that of the demo's profile.
const maxLoadAge = 2 * time.Second

// Scenarios are what the demo shows, and what the integration tests make sure
// of. Why the pods go where they do is worked out above them.
var Scenarios = []Scenario{limits, allocatableLeast, allocatableChurn, allocatableMost, riskLimitsOnly, riskLoad, riskBadFeed}

// By requests node1 has more room (4 of 8 taken, 5 on node2). By limits node2
// has: with pod5, node1 comes to 6+4+4 = 14 of 8, node2 to 3+2+4 = 9 of 8.
var limits = Scenario{
	Name:    "limits",
	Shows:   "the default sends the pod where limits already exceed the node; NodeResourcesLimits does not",
	Profile: "plimsoll-limits",
	Nodes:   []Node{{Name: "node1", CPU: "8"}, {Name: "node2", CPU: "8"}},
	Running: []Pod{
		{Name: "pod1", Node: "node1", Request: "2", Limit: "6"},
		{Name: "pod2", Node: "node1", Request: "2", Limit: "4"},
		{Name: "pod3", Node: "node2", Request: "3", Limit: "3"},
		{Name: "pod4", Node: "node2", Request: "2", Limit: "2"},
	},
	Steps: []Step{arrives(Pod{Name: "pod5", Request: "1", Limit: "4"}, "node1", "node2")},
}

// The default takes the small pods to the large node, which is emptier in
// percent: 200-5-5-100 = 90 are left, too little for the second large pod.
var allocatableLeast = Scenario{
	Name:    "allocatable-least",
	Shows:   "small pods go to the small node, so that both large pods find room",
	Profile: "plimsoll-allocatable-least",
	Nodes:   []Node{{Name: "small", CPU: "10"}, {Name: "large", CPU: "200"}},
	Steps: []Step{
		arrives(Pod{Name: "five-1", Request: "5"}, "large", "small"),
		arrives(Pod{Name: "five-2", Request: "5"}, "large", "small"),
		arrives(Pod{Name: "hundred-1", Request: "100"}, "large", "large"),
		arrives(Pod{Name: "hundred-2", Request: "100"}, Pending, "large"),
	},
}

// Ten are free on each node. The default takes the ten on the large node,
// because more of its memory is free; when its 40 end there are 40 free, and 50
// do not fit. On the small node the ten leave the large one its 10, and 10+40
// take the 50.
var allocatableChurn = Scenario{
	Name:    "allocatable-churn",
	Shows:   "room on the large node is kept whole while pods come and go",
	Profile: "plimsoll-allocatable-least",
	Nodes:   []Node{{Name: "small", CPU: "20", Memory: "8Gi"}, {Name: "large", CPU: "100", Memory: "512Gi"}},
	Running: []Pod{
		{Name: "ten-1", Node: "small", Request: "10"},
		{Name: "fifty-1", Node: "large", Request: "50"},
		{Name: "forty", Node: "large", Request: "40"},
	},
	Steps: []Step{
		arrives(Pod{Name: "ten-2", Request: "10"}, "large", "small"),
		{Ends: "forty"},
		arrives(Pod{Name: "fifty-2", Request: "50"}, Pending, "large"),
	},
}

// The large node has 56 of 64 taken, more in percent than a small one would
// with the pod (2 of 4): the default goes to the small ones, either of them.
var allocatableMost = Scenario{
	Name:    "allocatable-most",
	Shows:   "pods gather on the large permanent node, the small ones stay empty and can be given back",
	Profile: "plimsoll-allocatable-most",
	Nodes:   []Node{{Name: "permanent", CPU: "64"}, {Name: "spot-1", CPU: "4"}, {Name: "spot-2", CPU: "4"}},
	Running: []Pod{{Name: "fifty-six", Node: "permanent", Request: "56"}},
	Steps: []Step{
		arrives(Pod{Name: "two-1", Request: "2"}, Any, "permanent"),
		arrives(Pod{Name: "two-2", Request: "2"}, Any, "permanent"),
		arrives(Pod{Name: "two-3", Request: "2"}, Any, "permanent"),
	},
}

// With the pod, both have requests of 5. On eager limits come to 14: 3 can be
// had of the 9 promised beyond the requests, a risk of 0.67. On modest they come
// to 7, all of which can be had: no risk.
var riskLimitsOnly = Scenario{
	Name:    "risk-limits-only",
	Shows:   "same requests, no load data: the node with less promised beyond them wins",
	Profile: "plimsoll-low-risk",
	Nodes:   []Node{{Name: "eager", CPU: "8"}, {Name: "modest", CPU: "8"}},
	Running: []Pod{
		{Name: "pod1", Node: "eager", Request: "4", Limit: "12"},
		{Name: "pod2", Node: "modest", Request: "4", Limit: "5"},
	},
	Steps: []Step{
		{LoadStops: true},
		arrives(Pod{Name: "pod3", Request: "1", Limit: "2"}, Any, "modest"),
	},
}

// Both have the same limit risk at first, and load decides. The first pod
// raises the limit risk of calm from 0.5 to 0.75 (requests 6, limits 14: 2 can
// be had of 8). Fresh load would still send the second one there; without load
// only limits are judged, and it goes to the other.
var riskLoad = Scenario{
	Name:    "risk-load",
	Shows:   "same requests and limits: the calmer node wins while its load is known",
	Profile: "plimsoll-low-risk",
	Nodes:   []Node{{Name: "hectic", CPU: "8"}, {Name: "calm", CPU: "8"}},
	Running: []Pod{
		{Name: "pod1", Node: "hectic", Request: "4", Limit: "8", MemoryRequest: "32Gi", MemoryLimit: "32Gi"},
		{Name: "pod2", Node: "calm", Request: "4", Limit: "8", MemoryRequest: "32Gi", MemoryLimit: "32Gi"},
	},
	Steps: []Step{
		{Load: &Feed{Nodes: map[string]load.Node{"hectic": busy(0.7, 0.2), "calm": busy(0.3, 0.05)}}},
		arrives(Pod{Name: "pod3", Request: "1", Limit: "3", MemoryRequest: "1Gi", MemoryLimit: "1Gi"}, Any, "calm"),
		{LoadStops: true},
		arrives(Pod{Name: "pod4", Request: "1", Limit: "3", MemoryRequest: "1Gi", MemoryLimit: "1Gi"}, Any, "hectic"),
	},
}

// feedOf returns a message in which node a has these CPU metrics and node b is
// a little busy.
func feedOf(metrics string) *Feed {
	return &Feed{Message: `{"timestamp":%d,"window":{"duration":"15m"},"source":"demo","data":{"NodeMetricsMap":{
		"a":{"metrics":[` + metrics + `]},
		"b":{"metrics":[{"type":"CPU","operator":"AVG","value":20},{"type":"CPU","operator":"STD","value":1}]}}}}`}
}

// What can be made sense of still counts: a latest value alone is a mean, and
// over 100 is 100. What cannot is left out, and the node is judged by limits.
var riskBadFeed = Scenario{
	Name:    "risk-bad-feed",
	Shows:   "a feed with odd values is survived, and used as far as it makes sense",
	Profile: "plimsoll-low-risk",
	Nodes:   []Node{{Name: "a", CPU: "64"}, {Name: "b", CPU: "64"}},
	Running: []Pod{
		{Name: "pod1", Node: "a", Request: "32", Limit: "64"},
		{Name: "pod2", Node: "b", Request: "32", Limit: "64"},
	},
	Steps: []Step{
		{Load: feedOf(`{"type":"CPU","operator":"Latest","value":90}`)},
		arrives(Pod{Name: "latest-only", Request: "100m", Limit: "100m"}, Any, "b"),
		{Load: feedOf(`{"type":"CPU","operator":"AVG","value":250},{"type":"CPU","operator":"STD","value":2}`)},
		arrives(Pod{Name: "over-100", Request: "100m", Limit: "100m"}, Any, "b"),
		{Load: feedOf(`{"type":"CPU","operator":"AVG","value":NaN},{"type":"CPU","operator":"STD","value":NaN}`)},
		arrives(Pod{Name: "not-a-number", Request: "100m", Limit: "100m"}, Any, Any),
		{Load: feedOf(`{"type":"CPU","operator":"AVG","value":-5},{"type":"CPU","operator":"STD","value":-1}`)},
		arrives(Pod{Name: "negative", Request: "100m", Limit: "100m"}, Any, Any),
	},
}
