package plimsoll

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

func newVersionCommand() *cobra.Command {
	var output base.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  plimsoll version
  plimsoll version -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			return output.Print(cmd.OutOrStdout(), version.Get(), func(out io.Writer) { fmt.Fprintln(out, "plimsoll", version.String()) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}
