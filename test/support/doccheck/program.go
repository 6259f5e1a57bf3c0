package doccheck

import (
	"testing"

	"github.com/spf13/cobra"
)

// CheckProgram expects that all command lines of a program in the pages of the project and in the examples
// of its own help are valid, and that there are at least this many in pages and exactly this many examples.
// The program function returns a new command for each command line.
func CheckProgram(t testing.TB, project, name string, program func() *cobra.Command, pages, examples int) {
	t.Helper()
	inPages, err := CommandsOf(project, name)
	if err != nil {
		t.Fatal(err)
	}
	inHelp, err := Examples(name+" --help", program())
	if err != nil {
		t.Fatal(err)
	}
	if len(inPages) < pages || len(inHelp) != examples {
		t.Errorf("found %d commands in pages and %d examples, want at least %d and %d", len(inPages), len(inHelp), pages, examples)
	}
	for _, command := range append(inPages, inHelp...) {
		if _, err := command.Check(program()); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
