package base

import (
	"os"
	"regexp"
	"strings"

	"github.com/mitchellh/go-wordwrap"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rare is the annotation of rare flags.
const rare = "rare"

// Rare lists flags of a command in its help under a heading of their own.
func Rare(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.Flags().SetAnnotation(name, rare, nil); err != nil {
			panic(err) // a flag that does not exist
		}
	}
}

// flagUsages returns the descriptions of flags, and then of the rare ones.
func flagUsages(set *pflag.FlagSet, width int) string {
	var common, others pflag.FlagSet
	common.SortFlags, others.SortFlags = set.SortFlags, set.SortFlags
	set.VisitAll(func(flag *pflag.Flag) {
		if _, isRare := flag.Annotations[rare]; isRare {
			others.AddFlag(flag)
		} else {
			common.AddFlag(flag)
		}
	})
	text := common.FlagUsagesWrapped(width)
	if others.HasAvailableFlags() {
		text += "\nRare flags:\n" + others.FlagUsagesWrapped(width)
	}
	return text
}

// ConfigureHelp makes a command and its subcommands print help that fits the terminal.
func ConfigureHelp(root *cobra.Command) {
	cobra.AddTemplateFunc("wrap", func(text string) string { return wrapHelp(text, widthOf(os.Stdout)) })
	cobra.AddTemplateFunc("flags", func(set *pflag.FlagSet) string { return flagUsages(set, widthOf(os.Stdout)) })
	cobra.AddTemplateFunc("examples", func(text string) string { return breakLines(text, widthOf(os.Stdout), " \\") })
	cobra.AddTemplateFunc("syntax", func(text string) string { return breakLines("  "+text, widthOf(os.Stdout), "") })
	const long = "{{. | trimTrailingWhitespaces}}"
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages |", "flags .LocalFlags |", "{{.Example}}", "{{examples .Example}}", "  {{.UseLine}}", "{{syntax .UseLine}}",
	).Replace(root.UsageTemplate()))
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), long, "{{wrap .}}", 1))
}

// breakLines breaks lines to a width, before a flag if possible. A comment continues in another comment, other lines after end.
func breakLines(text string, width int, end string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		before, start := end, "    "
		if strings.HasPrefix(line, "  # ") {
			before, start = "", "  # "
		}
		for len(line) > width {
			head := line[:width-len(before)+1]
			at := max(strings.LastIndex(head, " --"), strings.LastIndex(head, " | "), strings.LastIndex(head, " ("))
			if before == "" || at <= len(start) {
				at = strings.LastIndexByte(head, ' ')
			}
			if at < len(start) {
				break
			}
			out, line = append(out, line[:at]+before), start+line[at+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// item is a line of a list in a help text: its name, and its description in another column.
var item = regexp.MustCompile(`^( +\S.*?  +|- )(\S.*)$`)

// wrapHelp wraps the paragraphs of a help text to a width, and the descriptions in lists to the width right of their names.
func wrapHelp(text string, width int) string {
	var out []string
	var head, body string // of the paragraph or item so far
	flush := func() {
		if body != "" {
			out = append(out, Wrap(head, body, width))
		}
		head, body = "", ""
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		found := item.FindStringSubmatch(line)
		rest, isIndented := strings.CutPrefix(line, strings.Repeat(" ", len(head)))
		isContinued := body != "" && isIndented && rest != "" && rest[0] != ' ' && (head != "" || found == nil)
		if isContinued {
			body += " " + rest
			continue
		}
		flush()
		switch {
		case found != nil:
			head, body = found[1], found[2]
		case line == "" || line[0] == ' ':
			out = append(out, line)
		default:
			body = line
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// Wrap returns a head followed by a text that is wrapped to a width, right of the head.
func Wrap(head, text string, width int) string {
	wrapped := wordwrap.WrapString(text, uint(max(width-len(head), minColumn)))
	return head + strings.ReplaceAll(wrapped, "\n", "\n"+strings.Repeat(" ", len(head)))
}

// minColumn is the smallest width to which descriptions are wrapped.
const minColumn = 20
