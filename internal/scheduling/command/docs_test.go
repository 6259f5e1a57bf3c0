package command

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// TestDocumentedCommands expects that all documented command lines are valid.
func TestDocumentedCommands(t *testing.T) {
	const name = "plimsoll-scheduler"
	doccheck.CheckProgram(t, "../../..", name, func() *cobra.Command { return NewCommand(name) }, 0, 2)
}
