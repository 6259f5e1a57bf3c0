package result

// Course is how a run went: what it looked like over time, and where its nodes
// stood.
type Course struct {
	// EverySeconds is how far apart the points are. Point i is the mean over the
	// steps from i times that on, up to the next point.
	EverySeconds int64 `json:"everySeconds"`
	// OverloadedNodes is how many nodes were short of CPU or memory.
	OverloadedNodes []float64 `json:"overloadedNodes"`
	// OvercommittedNodes is how many nodes had pods whose limits are more than the
	// node has, of CPU or of memory: what may come to overload.
	OvercommittedNodes []float64 `json:"overcommittedNodes"`
	// PendingPods is how many pods waited for a node.
	PendingPods []float64 `json:"pendingPods"`
	// NodesUsed is how many nodes had pods.
	NodesUsed []float64 `json:"nodesUsed"`
	// NodesThere is how many nodes there were, if an autoscaler makes them; SlackKept
	// what part of the slack that it is to hold was there, if it holds any.
	NodesThere []float64 `json:"nodesThere,omitempty"`
	SlackKept  []float64 `json:"slackKept,omitempty"`
	// CPULimitRatios and MemoryLimitRatios are of each node that had pods the limits
	// over what it has, the mean over the time it had them, the highest first.
	CPULimitRatios    []float64 `json:"cpuLimitRatios"`
	MemoryLimitRatios []float64 `json:"memoryLimitRatios"`
	// MeanRisks and HighestRisks are the risk of the nodes that had pods, in [0, 1],
	// as LowRiskOverCommitment with its default arguments reckons it, without another
	// pod and with load up to that instant: the risk of limits and, once load has been
	// measured, that of load. Value i is of i times RiskEverySeconds.
	RiskEverySeconds int64     `json:"riskEverySeconds"`
	MeanRisks        []float64 `json:"meanRisks"`
	HighestRisks     []float64 `json:"highestRisks"`
}
