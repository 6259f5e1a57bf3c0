package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

func newVersionCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  plimsoll version
  plimsoll version -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.print(cmd.OutOrStdout(), version.Get(), func(out io.Writer) { fmt.Fprintln(out, "plimsoll", version.String()) })
		},
	}
	o.add(cmd)
	return cmd
}
