package version

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// AddFlag adds the flag --version to a command.
func AddFlag(cmd *cobra.Command) {
	cmd.Version = String()
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	// Packages of Kubernetes register a global flag of this name, which would appear in the help of
	// all subcommands.
	if global := pflag.Lookup("version"); global != nil {
		global.Hidden = true
	}
	cmd.Flags().Bool("version", false, "print the version and exit")
}
