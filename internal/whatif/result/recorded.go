package result

// Recorded has the additional results of a run over a recording.
type Recorded struct {
	// CPULoad and MemoryLoad are the distributions, over all nodes and steps, of the usage of pods, as
	// fractions of allocatable. Quantiles are exact to 0.001.
	CPULoad    Distribution `json:"cpuLoad"`
	MemoryLoad Distribution `json:"memoryLoad"`
	// Placements counts the pods that the scheduler placed.
	Placements Placements `json:"placements"`
}

// Placements compares the first node of pods with the node on which they were recorded.
type Placements struct {
	Same  int `json:"same"`
	Other int `json:"other"`
	// NeverScheduled counts pods that had no node in the recording.
	NeverScheduled int `json:"neverScheduled"`
}
