//go:build foreign

package servers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// awaitOnPage waits until the live page contains all texts.
func awaitOnPage(t *testing.T, url string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		eventually.True(t, "the live page lacks "+want, nil, func(ctx context.Context) (bool, error) {
			page, err := program.Get(ctx, url)
			return strings.Contains(page, want), err
		})
	}
}

// runInProject runs a script in the project's folder, with kubectl in PATH, and returns its output.
func runInProject(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(kubectl(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%s\n%v", script, out, err)
	}
	return string(out)
}

// kubectl returns the path of kubectl, in a folder with plimsoll and the names under which kubectl calls plimsoll.
func kubectl(t *testing.T) string {
	t.Helper()
	path, plimsoll := program.Build(t, "kubectl", "test/kubectl", "."), program.Path(t, "plimsoll")
	for _, name := range []string{"kubectl-plimsoll", "kubectl_complete-plimsoll"} {
		if err := os.Symlink(plimsoll, filepath.Join(filepath.Dir(path), name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	return path
}

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
	if out := run("plimsoll", "score", "-f", "../../../examples/limits"); !strings.Contains(out, " TOTAL") {
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
