package whatif

import (
	"fmt"
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/tune"
)

// rankedCandidates is how many candidates of a search are printed.
const rankedCandidates = 8

// printProgress prints the state of a search on one line.
func printProgress(out io.Writer, p tune.Progress) {
	fmt.Fprintf(out, "round %d of %d, %s: %s %s; best so far: %s with %s, in force: %s\n",
		p.Round, p.Rounds, format.Of(p.Seeds, "seed"), format.Part(p.Running, p.Candidates, "configuration"),
		format.Form(p.Running, "remains", "remain"), p.Best, format.Plain(p.BestObjective), format.Plain(p.CurrentObjective))
}

// printSearch prints the verdict and, with -o wide, the best candidates.
func printSearch(out io.Writer, o *base.Output, r *result.Result) {
	tuning := r.Tuning
	text := printer{out, o}
	text.paragraph(tuning.Verdict.Sentence)
	for _, note := range tuning.Notes {
		text.paragraph(note)
	}
	search := &tuning.Search
	if o.Format == base.FormatWide {
		candidateTable(r).Print(out, o)
	}
	text.paragraph(fmt.Sprintf("search for a small %s: %s, %s; -o wide lists the best",
		tuning.Objective, format.Part(len(search.Candidates), search.Points, "configuration"), format.Of(search.Runs, "run")))
	if search.Exhausted {
		fmt.Fprintln(out, "The search stopped because of --max-runs.")
	}
	seeds := fmt.Sprintf("seed %d", r.Seeds[0])
	if n := len(r.Seeds); n > 1 {
		seeds = fmt.Sprintf("seeds %d to %d", r.Seeds[0], r.Seeds[n-1])
	}
	fmt.Fprintf(out, "\nconfirmation with %s: tuned is %s\n", seeds, tuning.Settings)
}

// candidateTable returns the best candidates of a search and the configuration in force.
func candidateTable(r *result.Result) *base.Table {
	t := base.NewTable("mean", "difference", "round", "seeds", "dropped", "settings")
	for i, c := range r.Tuning.Search.Ranked() {
		if i >= rankedCandidates && c.Difference != nil {
			continue
		}
		settings, difference := c.Settings, "-"
		if c.Difference == nil {
			settings = "in force: " + r.Profiles[0]
		} else {
			difference = format.PlainSigned(*c.Difference)
		}
		t.AddRow(format.Plain(c.Objective), difference, c.Round, c.Seeds, c.Dropped, settings)
	}
	return t
}
