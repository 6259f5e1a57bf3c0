package demo

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Each command line of the demo in the documentation (make demo ARGS='...') and in its help is valid.
func TestDocumentedCommands(t *testing.T) {
	made, err := doccheck.CommandsOf("../../..", "make")
	must.Succeed(t, err)
	commands, err := doccheck.Examples("plimsoll-demo --help", newCommand())
	must.Succeed(t, err)
	demos := 0
	for _, command := range made {
		if command.Words[1] != "demo" {
			continue
		}
		demos++
		words := []string{"plimsoll-demo"}
		for _, word := range command.Words[2:] {
			words = append(words, strings.Fields(strings.TrimPrefix(word, "ARGS="))...)
		}
		command.Words = words
		commands = append(commands, command)
	}
	if demos < 5 || len(commands) != demos+5 {
		t.Errorf("found %d commands make demo and %d examples", demos, len(commands)-demos)
	}
	for _, command := range commands {
		if _, err := command.Check(newCommand()); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
