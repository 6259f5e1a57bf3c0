package controller

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// Every command line of the controller in the documentation and in its own help is
// one that it takes.
func TestDocumentedCommands(t *testing.T) {
	taken, err := doccheck.TakenBy("../../..", name, NewCommand)
	if err != nil {
		t.Fatal(err)
	}
	if taken.Pages < 4 || taken.Examples != 5 {
		t.Errorf("%d commands and %d examples found", taken.Pages, taken.Examples)
	}
	for _, wrong := range taken.Wrong {
		t.Error(wrong)
	}
}
