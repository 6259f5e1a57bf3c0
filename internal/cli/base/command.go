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
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

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
		if subcommand.IsAvailableCommand() {
			names = append(names, subcommand.Name())
		}
	}
	slices.Sort(names)
	hint := cmp.Or(format.Suggestion(name, names), ": must be one of "+strings.Join(names, ", "))
	return fmt.Errorf("unknown command %q for %q%s", name, cmd.CommandPath(), hint)
}

// NoArgs is the check for a command without arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasAvailableSubCommands() {
		return UnknownCommand(cmd, args[0])
	}
	return fmt.Errorf("unexpected argument %q: %s has flags only, with one value each, without spaces", args[0], cmd.CommandPath())
}

// Requires returns an error if a flag is set without any of the flags that it needs.
func Requires(cmd *cobra.Command, flag string, needed ...string) error {
	if !cmd.Flags().Changed(flag) || slices.ContainsFunc(needed, cmd.Flags().Changed) {
		return nil
	}
	return fmt.Errorf("--%s: requires --%s", flag, strings.Join(needed, " or --"))
}

// FlagError returns an error of parsing flags with the problem of the value, or with the most similar flag.
func FlagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if problem, ok := errors.AsType[valueError](err); ok {
			return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, problem)
		}
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	if args := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(args) > 0 { // the flag may be one of the subcommand that is meant
		return UnknownCommand(cmd, args[0])
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	hint := strings.Replace(format.Suggestion(unknown.GetSpecifiedName(), names), "mean ", "mean --", 1)
	return fmt.Errorf("%w%s", err, cmp.Or(hint, ": the command is "+cmd.UseLine()))
}

// valueError is the problem of a value of a flag, without the name of the flag.
type valueError string

// Error implements error.
func (e valueError) Error() string { return string(e) }

// checkedValue is the value of a flag that check may refuse.
type checkedValue struct {
	pflag.Value

	check func(text string) error
}

// checkedList is a checkedValue of a flag that is a list.
type checkedList struct {
	*checkedValue
	pflag.SliceValue
}

// Set implements pflag.Value.
func (v *checkedValue) Set(text string) error {
	if err := v.check(text); err != nil {
		return valueError(err.Error())
	}
	return v.Value.Set(text)
}

// emptyFlags may be empty, as in kubectl.
var emptyFlags = []string{"kubeconfig", "context"}

// CheckFlags makes an empty value of a flag an error, such as an unset variable of a shell, and a second, different value of a flag
// that is not a list, for a command and its subcommands. Completion parses the same flags twice.
func CheckFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		var first *string
		list, isList := flag.Value.(pflag.SliceValue)
		if flag.DefValue == "[]" { // which help leaves out for the type of lists only
			flag.DefValue = ""
		}
		checked := &checkedValue{flag.Value, func(text string) error {
			if text == "" && !slices.Contains(emptyFlags, flag.Name) {
				return errors.New("must not be empty")
			}
			if first != nil && *first != text && !isList {
				return fmt.Errorf("found 2 values, %q and %q: must be one", *first, text)
			}
			first = &text
			return nil
		}}
		if flag.Value = checked; isList {
			flag.Value = &checkedList{checked, list}
		}
	})
	for _, subcommand := range cmd.Commands() {
		CheckFlags(subcommand)
	}
}

// CheckFlag makes values of a flag that are not valid errors, which state what is allowed.
func CheckFlag(cmd *cobra.Command, name, allowed string, isValid func(text string) bool) {
	flag := cmd.Flags().Lookup(name)
	flag.Value = &checkedValue{flag.Value, func(text string) error {
		if isValid(text) {
			return nil
		}
		return fmt.Errorf("invalid value %q: must be %s", text, allowed)
	}}
}

// isAtLeast returns the check of a flag for a duration. A text that is no duration is an error of the flag.
func isAtLeast(least time.Duration) func(text string) bool {
	return func(text string) bool {
		d, err := time.ParseDuration(text)
		return err != nil || d >= least
	}
}

// IsNamespace reports whether a namespace can have a name.
func IsNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

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
	CheckFlag(cmd, "timeout", "more than 0s", isAtLeast(1))
}

// Config returns the client configuration, which bounds each request: discovery takes no context.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := c.Access.Config()
	if err == nil {
		config.Timeout = c.Timeout
	}
	return config, err
}
