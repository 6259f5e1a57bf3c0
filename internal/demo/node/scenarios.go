package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Scenario is a small cluster and a sequence of steps.
type Scenario struct {
	Name string
	// Shows is the outcome with the profile of the scenario in a few words.
	Shows string
	// Profile is the scheduler profile that is compared with the default one.
	Profile string
	Nodes   []demo.Node
	// Running are the pods that run from the start.
	Running []demo.Pod
	Steps   []scenarioStep
}

// scenarioStep is one step of a scenario. Exactly one field is set.
type scenarioStep struct {
	// Create is a pod that is created, and scheduled before the next step.
	Create *arrival
	// Delete is the name of a pod that is deleted.
	Delete string
	// Load is the load that the load source reports from now on.
	Load Measurements
	// StopLoad makes the load source fail from now on. The step ends when the last load is too old
	// to be used.
	StopLoad bool
}

// arrival is a pod that is created and the nodes it is expected on with the default profile and
// with the profile of the scenario.
type arrival struct {
	demo.Pod
	WantDefault, Want string
}

// Measurements are the load of nodes by name.
type Measurements map[string]load.Node

// create returns a step that creates a pod.
func create(pod demo.Pod, wantDefault, want string) scenarioStep {
	return scenarioStep{Create: &arrival{pod, wantDefault, want}}
}

// withLoad returns the load of a node. The memory load is the same on all nodes, so that CPU
// decides.
func withLoad(cpuMean, cpuStdDev float64) load.Node {
	return load.Node{
		CPU: load.Utilization{Mean: cpuMean, StdDev: cpuStdDev}, HasCPU: true,
		Memory: load.Utilization{Mean: 0.2, StdDev: 0.01}, HasMemory: true,
	}
}

// Scenarios are the scenarios of the demo. The comment on each explains the expected nodes.
var Scenarios = []Scenario{predicted, limits, allocatableLeast, allocatableChurn, allocatableMost, riskLimitsOnly, riskLoad}

// Names returns the names of the scenarios.
func Names() (names []string) {
	for i := range Scenarios {
		names = append(names, Scenarios[i].Name)
	}
	return names
}

// Find returns the scenario of this name, and whether there is one.
func Find(name string) (Scenario, bool) {
	i := slices.Index(Names(), name)
	if i < 0 {
		return Scenario{}, false
	}
	return Scenarios[i], true
}

// predicted: kube-scheduler counts 100 millicores for each pod without a request, so that busy looks empty and idle,
// whose pods request 6 of 8 CPUs, full. Measured, busy uses 6.4 CPUs and idle 0.8. Before the first reading the plugin
// expects pods to use their requests, as kube-scheduler does.
var predicted = Scenario{
	Name:    "predicted",
	Shows:   "once the load is read, the idle node, not the one that only looks empty",
	Profile: "plimsoll-scheduler",
	Nodes:   []demo.Node{{Name: "busy", CPU: "8"}, {Name: "idle", CPU: "8"}},
	Running: []demo.Pod{
		{Name: "pod1", Node: "busy"},
		{Name: "pod2", Node: "busy"},
		{Name: "pod3", Node: "busy"},
		{Name: "pod4", Node: "busy"},
		{Name: "pod5", Node: "idle", Request: "3"},
		{Name: "pod6", Node: "idle", Request: "3"},
	},
	Steps: []scenarioStep{
		{StopLoad: true},
		create(demo.Pod{Name: "before"}, "busy", "busy"),
		{Load: Measurements{"busy": withLoad(0.8, 0.1), "idle": withLoad(0.1, 0.02)}},
		create(demo.Pod{Name: "after"}, "busy", "idle"),
	},
}

// limits: node1 has lower requests (4 of 8 CPUs, node2 has 5), node2 has lower limits: with pod5
// they are 6+4+4 = 14 of 8 on node1 and 3+2+4 = 9 of 8 on node2.
var limits = Scenario{
	Name:    "limits",
	Shows:   "the node whose limits fit better, not the one with fewer requests",
	Profile: "plimsoll-limits",
	Nodes:   []demo.Node{{Name: "node1", CPU: "8"}, {Name: "node2", CPU: "8"}},
	Running: []demo.Pod{
		{Name: "pod1", Node: "node1", Request: "2", Limit: "6"},
		{Name: "pod2", Node: "node1", Request: "2", Limit: "4"},
		{Name: "pod3", Node: "node2", Request: "3", Limit: "3"},
		{Name: "pod4", Node: "node2", Request: "2", Limit: "2"},
	},
	Steps: []scenarioStep{create(demo.Pod{Name: "pod5", Request: "1", Limit: "4"}, "node1", "node2")},
}

