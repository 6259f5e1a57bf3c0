package base

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
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
