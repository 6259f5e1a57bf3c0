package fleet

import (
	"context"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
)

// View returns the rankings for the live page, nil before the scenario has run.
func (d *Demo) View(ctx context.Context) (*page.LiveFleet, error) {
	h := d.hub.Load()
	if h == nil {
		return nil, nil
	}
	rankings, err := h.rankings(ctx)
	if err != nil {
		return nil, err
	}
	out := &page.LiveFleet{}
	for _, r := range rankings {
		out.Placements = append(out.Placements, viewRanking(r))
	}
	return out, nil
}

// viewRanking returns the ranking for a placement. It marks the clusters that are selected in the
// PlacementDecisions, which the controller may not have updated yet.
func viewRanking(r ranking) page.LivePlacement {
	out := page.LivePlacement{Name: r.String()}
	for _, condition := range r.result.Conditions {
		out.Message = condition.Message // the last one is about the decision
	}
	for _, cluster := range r.result.Ranking() {
		row := page.LiveCluster{Name: cluster.Name, Chosen: slices.Contains(r.chosen, cluster.Name), Total: cluster.Total}
		if !cluster.Feasible {
			row.Reason = cluster.Reason
		}
		for _, score := range cluster.Scores {
			row.Parts = append(
				row.Parts,
				page.LivePart{Prioritizer: score.Name, Weight: score.Weight, Score: score.Score, NoData: !score.HasData},
			)
		}
		out.Clusters = append(out.Clusters, row)
	}
	return out
}
