package whatif

import (
	"fmt"
	"io"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/report/number"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// WriteSweep writes a figure as a Markdown table: a row for each scenario and a column for each
// profile with the mean over the seeds, bold if it is clearly better than that of the first profile,
// italic if it is clearly worse, and with an asterisk if it clearly differs but has no better
// direction.
func WriteSweep(w io.Writer, r *result.Result, figure result.Definition) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", figure.Title())
	for _, name := range r.Profiles {
		fmt.Fprintf(&b, " %s |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(r.Profiles)) + "\n")
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		fmt.Fprintf(&b, "| %s |", ScenarioLabel(s))
		base := s.Profiles[0].Figures[figure.Name].Mean
		for j := range s.Profiles {
			f := s.Profiles[j].Figures[figure.Name]
			text := number.Auto(f.Mean)
			switch assess(figure, f.Difference, base) {
			case better:
				text = "**" + text + "**"
			case worse:
				text = "_" + text + "_"
			case different:
				text += "\\*"
			default:
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Count has the numbers of scenarios in which a figure of a profile is clearly better than that of
// the first profile, clearly worse, and neither.
type Count struct {
	Profile                string
	Better, Neither, Worse int
}

// Tally counts the verdicts on a figure over the scenarios for each profile but the first.
func Tally(r *result.Result, figure result.Definition) []Count {
	counts := make([]Count, len(r.Profiles)-1)
	for i := range counts {
		counts[i].Profile = r.Profiles[i+1]
		for j := range r.Scenarios {
			s := &r.Scenarios[j]
			switch assess(figure, s.Profiles[i+1].Figures[figure.Name].Difference, s.Profiles[0].Figures[figure.Name].Mean) {
			case better:
				counts[i].Better++
			case worse:
				counts[i].Worse++
			default:
				counts[i].Neither++
			}
		}
	}
	return counts
}
