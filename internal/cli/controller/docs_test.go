package controller

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// TestDocumentedCommands expects that all documented command lines are valid.
func TestDocumentedCommands(t *testing.T) {
	doccheck.CheckProgram(t, "../../..", name, NewCommand, 4, 5)
}
