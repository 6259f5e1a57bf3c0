package version

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// AddFlag gives a command the flag --version.
func AddFlag(cmd *cobra.Command) {
	cmd.Version = String()
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	// Kubernetes' own flag of this name, which its packages add to every
	// command, tells the version of a component that was not told its version.
	if theirs := pflag.Lookup("version"); theirs != nil {
		theirs.Hidden = true // it would be in the help of every command below
	}
	cmd.Flags().Bool("version", false, "print the version and exit")
}
