package result

// TimeSeries records a run over time.
type TimeSeries struct {
	// EverySeconds is the interval between points. Point i is the mean over the steps
	// from i*EverySeconds up to the next point.
	EverySeconds int64 `json:"everySeconds"`
	// OverloadedNodes counts the nodes that were short of CPU or memory.
	OverloadedNodes []float64 `json:"overloadedNodes"`
	// HighestLoads is what the pods of a node demand within their limits as a fraction of its allocatable amount, of CPU or memory,
	// whichever is higher, on the node with the highest load.
	HighestLoads []float64 `json:"highestLoads"`
	// OvercommittedNodes counts the nodes with pods whose limits exceed the node's CPU
	// or memory.
	OvercommittedNodes []float64 `json:"overcommittedNodes"`
	// PendingPods counts the pods that waited for a node.
	PendingPods []float64 `json:"pendingPods"`
	// NodesUsed counts the nodes with pods.
	NodesUsed []float64 `json:"nodesUsed"`
	// Nodes counts all nodes, if there is an autoscaler. SlackKept is the fraction of
	// the target slack that is available, if there is a slack policy.
	Nodes     []float64 `json:"nodesThere,omitempty"`
	SlackKept []float64 `json:"slackKept,omitempty"`
	// MeanRisks and HighestRisks are the risk of the nodes with pods, in [0, 1], as
	// LowRiskOverCommitment computes it with default arguments, without a pending pod
	// and with the load measured so far. Value i is at i*RiskEverySeconds.
	RiskEverySeconds int64     `json:"riskEverySeconds"`
	MeanRisks        []float64 `json:"meanRisks"`
	HighestRisks     []float64 `json:"highestRisks"`
}
