package doccheck

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// placeholder finds the words that readers replace. In small letters they are what
// readers might put there.
var placeholder = regexp.MustCompile(`\b(?:NAME|NAMESPACE)\b`)

// Arguments are the command's arguments, with what readers would put in the place
// of words in capitals.
func (c Command) Arguments() (args []string) {
	for _, word := range c.Words[1:] {
		args = append(args, placeholder.ReplaceAllStringFunc(word, strings.ToLower))
	}
	return args
}

// Check has a program take the command's arguments, with everything that it
// checks before it begins, and does not let it begin. It returns the command of the
// program that would begin, with its flags set. Of what stands in a sentence
// only the names of commands and flags are checked, and flags' values.
func (c Command) Check(program *cobra.Command) (*cobra.Command, error) {
	args := c.Arguments()
	if c.Inline {
		found, rest, err := program.Find(args)
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err == nil && found.HasSubCommands() && found.Flags().NArg() > 0 {
			err = fmt.Errorf("%s has no command %s", found.CommandPath(), found.Flags().Arg(0))
		}
		return found, err
	}
	began := false
	program.InitDefaultCompletionCmd(args...) // to be held, too
	hold(program, &began)
	program.SetArgs(args)
	program.SetOut(io.Discard)
	program.SetErr(io.Discard)
	found, err := program.ExecuteC()
	if err == nil && !began {
		err = fmt.Errorf("%s does nothing but show its help", found.CommandPath())
	}
	return found, err
}

// hold replaces what commands do by a note that they would.
func hold(cmd *cobra.Command, began *bool) {
	if cmd.Runnable() {
		cmd.Run, cmd.RunE = nil, func(*cobra.Command, []string) error {
			*began = true
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		hold(below, began)
	}
}
