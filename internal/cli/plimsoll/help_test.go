package plimsoll

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// maxFlags is the largest number of flags in the help of a command.
const maxFlags = 15

// TestHelp checks that the help of every command has at most maxFlags flags of its own, in groups, and fits 80 columns,
// and that --help-all has all flags.
func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	flag := regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?--([a-z-]+)`)
	flags := regexp.MustCompile(`(?m)^(Input|Cluster|Usage of pods|Flags):\n`)
	walk(newCommand(), func(cmd *cobra.Command) {
		if cmd.Hidden || !cmd.Runnable() {
			return
		}
		args := strings.Fields(cmd.CommandPath())[1:]
		help := run(t, "plimsoll", append(args, "--help")...)
		shown := flag.FindAllStringSubmatch(help[flags.FindStringIndex(help)[0]:], -1)
		own := 0
		for _, match := range shown {
			if match[1] != "help" && match[1] != "help-all" {
				own++
			}
		}
		if own > maxFlags {
			t.Errorf("%s --help has %d flags: must have at most %d", cmd.CommandPath(), own, maxFlags)
		}
		for line := range strings.Lines(help) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), len(line)-1, line)
			}
		}
		if cmd.LocalNonPersistentFlags().Lookup("help-all") == nil {
			return
		}
		help = run(t, "plimsoll", append(args, "--help-all")...)
		all := flag.FindAllStringSubmatch(help[flags.FindStringIndex(help)[0]:], -1)
		if len(all) <= len(shown) {
			t.Errorf("%s --help-all has %d flags, --help %d", cmd.CommandPath(), len(all), len(shown))
		}
	})
}
