package whatif

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestGeneratedFolders checks that the folder of a process that was killed is removed a day later, and the folders of others are not.
func TestGeneratedFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, age := range map[string]time.Duration{"plimsoll-generated-1": 25 * time.Hour, "plimsoll-generated-2": 0, "other": 25 * time.Hour} {
		path := filepath.Join(os.TempDir(), name)
		must.Succeed(t, os.MkdirAll(filepath.Join(path, "inner"), 0o700))
		must.Succeed(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	folder, err := generatedFolder()
	must.Succeed(t, err)
	for path, want := range map[string]bool{folder: true, "plimsoll-generated-1": false, "plimsoll-generated-2": true, "other": true} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(os.TempDir(), path)
		}
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}
