package doccheck

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// placeholder matches the words that readers replace. In lower case they are valid values.
var placeholder = regexp.MustCompile(`\b(?:NAME|NAMESPACE)\b`)

// Arguments returns the arguments of the command with placeholders replaced by values.
func (c Command) Arguments() (args []string) {
	for _, word := range c.Words[1:] {
		args = append(args, placeholder.ReplaceAllStringFunc(word, strings.ToLower))
	}
	return args
}

// Check parses and validates the command line with a program, without running the command. It returns the
// subcommand with its flags set. For an inline command it checks only the names of commands and flags and
// the values of flags.
func (c Command) Check(program *cobra.Command) (*cobra.Command, error) {
	args := c.Arguments()
	if c.Inline {
		found, rest, err := program.Find(args)
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err == nil && found.HasSubCommands() && found.Flags().NArg() > 0 {
			err = fmt.Errorf("%s has no subcommand %s", found.CommandPath(), found.Flags().Arg(0))
		}
		return found, err
	}
	ran := false
	program.InitDefaultCompletionCmd(args...) // its function is replaced, too
	replaceRun(program, &ran)
	program.SetArgs(args)
	program.SetOut(io.Discard)
	program.SetErr(io.Discard)
	found, err := program.ExecuteC()
	if err == nil && !ran {
		err = fmt.Errorf("%s only shows its help", found.CommandPath())
	}
	return found, err
}

// replaceRun replaces the function of each command by one that sets ran.
func replaceRun(cmd *cobra.Command, ran *bool) {
	if cmd.Runnable() {
		cmd.Run, cmd.RunE = nil, func(*cobra.Command, []string) error {
			*ran = true
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		replaceRun(sub, ran)
	}
}
