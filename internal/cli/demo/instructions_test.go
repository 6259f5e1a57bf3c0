package demo

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKubectl verifies that printed commands use the kubectl in PATH, or else the one that make demo builds beside the program.
func TestKubectl(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	if got := program("kubectl"); got != "kubectl" {
		t.Errorf("without any kubectl: %s", got)
	}
	built := filepath.Join(filepath.Dir(self), "kubectl")
	for _, file := range []string{built, filepath.Join(folder, "kubectl")} {
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		want := "kubectl"
		if file == built {
			want = built
		}
		if got := program("kubectl"); got != want {
			t.Errorf("with %s: %s", file, got)
		}
	}
	if err := os.Remove(built); err != nil {
		t.Fatal(err)
	}
}
