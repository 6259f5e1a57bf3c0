package kubescheduler

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/docs"
)

// Every command line of the scheduler in the documentation and in its own help is
// one that it takes.
func TestDocumentedCommands(t *testing.T) {
	const name = "plimsoll-scheduler"
	commands, err := docs.Of("../..", name)
	if err != nil {
		t.Fatal(err)
	}
	examples, err := docs.Examples(name+" --help", NewCommand(name))
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) < 1 || len(examples) != 2 {
		t.Errorf("%d commands and %d examples found", len(commands), len(examples))
	}
	for _, command := range append(commands, examples...) {
		if _, err := command.Check(NewCommand(name)); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
