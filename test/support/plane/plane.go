// Package plane starts control planes for tests.
package plane

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

// Start starts a control plane for the duration of the test, and returns it with administrator access.
func Start(t testing.TB, options controlplane.Options) (*controlplane.ControlPlane, *rest.Config) {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	config, err := cp.Config("test", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return cp, config
}
