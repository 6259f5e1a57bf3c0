package result

// Reasons why the decision on a pod is recorded. Which pods are spread and large depends on the
// input alone, so that all profiles record the same pods.
const (
	SpreadPod = "spread" // evenly spaced over the arrivals
	LargePod  = "large"  // highest requests relative to the largest node
	WaitedPod = "waited" // among the first pods that did not fit on arrival
)

// Decision records where a pod was scheduled, and why.
type Decision struct {
	// Arrival is the ordinal number of the pod's arrival, from 1.
	Arrival int `json:"arrival"`
	// Selection is the reason why the decision is recorded.
	Selection string `json:"why"`
	// Pod is the namespace and name.
	Pod string `json:"pod"`
	// Requests and limits in millicores and bytes, 0 if there are none.
	CPURequest    float64 `json:"cpuRequest"`
	CPULimit      float64 `json:"cpuLimit"`
	MemoryRequest float64 `json:"memoryRequest"`
	MemoryLimit   float64 `json:"memoryLimit"`
	// ArrivedSecond is when the pod arrived; WaitedSeconds is the time until it was
	// placed, or until the end of the run.
	ArrivedSecond int64 `json:"arrivedSecond"`
	WaitedSeconds int64 `json:"waitedSeconds"`
	// Node is where it was placed, empty if nowhere.
	Node string `json:"node"`
	// AttemptSecond is when the scores and reasons were recorded: when the pod was
	// placed or, for a pod that was not placed or was attempted too often, at its last
	// recorded attempt.
	AttemptSecond int64 `json:"triedSecond"`
	// Nodes is the number of nodes, Feasible the number of nodes that the pod fits on. Reasons has
	// the reasons against the remaining nodes.
	Nodes    int           `json:"nodes"`
	Feasible int           `json:"feasible"`
	Reasons  []NodesReason `json:"reasons"`
	// Scores of the selected node, first, and of the best other nodes. All feasible nodes are
	// scored here; kube-scheduler itself scores only a sample of many nodes, so that a node with a
	// higher score may not have been selected.
	Scores []NodeScore `json:"scores"`
}

// NodesReason counts the nodes that were rejected for one reason.
type NodesReason struct {
	// Filter is the plugin that rejected the nodes.
	Filter string `json:"filter"`
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// NodeScore is the score of a node for a pod.
type NodeScore struct {
	Node string `json:"node"`
	// Total is the sum over the plugins of score x weight.
	Total   int64         `json:"total"`
	Plugins []PluginScore `json:"plugins"`
}

// PluginScore is a plugin's score of a node: Raw before normalization, Score after
// it in [0, 100], and the plugin's weight.
type PluginScore struct {
	Name   string `json:"name"`
	Raw    int64  `json:"raw"`
	Score  int64  `json:"score"`
	Weight int64  `json:"weight"`
}
