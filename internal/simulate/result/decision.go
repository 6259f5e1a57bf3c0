package result

// Why a pod's decision is kept. Which pods are spread and large depends on the
// input alone, so that all profiles have the same ones.
const (
	SpreadPod = "spread" // evenly over the arrivals
	LargePod  = "large"  // the most that any asks of the largest node
	WaitedPod = "waited" // one of the first that fitted no node when they came
)

// Decision is where a pod went, and why.
type Decision struct {
	// Arrival is the pod's number in the order in which they came, from 1.
	Arrival int    `json:"arrival"`
	Why     string `json:"why"`
	// Pod is its namespace and name.
	Pod string `json:"pod"`
	// What it requests and may use at most, in millicores and bytes; 0 for nothing
	// requested and for no limit.
	CPURequest    float64 `json:"cpuRequest"`
	CPULimit      float64 `json:"cpuLimit"`
	MemoryRequest float64 `json:"memoryRequest"`
	MemoryLimit   float64 `json:"memoryLimit"`
	// ArrivedSecond is when it came, WaitedSeconds for how long it waited then: until
	// it found a node, or until the run ended.
	ArrivedSecond int64 `json:"arrivedSecond"`
	WaitedSeconds int64 `json:"waitedSeconds"`
	// Node is where it went, empty if nowhere.
	Node string `json:"node"`
	// TriedSecond is the second at which the cluster was as the rest says: when the pod
	// found its node or, if it found none or had waited through too many trials by
	// then, when it was tried for the last time that was looked at.
	TriedSecond int64 `json:"triedSecond"`
	// Feasible is how many of the Nodes the pod fitted, Reasons why not the others.
	Nodes    int           `json:"nodes"`
	Feasible int           `json:"feasible"`
	Reasons  []NodesReason `json:"reasons"`
	// Scores are those of the node it went to, first, and of the best others. They
	// are over all nodes that it fitted; kube-scheduler itself scores only some of
	// many nodes, so that a better one may be among the others.
	Scores []NodeScore `json:"scores"`
}

// NodesReason is why a pod does not fit some nodes.
type NodesReason struct {
	// Filter is the plugin that says so.
	Filter string `json:"filter"`
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// NodeScore is how a node scored for a pod.
type NodeScore struct {
	Node string `json:"node"`
	// Total is the sum over the plugins of score times weight.
	Total   int64         `json:"total"`
	Plugins []PluginScore `json:"plugins"`
}

// PluginScore is what one plugin says of a node: Raw before it is normalised, Score
// after, in [0, 100], and the plugin's weight.
type PluginScore struct {
	Name   string `json:"name"`
	Raw    int64  `json:"raw"`
	Score  int64  `json:"score"`
	Weight int64  `json:"weight"`
}
