package doccheck

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Programs are those whose command lines are looked for.
var Programs = []string{
	"plimsoll", "plimsoll-scheduler", "plimsoll-controller", "plimsoll-demo", "load-watcher",
	"make", "helm", "kubectl",
}

// Command is a command in a page: one program with its arguments, as a shell would
// start it.
type Command struct {
	// Page and Line are where it stands.
	Page string
	Line int
	// Shell is the whole line that it stands in, with everything before and behind
	// it, and with what readers would put in the place of words in capitals.
	Shell string
	// Words are the program and its arguments. kubectl with the plugin is
	// plimsoll. What another command would print is "printed" in them.
	Words []string
	// Inline is that it stands in a sentence, where it may be cut short.
	Inline bool
	// Shown is that what it prints stands below it, so that it is run and
	// compared (TestDocumentation).
	Shown bool
}

// String returns the place and the command.
func (c Command) String() string {
	return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, strings.Join(c.Words, " "))
}

var (
	program = `(?:` + strings.Join(Programs, "|") + `)`
	// starts finds the lines of a block that have a program where a command can
	// begin.
	starts = regexp.MustCompile(`(?:^|[|;(] ?|^until |^\w+=\S+ )` + program + ` +\S|^` + program + `$`)
	spans  = regexp.MustCompile("`([^`]+)`")
	inline = regexp.MustCompile(`^(?:` + program + ` +|.* \| ` + program + ` +)\S`)
)

// Commands returns the commands in the blocks and sentences of a page. A line that
// begins as a command and that no shell can read is an error.
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
		default: // no command is in headings
		}
		if err != nil {
			return nil, err
		}
		commands = append(commands, found...)
	}
	return commands, nil
}

// inSentence returns the commands between the backquotes of a line.
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

// inBlock returns the commands in a line of a block, and in those that continue it.
func (p Page) inBlock(all []line, i int) ([]Command, error) {
	l := all[i]
	text := strings.TrimSpace(l.text)
	// TestDocumentation runs what a block begins with.
	shown := l.info == "console" && all[i-1].kind == fence && strings.HasPrefix(text, "$ plimsoll ")
	if l.info == "console" {
		var typed bool
		if text, typed = strings.CutPrefix(text, "$ "); !typed {
			return nil, nil // what was printed
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

// isShell says whether a line of a block can be a command: not in blocks of other
// languages, and of the pages that are made of the programs' help only where the
// examples are.
func (p Page) isShell(l line) bool {
	if strings.HasPrefix(p.File, "docs/cli/") && l.section != "Examples" {
		return false
	}
	return slices.Contains([]string{"", "console", "sh", "bash", "shell"}, l.info)
}

// parse returns the commands of the programs in a line, each like the one given.
func (p Page) parse(text string, like Command) (commands []Command, err error) {
	like.Page, like.Shell = p.File, placeholder.ReplaceAllStringFunc(text, strings.ToLower)
	file, err := syntax.NewParser().Parse(strings.NewReader(text), p.File)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: no shell can read %q: %w", p.File, like.Line, text, err)
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

func expandCall(config *expand.Config, call *syntax.CallExpr, like Command) (Command, error) {
	for _, word := range call.Args {
		// Not Fields: <(...) and * are none of ours, and stay.
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

// Examples returns the commands in the examples of a program's help, which is
// called page in errors.
func Examples(page string, program *cobra.Command) ([]Command, error) {
	return Page{page, "```\n" + program.Example + "\n```"}.Commands()
}

// Of returns the commands of one program in the pages of the project in a folder.
func Of(project, program string) (commands []Command, err error) {
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
