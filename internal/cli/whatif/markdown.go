package whatif

import (
	"fmt"
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// printMarkdown prints the same content as printResult, for a comment of a pull request: a table for each
// scenario, the assumptions folded.
func printMarkdown(out io.Writer, r *result.Result) {
	text := func(s string) string { return base.EscapeMarkdown(base.Escape(s)) }
	for _, note := range r.Notes {
		fmt.Fprintf(out, "**%s**\n\n", text(note))
	}
	if s := r.Recommendation; s != nil {
		fmt.Fprintf(out, "### %s\n\n", text(s.Headline))
		for _, part := range conclusionParts(s) {
			for _, sentence := range part.texts {
				fmt.Fprintf(out, "- **%s** %s\n", text(part.label), text(sentence))
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%s: %s\n", text(r.Source.Name), sizes(r))
	if r.Interrupted {
		fmt.Fprint(out, "\n**The runs were interrupted: the results are incomplete.**\n")
	}
	if r.Backtest != nil {
		fmt.Fprintf(out, "\n%s\n", text(r.Backtest.Summary()))
	}
	for i := range r.Scenarios {
		scenario := &r.Scenarios[i]
		fmt.Fprintf(out, "\n%s\n\n", text(describeScenario(scenario)))
		differing, equal := foldEqual(scenario)
		for j := range scenario.Profiles {
			if j == 0 && len(scenario.Profiles) > 1 {
				continue
			}
			fmt.Fprintf(out, "%s\n\n", text(scenarioTitle(r, scenario, j)))
			scenarioTable(scenario, j, differing).Markdown(out)
			fmt.Fprintln(out)
		}
		if equal != "" {
			fmt.Fprintf(out, "%s\n\n", text(equal))
		}
		if len(scenario.Profiles) > 1 {
			fmt.Fprintf(out, "%s\n", text(differenceNote(len(r.Seeds))))
		}
	}
	fmt.Fprint(out, "\n<details><summary>Assumptions</summary>\n\n")
	for _, sentence := range r.Assumed {
		fmt.Fprintf(out, "- %s\n", text(sentence))
	}
	fmt.Fprint(out, "\n</details>\n")
}
