package whatif

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestShadowCommand runs the command until it records and serves its page, and prints its report. TestCluster of internal/cli/shadow tests
// its verdict.
func TestShadowCommand(t *testing.T) {
	cp, _, client := testcluster.StartControlPlane(t)
	testcluster.CreateNode(t, client, "node")
	folder, port := filepath.Join(t.TempDir(), "shadow"), program.FreePort(t)
	process := program.Start(t, program.Path(t, "plimsoll"), "shadow", "--folder", folder, "--kubeconfig", cp.Kubeconfig,
		fmt.Sprintf("--listen=127.0.0.1:%d", port))
	eventually.True(t, "nothing is recorded", process, func(context.Context) (bool, error) {
		return strings.Contains(process.String(), "recording "+folder), nil
	})
	if page, err := program.Get(t.Context(), fmt.Sprintf("http://127.0.0.1:%d/", port)); err != nil ||
		!strings.Contains(page, "no window is complete. The current window began at ") {
		t.Errorf("%s, %v", page, err)
	}
	process.Stop(t)
	if out, _ := testcluster.MustPlimsoll(t, "shadow", "report", folder); !strings.Contains(out, "no window is complete.") {
		t.Errorf("report: %s", out)
	}
}
