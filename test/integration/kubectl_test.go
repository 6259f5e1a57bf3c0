package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// kubectl returns the path of kubectl, in a folder with plimsoll and the names under which kubectl calls plimsoll.
var kubectl = builtOnce("kubectl", func(ctx context.Context, path string) error {
	for _, name := range []string{"plimsoll", "kubectl-plimsoll", "kubectl_complete-plimsoll"} {
		if err := os.Symlink(binaries.plimsoll, filepath.Join(filepath.Dir(path), name)); err != nil {
			return err
		}
	}
	return program.Build(ctx, "../kubectl", path, ".")
})

// TestKubectlPlugin checks that kubectl runs plimsoll as a plugin, and calls it for completion.
func TestKubectlPlugin(t *testing.T) {
	t.Parallel()
	kubectl := kubectl(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), kubectl, args...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(kubectl), "HOME="+t.TempDir(), "KUBECONFIG=/nonexistent")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := run("plimsoll", "score", "-f", "../../examples/limits"); !strings.Contains(out, " TOTAL") {
		t.Errorf("kubectl plimsoll score:\n%s", out)
	}
	if out := run("plimsoll", "slack", "plan", "--help"); !strings.Contains(out, "kubectl plimsoll slack plan [") {
		t.Errorf("kubectl plimsoll slack plan --help:\n%s", out)
	}
	for line, want := range map[string]string{
		"plimsoll ":                    "placement",
		"plimsoll score -o ":           "yaml",
		"plimsoll load top --sort-by ": "memory",
	} {
		if out := run(append([]string{"__complete"}, strings.Split(line, " ")...)...); !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("completion of kubectl %s:\n%s\nwant %s", line, out, want)
		}
	}
}
