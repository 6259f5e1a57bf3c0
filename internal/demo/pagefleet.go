package demo

import (
	"context"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
)

// viewFleet returns how the fleet stands for each placement, nil before the
// fleet scenario.
func (d *Demo) viewFleet(ctx context.Context) (*page.LiveFleet, error) {
	h := d.hub.Load()
	if h == nil {
		return nil, nil
	}
	standings, err := h.standings(ctx)
	if err != nil {
		return nil, err
	}
	out := &page.LiveFleet{}
	for _, s := range standings {
		out.Placements = append(out.Placements, viewStanding(s))
	}
	return out, nil
}

// viewStanding marks what is chosen, and not what would be at this moment: the
// controller may not have got to it yet.
func viewStanding(s standing) page.LivePlacement {
	out := page.LivePlacement{Name: s.String()}
	for _, condition := range s.verdict.Conditions {
		out.Says = condition.Message // the last one is about the decisions
	}
	for _, cluster := range s.verdict.Standings() {
		row := page.LiveCluster{Name: cluster.Name, Chosen: slices.Contains(s.chosen, cluster.Name), Total: cluster.Total}
		if !cluster.Feasible {
			row.Out = cluster.Reason
		}
		for _, score := range cluster.Scores {
			row.Parts = append(row.Parts, page.LivePart{Prioritizer: score.Name, Weight: score.Weight, Score: score.Score, NoData: !score.HasData})
		}
		out.Clusters = append(out.Clusters, row)
	}
	return out
}
