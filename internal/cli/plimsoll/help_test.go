package plimsoll

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// maxFlags is the largest number of flags of a command.
	maxFlags = 20
	// maxShownFlags is the largest number of flags in its help besides those that are rare.
	maxShownFlags = 15
)

// TestFlags checks that no command has more flags than a reader of its help takes in.
func TestFlags(t *testing.T) {
	walk(newCommand(), func(cmd *cobra.Command) {
		all, shown := 0, 0
		cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
			all++
			if _, isRare := flag.Annotations["rare"]; !isRare && !flag.Hidden {
				shown++
			}
			if flag.Hidden && (cmd.HasParent() && cmd.Name() != "explain") {
				t.Errorf("%s hides --%s", cmd.CommandPath(), flag.Name)
			}
		})
		if all > maxFlags || shown > maxShownFlags {
			t.Errorf("%s has %d flags, %d not rare: must have at most %d and %d", cmd.CommandPath(), all, shown, maxFlags, maxShownFlags)
		}
	})
}

// TestHelp checks that the help of every command fits 80 columns.
func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	walk(newCommand(), func(cmd *cobra.Command) {
		if cmd.Hidden || !cmd.Runnable() {
			return
		}
		help := run(t, "plimsoll", append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		for line := range strings.Lines(help) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), len(line)-1, line)
			}
		}
	})
}
