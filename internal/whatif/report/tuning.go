package report

import (
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// tuningRows is the number of best configurations of a search that are shown. The configuration in force is always shown.
const tuningRows = 15

// tuningView shows a search.
type tuningView struct {
	*result.Tuning

	Summary string
	Rows    []candidateRow
}

// candidateRow shows a configuration of a search.
type candidateRow struct {
	result.Candidate

	Name, Mean, Change string
}

// newTuningView returns the view of the search of a result, nil if it has none.
func newTuningView(r *result.Result) *tuningView {
	t := r.Tuning
	if t == nil {
		return nil
	}
	v := &tuningView{
		Tuning: t,
		Summary: fmt.Sprintf("%s of %s, %s with seeds: %s", format.Count(len(t.Search.Candidates)),
			format.Things(t.Search.Points, "configuration"), format.Things(t.Search.Runs, "simulation"), seedText(t.Search.Seeds)),
	}
	for i, c := range t.Search.Ranked() {
		if i >= tuningRows && c.Difference != nil {
			continue
		}
		row := candidateRow{Candidate: c, Name: c.Settings, Mean: format.Auto(c.Objective)}
		if c.Difference == nil {
			row.Name = "in force: " + r.Profiles[0]
		} else {
			row.Change = format.Signed(*c.Difference, format.Decimals(*c.Difference))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}
