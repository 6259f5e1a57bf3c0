package controller

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// Each command line of the controller in the documentation and in its help is valid.
func TestDocumentedCommands(t *testing.T) {
	taken, err := doccheck.TakenBy("../../..", name, NewCommand)
	if err != nil {
		t.Fatal(err)
	}
	if taken.Pages < 4 || taken.Examples != 5 {
		t.Errorf("found %d commands and %d examples", taken.Pages, taken.Examples)
	}
	for _, wrong := range taken.Wrong {
		t.Error(wrong)
	}
}
