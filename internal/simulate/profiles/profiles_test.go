package profiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// TestBuiltIn verifies that every built-in profile is listed and valid.
func TestBuiltIn(t *testing.T) {
	files, err := ready.ReadDir("ready")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(Names) {
		t.Errorf("%d files, %d names", len(files), len(Names))
	}
	for _, name := range Names {
		profile, err := Read(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		config, err := profile.Config()
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := engine.New(t.Context(), engine.Cluster{}, engine.Options{Config: config}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	profile, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := profile.Config(); err == nil || !strings.HasPrefix(err.Error(), file) {
		t.Errorf("%v, want the file name as the prefix", err)
	}
	if _, err := Read("limit"); err == nil || !strings.Contains(err.Error(), "or one of default, most-allocated, limits") {
		t.Errorf("%v, want the names of the profiles", err)
	}
}
