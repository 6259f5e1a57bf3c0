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

// slackKept returns the available slack, 0 without a policy.
func (r *Run) slackKept() SlackKept {
	if r.Scaling.Slack == nil {
		return SlackKept{}
	}
	return *r.Scaling.Slack
}

// FrontierPoint relates the cost of a profile with slack to how long pods wait.
type FrontierPoint struct {
	// Name of the profile, and its slack as specified.
	Name, Slack string
	// Cost of the nodes, and the mean of the seconds that pods were pending: means
	// over seeds, with intervals if there are at least two.
	Cost, Pending                 float64
	CostInterval, PendingInterval *Interval
	// PendingP95 is the 95th percentile of the seconds that pods were pending, and
	// SlackKept the mean fraction of slack that was available: means over seeds.
	PendingP95, SlackKept float64
}

// Frontier returns a point for each profile with slack, in their order; nil if there are fewer than
// two. Interrupted runs count only if a profile has no complete runs.
func (s *Scenario) Frontier() []FrontierPoint {
	var points []FrontierPoint
	for i := range s.Profiles {
		p := &s.Profiles[i]
		runs := p.countedRuns()
		if p.Slack == "" || len(runs) == 0 || runs[0].Scaling == nil {
			continue
		}
		point := FrontierPoint{
			Name: p.Name, Slack: p.Slack,
			PendingP95: mean(valuesOf(runs, func(r *Run) float64 { return r.PendingSeconds.P95 })),
			SlackKept:  mean(valuesOf(runs, func(r *Run) float64 { return r.slackKept().Mean })),
		}
		point.Cost, point.CostInterval = meanInterval(valuesOf(runs, func(r *Run) float64 { return r.Scaling.Cost }))
		point.Pending, point.PendingInterval = meanInterval(valuesOf(runs, func(r *Run) float64 { return r.PendingSeconds.Mean }))
		points = append(points, point)
	}
	if len(points) < 2 {
		return nil
	}
	return points
}
