package realnodes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestChoose expects the program with an ID, or the only one, of those whose folder is locked.
func TestChoose(t *testing.T) {
	state := t.TempDir()
	start := func(id, inside string, isLocked bool) {
		writeFiles(t, state, map[string]string{id + "/lock": "", id + "/inside": inside})
		lock, err := os.Open(filepath.Join(state, id, "lock"))
		must.Succeed(t, err)
		t.Cleanup(func() { lock.Close() })
		if isLocked {
			must.Succeed(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
		}
	}
	check := func(id string, want int, wantErr string) {
		t.Helper()
		got, err := choose(running(state), id)
		switch {
		case err != nil && (wantErr == "" || !strings.HasPrefix(err.Error(), wantErr)):
			t.Errorf("%q: error %q, want %q", id, err, wantErr)
		case err == nil && (got.Inside != want || got.Kubeconfig() != filepath.Join(state, got.ID, "kubeconfig")):
			t.Errorf("%q: %+v, want process %d", id, got, want)
		}
	}
	check("", 0, "no cluster runs")
	check("5", 0, "no cluster runs")
	start("5000001", "11", false) // was killed
	start("5000002", "", true)    // has not started the process inside
	check("", 0, "no cluster runs")
	start("5000003", "33", true)
	check("", 33, "")
	check("5000003", 33, "")
	check("5000001", 0, "no cluster 5000001 runs, these run:\n  5000003  ")
	start("5000004", "44", true)
	check("", 0, "2 clusters run, choose one of them by its ID:\n  5000003  \n  5000004  ")
	check("5000003", 33, "")
	check("5000004", 44, "")
}
