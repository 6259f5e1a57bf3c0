package base

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestRareFlags checks that rare flags follow the others under a heading.
func TestRareFlags(t *testing.T) {
	cmd := &cobra.Command{}
	cmd.Flags().Bool("a", false, "first")
	cmd.Flags().Bool("b", false, "second")
	Rare(cmd, "a")
	const want = "      --b   second\n\nRare flags:\n      --a   first\n"
	if got := flagUsages(cmd.Flags(), 80); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestBreakLines(t *testing.T) {
	const text = "  # A long comment is continued in a comment.\n  plimsoll compare --profile a --profile b --output json\n  short"
	const want = "  # A long comment is\n  # continued in a\n  # comment.\n  plimsoll compare \\\n    --profile a \\\n    --profile b \\\n    --output json\n  short"
	if got := breakLines(text, 23, " \\"); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestWrapHelp(t *testing.T) {
	const text = `Paragraphs are joined
and wrapped.

  a FILE   text that is wrapped
           in its column
  longer   x

- a list of items
- next`
	const want = `Paragraphs are joined and
wrapped.

  a FILE   text that is wrapped
           in its column
  longer   x

- a list of items
- next`
	if got := wrapHelp(text, 32); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
