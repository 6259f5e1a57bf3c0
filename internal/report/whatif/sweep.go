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
		fmt.Fprintf(&b, "| %s |", scenarioLabel(s))
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