// allocatableLeast: the default profile binds the small pods to the large node, which has the lower
// utilization. That leaves 200-5-5-100 = 90 CPUs, too few for the second large pod.
var allocatableLeast = Scenario{
	Name:    "allocatable-least",
	Shows:   "small pods fill the small node, so that both large pods fit",
	Profile: "plimsoll-allocatable-least",
	Nodes:   []demo.Node{{Name: "small", CPU: "10"}, {Name: "large", CPU: "200"}},
	Steps: []scenarioStep{
		create(demo.Pod{Name: "five-1", Request: "5"}, "large", "small"),
		create(demo.Pod{Name: "five-2", Request: "5"}, "large", "small"),
		create(demo.Pod{Name: "hundred-1", Request: "100"}, "large", "large"),
		create(demo.Pod{Name: "hundred-2", Request: "100"}, demo.Pending, "large"),
	},
}

// allocatableChurn: each node has 10 free CPUs. The default profile binds ten-2 to the large node,
// which has more free memory. When forty is deleted, 40 CPUs are free there: fifty-2 does not fit.
// With ten-2 on the small node, 10+40 CPUs are free on the large node.
var allocatableChurn = Scenario{
	Name:    "allocatable-churn",
	Shows:   "free capacity stays on one node while pods come and go",
	Profile: "plimsoll-allocatable-least",
	Nodes:   []demo.Node{{Name: "small", CPU: "20", Memory: "8Gi"}, {Name: "large", CPU: "100", Memory: "512Gi"}},
	Running: []demo.Pod{
		{Name: "ten-1", Node: "small", Request: "10"},
		{Name: "fifty-1", Node: "large", Request: "50"},
		{Name: "forty", Node: "large", Request: "40"},
	},
	Steps: []scenarioStep{
		create(demo.Pod{Name: "ten-2", Request: "10"}, "large", "small"),
		{Delete: "forty"},
		create(demo.Pod{Name: "fifty-2", Request: "50"}, demo.Pending, "large"),
	},
}

// allocatableMost: 56 of 64 CPUs are requested on the large node, a larger fraction than on a small
// node with the pod (2 of 4): the default profile selects one of the small nodes.
var allocatableMost = Scenario{
	Name:    "allocatable-most",
	Shows:   "pods fill the permanent node, so that spot nodes can be removed",
	Profile: "plimsoll-allocatable-most",
	Nodes:   []demo.Node{{Name: "permanent", CPU: "64"}, {Name: "spot-1", CPU: "4"}, {Name: "spot-2", CPU: "4"}},
	Running: []demo.Pod{{Name: "fifty-six", Node: "permanent", Request: "56"}},
	Steps: []scenarioStep{
		create(demo.Pod{Name: "two-1", Request: "2"}, demo.Any, "permanent"),
		create(demo.Pod{Name: "two-2", Request: "2"}, demo.Any, "permanent"),
		create(demo.Pod{Name: "two-3", Request: "2"}, demo.Any, "permanent"),
	},
}

// riskLimitsOnly: with the pod, both nodes have requests of 5 CPUs. The limits on eager are 14: the
// node can provide 3 of the 9 CPUs between requests and limits, a risk of 0.67. The limits on modest
// are 7, which the node can provide: a risk of 0.
var riskLimitsOnly = Scenario{
	Name:    "risk-limits-only",
	Shows:   "without load data, the node with the lower limits",
	Profile: "plimsoll-low-risk",
	Nodes:   []demo.Node{{Name: "eager", CPU: "8"}, {Name: "modest", CPU: "8"}},
	Running: []demo.Pod{
		{Name: "pod1", Node: "eager", Request: "4", Limit: "12"},
		{Name: "pod2", Node: "modest", Request: "4", Limit: "5"},
	},
	Steps: []scenarioStep{
		{StopLoad: true},
		create(demo.Pod{Name: "pod3", Request: "1", Limit: "2"}, demo.Any, "modest"),
	},
}

