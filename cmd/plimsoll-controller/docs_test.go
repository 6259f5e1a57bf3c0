package main

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/docs"
)

// Every command line of the controller in the documentation and in its own help is
// one that it takes.
func TestDocumentedCommands(t *testing.T) {
	commands, err := docs.Of("../..", name)
	if err != nil {
		t.Fatal(err)
	}
	examples, err := docs.Examples(name+" --help", newCommand())
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) < 4 || len(examples) != 5 {
		t.Errorf("%d commands and %d examples found", len(commands), len(examples))
	}
	for _, command := range append(commands, examples...) {
		if _, err := command.Check(newCommand()); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
