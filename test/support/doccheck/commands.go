package doccheck

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Programs are the programs whose command lines are found.
var Programs = []string{"plimsoll", "plimsoll-scheduler", "plimsoll-controller", "plimsoll-demo", "load-watcher", "make", "helm", "kubectl"}

// Command is a command in a page: a program and its arguments as parsed by a shell.
type Command struct {
	// Page and Line are the position of the command.
	Page string
	Line int
	// Shell is the complete command line with placeholders replaced by values.
	Shell string
	// Words are the program and its arguments. kubectl plimsoll is replaced by plimsoll, and the output
	// of a command substitution by "printed".
	Words []string
	// Inline means that the command is in a sentence, where it may be incomplete.
	Inline bool
	// Shown means that the page shows the output, which TestDocumentation compares.
	Shown bool
}

// String returns the position and the command.
func (c Command) String() string {
	return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, strings.Join(c.Words, " "))
}

var (
	program = `(?:` + strings.Join(Programs, "|") + `)`
	// starts matches the lines of a block with a program at the start of a command.
	starts = regexp.MustCompile(`(?:^|[|;(] ?|^until |^\w+=\S+ )` + program + ` +\S|^` + program + `$`)
	spans  = regexp.MustCompile("`([^`]+)`")
	inline = regexp.MustCompile(`^(?:` + program + ` +|.* \| ` + program + ` +)\S`)
)

// Commands returns the commands in the blocks and sentences of a page, or an error if one has a syntax
// error.
func (p Page) Commands() (commands []Command, err error) {
	all := p.lines()
	for i, l := range all {
		var found []Command
		switch l.kind {
		case prose:
			found, err = p.inSentence(l)
		case indented, fenced:
			if continues := i > 0 && strings.HasSuffix(all[i-1].text, "\\"); !continues && p.isShell(l) {
				found, err = p.inBlock(all, i)
			}
		default: // headings and fences have no commands
		}
		if err != nil {
			return nil, err
		}
		commands = append(commands, found...)
	}
	return commands, nil
}

// inSentence returns the commands in the code spans of a line.
func (p Page) inSentence(l line) (commands []Command, err error) {
	for _, span := range spans.FindAllStringSubmatch(l.text, -1) {
		if !inline.MatchString(span[1]) {
			continue
		}
		found, err := p.parse(span[1], Command{Line: l.number, Inline: true})
		if err != nil {
			return nil, err
		}
		commands = append(commands, found...)
	}
	return commands, nil
}

// inBlock returns the commands in a line of a block and its continuation lines.
func (p Page) inBlock(all []line, i int) ([]Command, error) {
	l := all[i]
	text := strings.TrimSpace(l.text)
	// TestDocumentation runs the first command of a block.
	shown := l.info == "console" && all[i-1].kind == fence && strings.HasPrefix(text, "$ plimsoll ")
	if l.info == "console" {
		var typed bool
		if text, typed = strings.CutPrefix(text, "$ "); !typed {
			return nil, nil // output
		}
	}
	for ; strings.HasSuffix(text, "\\") && i+1 < len(all); i++ {
		text += "\n" + strings.TrimSpace(all[i+1].text)
	}
	if !starts.MatchString(text) {
		return nil, nil
	}
	return p.parse(text, Command{Line: l.number, Shown: shown})
}

// isShell reports whether a line of a block can be a command: in blocks of shell commands, and in the
// generated pages of the command line only in the examples.
func (p Page) isShell(l line) bool {
	if strings.HasPrefix(p.File, "docs/cli/") && l.section != "Examples" {
		return false
	}
	return slices.Contains([]string{"", "console", "sh", "bash", "shell"}, l.info)
}

// parse returns the commands of the programs in a line, with the position of the given one.
func (p Page) parse(text string, like Command) (commands []Command, err error) {
	like.Page, like.Shell = p.File, placeholder.ReplaceAllStringFunc(text, strings.ToLower)
	file, err := syntax.NewParser().Parse(strings.NewReader(text), p.File)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: syntax error in %q: %w", p.File, like.Line, text, err)
	}
	config := &expand.Config{CmdSubst: func(out io.Writer, _ *syntax.CmdSubst) error {
		_, err := io.WriteString(out, "printed")
		return err
	}}
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || err != nil || len(call.Args) == 0 {
			return err == nil
		}
		var found Command
		found, err = expandCall(config, call, like)
		if err == nil && slices.Contains(Programs, found.Words[0]) {
			commands = append(commands, found)
		}
		return err == nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %q: %w", p.File, like.Line, text, err)
	}
	return commands, nil
}

// expandCall returns the command of a call with its words expanded.
func expandCall(config *expand.Config, call *syntax.CallExpr, like Command) (Command, error) {
	for _, word := range call.Args {
		// Literal and not Fields: * is not expanded.
		if len(word.Parts) == 1 {
			if _, ok := word.Parts[0].(*syntax.ProcSubst); ok {
				like.Words = append(like.Words, "printed")
				continue
			}
		}
		text, err := expand.Literal(config, word)
		if err != nil {
			return Command{}, err
		}
		like.Words = append(like.Words, text)
	}
	if len(like.Words) > 1 && like.Words[0] == "kubectl" && like.Words[1] == "plimsoll" {
		like.Words = like.Words[1:]
	}
	return like, nil
}

// Examples returns the commands in the examples of a program's help. Errors name the page.
func Examples(page string, program *cobra.Command) ([]Command, error) {
	return Page{page, "```\n" + program.Example + "\n```"}.Commands()
}

// CommandsOf returns the commands of a program in the pages of the project in a folder.
func CommandsOf(project, program string) (commands []Command, err error) {
	pages, err := Pages(project)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		found, err := page.Commands()
		if err != nil {
			return nil, err
		}
		for _, command := range found {
			if command.Words[0] == program {
				commands = append(commands, command)
			}
		}
	}
	return commands, nil
}

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

// CheckProgram expects that all command lines of a program in the pages of the project and in the examples
// of its own help are valid, and that there are at least this many in pages and exactly this many examples.
// The program function returns a new command for each command line.
func CheckProgram(t testing.TB, project, name string, program func() *cobra.Command, pages, examples int) {
	t.Helper()
	inPages, err := CommandsOf(project, name)
	must.Succeed(t, err)
	inHelp, err := Examples(name+" --help", program())
	must.Succeed(t, err)
	if len(inPages) < pages || len(inHelp) != examples {
		t.Errorf("found %d commands in pages and %d examples, want at least %d and %d", len(inPages), len(inHelp), pages, examples)
	}
	for _, command := range append(inPages, inHelp...) {
		if _, err := command.Check(program()); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
