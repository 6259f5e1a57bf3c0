package base

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
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
// subcommand or all subcommands.
func UnknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, subcommand := range cmd.Commands() {
		if subcommand.IsAvailableCommand() && subcommand.Name() != "completion" {
			names = append(names, subcommand.Name())
		}
	}
	slices.Sort(names)
	return fmt.Errorf("unknown command %q for %q%s", name, cmd.CommandPath(),
		cmp.Or(format.Suggestion(name, names), ": must be one of "+strings.Join(names, ", ")))
}

// NoArgs is the check for a command without arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unexpected argument %q: %s has flags only, with one value each, without spaces", args[0], cmd.CommandPath())
	if cmd.Flags().Lookup("profile") != nil && !strings.Contains(args[0], "=") {
		text += ": a profile is set by --profile " + args[0]
	}
	return errors.New(text)
}

// allowedValues describes the values of flags by their type.
var allowedValues = map[string]string{
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint64":   "a whole number of at least 0",
	"duration": "a duration such as 90s or 2h",
	"bool":     "true or false",
}

// FlagError returns an error of parsing flags with the value that is allowed, or with the most similar flag.
func FlagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if allowed := allowedValues[invalid.GetFlag().Value.Type()]; allowed != "" {
			return InvalidValue(invalid.GetFlag().Name, invalid.GetValue(), allowed)
		}
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()) // -seeds are short names
	if len(name) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, "--"+flag.Name) })
		return fmt.Errorf("%w%s", err, format.Suggestion("--"+name, names))
	}
	return err
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