// riskLoad: at first both nodes have the same limit risk, and load decides. The first pod raises
// the limit risk of calm from 0.5 to 0.75 (requests 6, limits 14: the node can provide 2 of 8 CPUs).
// Fresh load would still favor calm for the second pod; without load only the limits count, and the
// pod is bound to hectic.
var riskLoad = Scenario{
	Name:    "risk-load",
	Shows:   "the node with the lower load, or without load data the lower limits",
	Profile: "plimsoll-low-risk",
	Nodes:   []demo.Node{{Name: "hectic", CPU: "8"}, {Name: "calm", CPU: "8"}},
	Running: []demo.Pod{
		{Name: "pod1", Node: "hectic", Request: "4", Limit: "8", MemoryRequest: "32Gi", MemoryLimit: "32Gi"},
		{Name: "pod2", Node: "calm", Request: "4", Limit: "8", MemoryRequest: "32Gi", MemoryLimit: "32Gi"},
	},
	Steps: []scenarioStep{
		{Load: Measurements{"hectic": withLoad(0.7, 0.2), "calm": withLoad(0.3, 0.05)}},
		create(demo.Pod{Name: "pod3", Request: "1", Limit: "3", MemoryRequest: "1Gi", MemoryLimit: "1Gi"}, demo.Any, "calm"),
		{StopLoad: true},
		create(demo.Pod{Name: "pod4", Request: "1", Limit: "3", MemoryRequest: "1Gi", MemoryLimit: "1Gi"}, demo.Any, "hectic"),
	},
}

// playground is the cluster that remains after the scenarios, for users to add pods to. A pod without requests shows the
// difference between profiles: by requests small-2 has most free capacity, by limits and by load medium-2.
var playground = Scenario{
	Name: "playground",
	Nodes: []demo.Node{
		{Name: "small-1", CPU: "4", Memory: "16Gi"},
		{Name: "small-2", CPU: "4", Memory: "16Gi"},
		{Name: "medium-1", CPU: "8", Memory: "32Gi"},
		{Name: "medium-2", CPU: "8", Memory: "32Gi"},
		{Name: "large-1", CPU: "32", Memory: "128Gi"},
		{Name: "large-2", CPU: "32", Memory: "128Gi"},
	},
	Running: []demo.Pod{
		{Name: "web-1", Node: "medium-1", Request: "2", Limit: "8", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "web-2", Node: "medium-1", Request: "1", Limit: "6", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "web-3", Node: "medium-2", Request: "2", Limit: "3", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "batch-1", Node: "large-1", Request: "12", Limit: "12", MemoryRequest: "32Gi", MemoryLimit: "32Gi"},
		{Name: "batch-2", Node: "large-2", Request: "12", Limit: "12", MemoryRequest: "32Gi", MemoryLimit: "32Gi"},
		{Name: "cache-1", Node: "small-1", Request: "1", Limit: "1", MemoryRequest: "8Gi", MemoryLimit: "8Gi"},
		{Name: "report-1", Node: "small-2", Request: "250m", Limit: "8", MemoryRequest: "1Gi", MemoryLimit: "4Gi"},
	},
}

var playgroundLoad = Measurements{
	"small-1": withLoad(0.2, 0.02), "small-2": withLoad(0.85, 0.05),
	"medium-1": withLoad(0.7, 0.15), "medium-2": withLoad(0.1, 0.02),
	"large-1": withLoad(0.6, 0.2), "large-2": withLoad(0.55, 0.1),
}

// playgroundPods returns the pods of the playground in the order of their names: snapshots have pods that were created in
// the same second in this order. Scheduled again by requests, the logs, which request nothing, overload a smaller node, and
// with Plimsoll none.
func playgroundPods() []demo.Pod {
	pods := slices.Clone(playground.Running)
	for i := range 24 {
		job := demo.Pod{Name: fmt.Sprintf("job-%02d", i+1), Node: fmt.Sprintf("large-%d", 1+i%2)}
		job.Request, job.Limit, job.MemoryRequest, job.MemoryLimit = "1", "4", "1Gi", "1Gi"
		pods = append(pods, job)
	}
	for i, node := range []string{"large-1", "large-2", "small-2", "small-2"} {
		pods = append(pods, demo.Pod{Name: fmt.Sprintf("log-%d", i+1), Node: node})
	}
	slices.SortFunc(pods, func(a, b demo.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// Play adds the playground to the cluster.
func (d *Demo) Play(ctx context.Context) error {
	s := playground
	s.Running = playgroundPods()
	_, err := d.run(ctx, s, s.Profile)
	if err == nil {
		err = d.load.Set(ctx, playgroundLoad)
	}
	if err != nil {
		return fmt.Errorf("setting up the playground: %w", err)
	}
	return nil
}
