package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestKubectl verifies that printed commands use the kubectl in PATH, or else the one that make demo builds beside the program.
func TestKubectl(t *testing.T) {
	self, err := os.Executable()
	must.Succeed(t, err)
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	if got := program("kubectl"); got != "kubectl" {
		t.Errorf("without any kubectl: %s", got)
	}
	built := filepath.Join(filepath.Dir(self), "kubectl")
	for _, file := range []string{built, filepath.Join(folder, "kubectl")} {
		must.Succeed(t, os.WriteFile(file, nil, 0o700))
		want := "kubectl"
		if file == built {
			want = built
		}
		if got := program("kubectl"); got != want {
			t.Errorf("with %s: %s", file, got)
		}
	}
	must.Succeed(t, os.Remove(built))
}
