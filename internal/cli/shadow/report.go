package shadow

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
)

// defaultFolder is the default directory with recordings and results.
const defaultFolder = "shadow"

func addDaysFlag(cmd *cobra.Command, days *int) {
	cmd.Flags().IntVar(days, "days", 7, "days that the verdict is about")
}

func validateDays(days int) error {
	if days < 1 || days > maxDays {
		return base.InvalidValue("days", days, fmt.Sprintf("from 1 to %d", maxDays))
	}
	return nil
}

// newReportCommand returns the command plimsoll shadow report.
func newReportCommand() *cobra.Command {
	var days int
	var output base.Output
	cmd := &cobra.Command{
		Use:   "report [FOLDER]",
		Short: "Print what other profiles would have done in the last days",
		Long: `Print the verdict of plimsoll shadow on the last days, from its directory (default shadow).

The verdict is "cannot tell" if the error of the model is larger than the difference, if
the difference can be chance, or if usage is missing, and "equal" if no overload differs.`,
		Example: `  plimsoll shadow report
  plimsoll shadow report shadow --days 30 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("found %d arguments: must be at most one, the --folder of plimsoll shadow", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := validateDays(days); err != nil {
				return err
			}
			folder := defaultFolder
			if len(args) > 0 {
				folder = args[0]
			}
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				return fmt.Errorf("found no directory %s: must be the --folder of plimsoll shadow, which writes it", folder)
			}
			store, err := shadow.OpenStore(folder, maxDays*24*time.Hour)
			if err != nil {
				return base.Failure(err)
			}
			r := reportOf(store, folder, days, time.Now())
			if r.Began.IsZero() && len(store.Windows(time.Time{})) == 0 {
				return fmt.Errorf("found no recordings in %s: must be the --folder of plimsoll shadow, which writes it", folder)
			}
			return output.Print(cmd.OutOrStdout(), r, func(out io.Writer) { printReport(out, &output, r) })
		},
	}
	addDaysFlag(cmd, &days)
	output.AddFlag(cmd)
	return cmd
}

// maxRows is the number of rows of each printed table.
const maxRows = 8

// printReport prints the report, of each of its tables the first rows.
func printReport(out io.Writer, o *base.Output, r *shadow.Report) {
	d := r.Document()
	for _, section := range d.Sections {
		if o.Format != base.FormatWide {
			section.Rows = section.Rows[:min(len(section.Rows), maxRows)]
		}
	}
	whatif.Print(out, o, &d)
}
