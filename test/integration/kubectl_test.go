package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// TestKubectlPlugin checks that kubectl runs plimsoll as a plugin, and calls it for completion.
func TestKubectlPlugin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubectl := filepath.Join(dir, "kubectl")
	if err := program.Build(t.Context(), "../kubectl", kubectl, "."); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubectl-plimsoll", "kubectl_complete-plimsoll"} {
		if err := os.Symlink(binaries.plimsoll, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), kubectl, args...)
		cmd.Env = append(os.Environ(), "PATH="+dir, "HOME="+dir, "KUBECONFIG=/nonexistent")
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
