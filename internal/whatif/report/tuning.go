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
	Verdict, Evidence, Objective, Settings, Search, Configuration string
	Notes                                                         []string
	Rows                                                          []candidateRow
}

// candidateRow shows a configuration of a search.
type candidateRow struct {
	Settings, Objective, Difference, Dropped string
	Round, Seeds                             int
}

// tuningVerdicts are the titles of the verdicts.
var tuningVerdicts = map[result.Verdict]string{
	result.Change:      "Change: a configuration is clearly better than the one in force",
	result.Keep:        "Keep what you have: no configuration is clearly better than the one in force",
	result.Unconfirmed: "Interrupted: the best configuration so far is not confirmed",
}

// newTuningView returns the view of the search of a result, nil if it has none.
func newTuningView(r *result.Result) *tuningView {
	t := r.Tuning
	if t == nil {
		return nil
	}
	v := &tuningView{
		Verdict: tuningVerdicts[t.Verdict], Objective: t.Objective, Settings: t.Settings, Configuration: t.Configuration, Notes: t.Notes,
		Evidence: "The best alternative was not compared with the configuration in force on other seeds than those of the search.",
		Search: fmt.Sprintf("%s of %s, %s with seeds: %s", format.Count(len(t.Search.Candidates)),
			format.Things(t.Search.Points, "configuration"), format.Things(t.Search.Runs, "simulation"), seedText(t.Search.Seeds)),
	}
	if t.Difference != nil && t.Current != nil && t.Winner != nil {
		v.Evidence = fmt.Sprintf(
			"On %s that the search has not used, the objective is %s in place of %s, a difference of%s.",
			format.Of(
				len(r.Seeds),
				"seed",
			),
			format.Auto(*t.Winner),
			format.Auto(*t.Current),
			result.DifferenceText(t.Difference, *t.Current),
		)
	}
	for i, c := range t.Search.Ranked() {
		if i >= tuningRows && c.Difference != nil {
			continue
		}
		row := candidateRow{Settings: c.Settings, Objective: format.Auto(c.Objective), Dropped: c.Dropped, Round: c.Round, Seeds: c.Seeds}
		if c.Difference == nil {
			row.Settings = "in force: " + r.Profiles[0]
		} else {
			row.Difference = format.Signed(*c.Difference, format.Decimals(*c.Difference))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}
