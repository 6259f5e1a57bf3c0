package loadwatcher

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// Every command line of the service in the documentation and in its own help is
// one that it takes.
func TestDocumentedCommands(t *testing.T) {
	taken, err := doccheck.TakenBy("../../..", name, NewCommand)
	if err != nil {
		t.Fatal(err)
	}
	if taken.Pages < 2 || taken.Examples != 3 {
		t.Errorf("%d commands and %d examples found", taken.Pages, taken.Examples)
	}
	for _, wrong := range taken.Wrong {
		t.Error(wrong)
	}
}
