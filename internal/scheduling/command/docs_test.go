package command

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// The scheduler accepts every command line in the documentation and in its help.
func TestDocumentedCommands(t *testing.T) {
	const name = "plimsoll-scheduler"
	taken, err := doccheck.TakenBy("../../..", name, func() *cobra.Command { return NewCommand(name) })
	if err != nil {
		t.Fatal(err)
	}
	if taken.Pages < 1 || taken.Examples != 2 {
		t.Errorf("%d commands and %d examples found", taken.Pages, taken.Examples)
	}
	for _, wrong := range taken.Wrong {
		t.Error(wrong)
	}
}
