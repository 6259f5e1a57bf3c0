package version

import "github.com/spf13/cobra"

// AddFlag gives a command the flag --version.
func AddFlag(cmd *cobra.Command) {
	cmd.Version = String()
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	// Kubernetes' own flag of this name, which its packages add to every
	// command, tells the version of a component that was not told its version.
	cmd.Flags().Bool("version", false, "print the version and exit")
}
