package base

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// NewGroup returns a command that only has subcommands. It prints its help.
func NewGroup(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.AddCommand(subcommands...)
	ConfigureGroup(cmd)
	return cmd
}

// ConfigureGroup makes a command print its help, and an error for an unknown subcommand.
func ConfigureGroup(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return UnknownCommand(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// UnknownCommand returns the error for a subcommand that does not exist, with the most similar
// subcommands or all subcommands.
func UnknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	if similar := cmd.SuggestionsFor(name); len(similar) > 0 {
		return fmt.Errorf("%s: did you mean %s?", text, strings.Join(similar, " or "))
	}
	var names []string
	for _, subcommand := range cmd.Commands() {
		if subcommand.IsAvailableCommand() && subcommand.Name() != "completion" {
			names = append(names, subcommand.Name())
		}
	}
	slices.Sort(names)
	return fmt.Errorf("%s: must be one of %s", text, strings.Join(names, ", "))
}

// CompleteWith sets the values that complete a flag.
func CompleteWith(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Cluster is the flags --kubeconfig, --context and --timeout of a command that reads a live cluster.
type Cluster struct {
	kube.Access

	Timeout time.Duration
}

// AddFlags adds the flags. name is the word for the cluster in help texts, such as "hub".
func (c *Cluster) AddFlags(cmd *cobra.Command, name string, timeout time.Duration) {
	c.Access.AddFlags(cmd, name)
	cmd.Flags().DurationVar(&c.Timeout, "timeout", timeout, "maximum time to wait for the "+name)
}
