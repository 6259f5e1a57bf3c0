package fleet

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// Move is a change of the decisions of a placement.
type Move struct {
	// From and To are the clusters that are no longer selected and that are selected instead, sorted.
	From []string `json:"from"`
	To   []string `json:"to"`
	// Gain is by how much the sum of the totals of the selected clusters is higher.
	Gain int64 `json:"gain"`
}

// MoveTo returns the change from the clusters that are selected now, sorted, to the clusters that PreviewFromScratch selects, nil if no
// change gains anything.
func (r *Result) MoveTo(selected []string) *Move {
	if r.Decision == nil || r.KeepDecisions {
		return nil
	}
	m := &Move{From: []string{}, To: []string{}}
	for i, cluster := range r.Fleet {
		_, selectedBefore := slices.BinarySearch(selected, cluster.Name)
		selectedAfter := r.Decision.Clusters[i].Outcome == decide.Chosen
		switch {
		case selectedAfter && !selectedBefore:
			m.To, m.Gain = append(m.To, cluster.Name), m.Gain+r.Decision.Clusters[i].Total
		case selectedBefore && !selectedAfter:
			m.From, m.Gain = append(m.From, cluster.Name), m.Gain-r.Decision.Clusters[i].Total
		}
	}
	if len(m.From) == 0 || m.Gain <= 0 {
		return nil
	}
	return m
}
