package result

// NodeUse is what the nodes of a run used in the steps in which they had pods, and
// how near that comes to the beta distributions that LowRiskOverCommitment takes
// it for.
type NodeUse struct {
	CPU    ResourceUse `json:"cpu"`
	Memory ResourceUse `json:"memory"`
}

// ResourceUse is the use of one resource, as fractions of what nodes have for pods.
type ResourceUse struct {
	// Means, Deviations and Distances are of each node that had pods, in the order
	// of the input: mean and standard deviation over its steps, and how far its
	// values are from the beta distribution of that mean and deviation (the largest
	// difference of the two cumulative distributions, in [0, 1]).
	Means      []float64 `json:"means"`
	Deviations []float64 `json:"deviations"`
	Distances  []float64 `json:"distances"`
	// Distance is the distribution of these distances over nodes.
	Distance Distribution `json:"distance"`
	// Telling are nodes that are worth a look.
	Telling []TellingNode `json:"telling"`
}

// Why a node is worth a look.
const (
	TypicalNode = "typical"      // of the nodes the one of median mean
	BusiestNode = "busiest"      // of the highest mean
	VaryingNode = "most varying" // of the highest deviation
	UnlikeNode  = "least like a beta"
)

// UseBins is how many bins of equal width the histograms of use have.
const UseBins = 20

// TellingNode is the use of one node.
type TellingNode struct {
	Node string `json:"node"`
	// Why it is shown, one or more of the constants.
	Why []string `json:"why"`
	// Steps is how many values there are.
	Steps     int     `json:"steps"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
	Distance  float64 `json:"distance"`
	// Alpha and Beta of the beta distribution, both 0 if use does not vary, or
	// varies as much as it can.
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
	// Observed are the parts of the values in each bin from 0 to 1, Fitted what the
	// distribution says.
	Observed []float64 `json:"observed"`
	Fitted   []float64 `json:"fitted"`
}
