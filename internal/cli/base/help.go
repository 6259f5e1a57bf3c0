package base

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/mitchellh/go-wordwrap"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of flags in help texts, in their order. Flags without a group are in the last group.
const (
	GroupInput   = "Input"
	GroupCluster = "Cluster"
	GroupUsage   = "Usage of pods"
	GroupOutput  = "Output"
	// groupRare has flags that only --help-all shows.
	groupRare = "More"
)

var groups = []string{GroupInput, GroupCluster, GroupUsage, "", GroupOutput, groupRare}

// groupAnnotation is the annotation of a flag with its group.
const groupAnnotation = "plimsoll.dev/group"

// Group puts flags of a command into a group of its help.
func Group(cmd *cobra.Command, group string, flags ...string) {
	for _, name := range flags {
		if err := cmd.Flags().SetAnnotation(name, groupAnnotation, []string{group}); err != nil {
			panic(err) // a flag that does not exist
		}
	}
}

// Rare leaves flags of a command out of its help, except with --help-all.
func Rare(cmd *cobra.Command, flags ...string) { Group(cmd, groupRare, flags...) }

// groupOf returns the group of a flag.
func groupOf(flag *pflag.Flag) string {
	if group := flag.Annotations[groupAnnotation]; len(group) > 0 {
		return group[0]
	}
	switch flag.Name {
	case "kubeconfig", "context", "timeout":
		return GroupCluster
	case "output", "report", "force", "no-headers", "watch", "interval":
		return GroupOutput
	}
	return ""
}

// ConfigureHelp makes a command and its subcommands print help that fits the terminal, with flags in groups, and adds --help-all to
// commands with rare flags.
func ConfigureHelp(root *cobra.Command) {
	cobra.AddTemplateFunc("wrap", func(text string) string { return wrapHelp(text, widthOf(os.Stdout)) })
	cobra.AddTemplateFunc("groups", flagGroups)
	cobra.AddTemplateFunc("examples", func(text string) string { return breakLines(text, widthOf(os.Stdout), " \\") })
	cobra.AddTemplateFunc("syntax", func(text string) string { return breakLines("  "+text, widthOf(os.Stdout), "") })
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	const long = "{{. | trimTrailingWhitespaces}}"
	root.SetUsageTemplate(strings.NewReplacer(
		flags, "{{groups .}}", "{{.Example}}", "{{examples .Example}}", "  {{.UseLine}}", "{{syntax .UseLine}}",
	).Replace(root.UsageTemplate()))
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), long, "{{wrap .}}", 1))
	addHelpAll(root)
}

// addHelpAll adds --help-all to the commands with rare flags.
func addHelpAll(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		addHelpAll(sub)
	}
	hasRare := false
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { hasRare = hasRare || groupOf(flag) == groupRare && !flag.Hidden })
	if !hasRare {
		return
	}
	cmd.Flags().BoolFunc("help-all", "help with all flags", func(string) error {
		cmd.Annotations = map[string]string{groupRare: "shown"}
		return pflag.ErrHelp
	})
}

// flagGroups returns the usage of the flags of a command by group.
func flagGroups(cmd *cobra.Command) string {
	var b strings.Builder
	for _, group := range groups {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = cmd.Flags().SortFlags
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if groupOf(flag) == group && (group != groupRare || cmd.Annotations[groupRare] != "") {
				set.AddFlag(flag)
			}
		})
		if !set.HasAvailableFlags() {
			continue
		}
		title := "Flags:"
		if group != "" {
			title = group + ":"
		}
		fmt.Fprintf(&b, "%s\n%s\n", title, set.FlagUsagesWrapped(widthOf(os.Stdout)))
	}
	return strings.TrimRight(b.String(), "\n")
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
