package main

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// The version of a program contains the version of the Kubernetes code in it. Go records dependencies only
// in test binaries of a main package.
func TestVersionHasKubernetes(t *testing.T) {
	if got := version.String(); !strings.Contains(got, "Kubernetes v1.") {
		t.Errorf("version %s", got)
	}
}
