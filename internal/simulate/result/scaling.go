package result

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/bootstrap"
)

// Autoscaler is what added and removed nodes.
type Autoscaler struct {
	// Groups of nodes, as --autoscaler has them, in full.
	Groups []string `json:"groups"`
	// Priced: groups say what their nodes cost. If none does, each node costs 1 an
	// hour.
	Priced bool `json:"priced"`
}

// Scaling is what an autoscaler did in a run.
type Scaling struct {
	// Cost of the nodes and NodeHours of them, each from when it was made on, the
	// time that it boots among it. Unpriced is how many nodes of the input have no
	// price that is known: they cost nothing here.
	Cost      float64 `json:"cost"`
	NodeHours float64 `json:"nodeHours"`
	Unpriced  int     `json:"unpriced,omitempty"`
	// ScaleUps is how often nodes were added, NodesAdded how many, NodesRemoved how
	// many were taken away, NodesPeak how many there were at most.
	ScaleUps     int `json:"scaleUps"`
	NodesAdded   int `json:"nodesAdded"`
	NodesRemoved int `json:"nodesRemoved"`
	NodesPeak    int `json:"nodesPeak"`
	// Slack is not there without a policy.
	Slack *Slack `json:"slack,omitempty"`
}

// Slack is what part of the slack that was wanted was there: the mean over time,
// and the least from when all of it was there for the first time.
type Slack struct {
	Mean  float64 `json:"mean"`
	Least float64 `json:"least"`
}

// ofScaling are the figures that runs have with an autoscaler.
var ofScaling = []Named{
	{"cost", "cost of nodes", func(r *Run) float64 { return r.Scaling.Cost }},
	{"nodeHours", "node hours", func(r *Run) float64 { return r.Scaling.NodeHours }},
	{"scaleUps", "scale-ups", func(r *Run) float64 { return float64(r.Scaling.ScaleUps) }},
	{"nodesAdded", "nodes added", func(r *Run) float64 { return float64(r.Scaling.NodesAdded) }},
	{"nodesRemoved", "nodes removed", func(r *Run) float64 { return float64(r.Scaling.NodesRemoved) }},
	{"nodesPeak", "nodes there, most", func(r *Run) float64 { return float64(r.Scaling.NodesPeak) }},
	{"slackKept", "slack kept, mean part", func(r *Run) float64 { return r.kept().Mean }},
	{"slackKeptLeast", "slack kept, least part", func(r *Run) float64 { return r.kept().Least }},
}

// AllFigures are those that any run may have.
func AllFigures() []Named { return slices.Concat(Figures, ofScaling) }

// kept returns what of the slack was there, none if there was no policy.
func (r *Run) kept() Slack {
	if r.Scaling.Slack == nil {
		return Slack{}
	}
	return *r.Scaling.Slack
}

// Shown returns the figures that the runs of a scenario have, in the order in which
// they are shown.
func (s *Scenario) Shown() []Named {
	scaled, slack := false, false
	for i := range s.Profiles {
		for j := range s.Profiles[i].Runs {
			scaling := s.Profiles[i].Runs[j].Scaling
			scaled = scaled || scaling != nil
			slack = slack || scaling != nil && scaling.Slack != nil
		}
	}
	switch {
	case slack:
		return AllFigures()
	case scaled:
		return slices.Concat(Figures, ofScaling[:len(ofScaling)-2])
	}
	return Figures
}

// Point is a profile where slack is weighed: what it costs, and how long pods wait.
type Point struct {
	// Name of the profile, Slack as it was asked for.
	Name, Slack string
	// Cost of the nodes and Pending, the mean seconds that pods waited: means over
	// seeds, with intervals at the level of the settings where there are two or more.
	Cost, Pending                 float64
	CostInterval, PendingInterval *Interval
	// P95 of the seconds that pods waited, and Kept, the mean part of the slack that
	// was there: means over seeds.
	P95, Kept float64
}

// Frontier returns what slack costs and what it saves, a point for each profile
// that says how much there is, in their order; none if only one does. Runs that
// were cut short count only where a profile has no others.
func (s *Scenario) Frontier() ([]Point, error) {
	var points []Point
	for i := range s.Profiles {
		p := &s.Profiles[i]
		runs := p.counted()
		if p.Slack == "" || len(runs) == 0 || runs[0].Scaling == nil {
			continue
		}
		point := Point{Name: p.Name, Slack: p.Slack}
		var err error
		if point.Cost, point.CostInterval, err = over(runs, func(r *Run) float64 { return r.Scaling.Cost }); err != nil {
			return nil, err
		}
		if point.Pending, point.PendingInterval, err = over(runs, func(r *Run) float64 { return r.PendingSeconds.Mean }); err != nil {
			return nil, err
		}
		for j := range runs {
			point.P95 += runs[j].PendingSeconds.P95 / float64(len(runs))
			point.Kept += runs[j].kept().Mean / float64(len(runs))
		}
		points = append(points, point)
	}
	if len(points) < 2 {
		return nil, nil
	}
	return points, nil
}

// counted returns the runs that went to their end or, if none did, all.
func (p *Profile) counted() (whole []Run) {
	for i := range p.Runs {
		if !p.Runs[i].Interrupted {
			whole = append(whole, p.Runs[i])
		}
	}
	if len(whole) == 0 {
		return p.Runs
	}
	return whole
}

// over returns the mean of a figure and where it is.
func over(runs []Run, of func(*Run) float64) (float64, *Interval, error) {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = of(&runs[i])
	}
	if len(values) < 2 {
		return mean(values), nil, nil
	}
	in, err := bootstrap.Paired(make([]float64, len(values)), values, Level, seedOfIntervals)
	if err != nil {
		return 0, nil, err
	}
	return in.Mean, &Interval{Low: in.Low, High: in.High, Clear: in.Clear()}, nil
}
