package result

// NodeUse is what the nodes of a run used in the steps in which they had pods, and
// how well the beta distributions of LowRiskOverCommitment fit it.
type NodeUse struct {
	CPU    ResourceUse `json:"cpu"`
	Memory ResourceUse `json:"memory"`
}

// ResourceUse is the use of one resource, as fractions of allocatable.
type ResourceUse struct {
	// Means, Deviations and Distances have a value for each node with pods, in the
	// order of the input: mean and standard deviation over its steps, and the
	// Kolmogorov distance of its values from the fitted beta distribution, in [0, 1].
	Means      []float64 `json:"means"`
	Deviations []float64 `json:"deviations"`
	Distances  []float64 `json:"distances"`
	// Distance summarizes the distances over nodes.
	Distance Distribution `json:"distance"`
	// Notable are nodes with histograms.
	Notable []NotableNode `json:"telling"`
}

// Reasons why a node is notable.
const (
	TypicalNode      = "typical"           // median mean
	BusiestNode      = "busiest"           // highest mean
	MostVariableNode = "most varying"      // highest deviation
	WorstFitNode     = "least like a beta" // highest distance
)

// UseBins is the number of bins of equal width in histograms of use.
const UseBins = 20

// NotableNode is the use of one node.
type NotableNode struct {
	Node string `json:"node"`
	// Reasons has one or more of the constants.
	Reasons []string `json:"why"`
	// Steps is the number of values.
	Steps     int     `json:"steps"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
	Distance  float64 `json:"distance"`
	// Alpha and Beta of the fitted distribution, both 0 if the use does not vary or
	// varies as much as possible.
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
	// Observed is the fraction of values in each bin from 0 to 1, Fitted that of the
	// distribution.
	Observed []float64 `json:"observed"`
	Fitted   []float64 `json:"fitted"`
}
