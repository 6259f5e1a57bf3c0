package whatif

import (
	"fmt"
	"io"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// WriteSweep writes one figure of a result as a table in Markdown: a row for each
// scenario, a column for each profile with the mean over the seeds, bold where it
// is clearly better than the first profile's, in italics where it is clearly worse,
// and with a star where it clearly differs and neither is better.
func WriteSweep(w io.Writer, r *result.Result, figure string) error {
	definition, ok := result.FigureByName(figure)
	if !ok {
		return fmt.Errorf("figure: found %q, want one of those of a result", figure)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", definition.Title())
	for _, name := range r.Profiles {
		fmt.Fprintf(&b, " %s |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(r.Profiles)) + "\n")
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		fmt.Fprintf(&b, "| %s |", ScenarioLabel(s))
		base := s.Profiles[0].Figures[figure].Mean
		for j := range s.Profiles {
			figures := s.Profiles[j].Figures[figure]
			text := number(figures.Mean, decimals(figures.Mean))
			switch judge(definition, figures.Difference, base) {
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

// Tally counts in how many scenarios a figure of each profile but the first is
// clearly better than that one's, clearly worse, and neither.
func Tally(r *result.Result, figure string) []Count {
	counts := make([]Count, len(r.Profiles)-1)
	definition, _ := result.FigureByName(figure)
	for i := range counts {
		counts[i].Profile = r.Profiles[i+1]
		for j := range r.Scenarios {
			s := &r.Scenarios[j]
			switch judge(definition, s.Profiles[i+1].Figures[figure].Difference, s.Profiles[0].Figures[figure].Mean) {
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

// Count is what Tally counts of one profile.
type Count struct {
	Profile                string
	Better, Neither, Worse int
}

// FigureLabel says for people what a figure of this name is, with its unit.
func FigureLabel(figure string) string {
	definition, _ := result.FigureByName(figure)
	return definition.Title()
}
