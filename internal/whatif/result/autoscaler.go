package result

// Autoscaler describes the simulated autoscaler.
type Autoscaler struct {
	// Groups are the complete specifications of the node groups, in the syntax of
	// --autoscaler.
	Groups []string `json:"groups"`
	// Priced is set if the groups have a cost. Otherwise each node costs 1 per hour.
	Priced bool `json:"priced"`
}

// Scaling is the result of an autoscaler in a run.
type Scaling struct {
	// Cost and NodeHours of all nodes, including the time to boot.
	Cost      float64 `json:"cost"`
	NodeHours float64 `json:"nodeHours"`
	// ScaleUps counts the passes that added nodes. NodesPeak is the highest number of
	// nodes at any time.
	ScaleUps     int `json:"scaleUps"`
	NodesAdded   int `json:"nodesAdded"`
	NodesRemoved int `json:"nodesRemoved"`
	NodesPeak    int `json:"nodesPeak"`
	// Slack is nil without a policy.
	Slack *SlackKept `json:"slack,omitempty"`
}

// SlackKept is the fraction of the target slack that was available, in [0, 1]: the smaller fraction
// of CPU and memory.
type SlackKept struct {
	// Mean is over the time with a target. Min is since the target was first reached, 0 if the
	// target was never reached.
	Mean float64 `json:"mean"`
	Min  float64 `json:"least"`
}

// After returns what was done after the given parts, whose passes and nodes s has, too. How much slack was kept is not known of parts.
func (s *Scaling) After(parts []*Scaling) *Scaling {
	out := *s
	out.Slack = nil
	if n := len(parts); n > 0 {
		out.ScaleUps -= parts[n-1].ScaleUps
		out.NodesAdded -= parts[n-1].NodesAdded
		out.NodesRemoved -= parts[n-1].NodesRemoved
	}
	return &out
}

// slackKept returns the available slack, 0 without a policy.
func (r *Run) slackKept() SlackKept {
	if r.Scaling.Slack == nil {
		return SlackKept{}
	}
	return *r.Scaling.Slack
}
