package shadow

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPending has 30 finished recordings of an hour, one that is being written, and one that is older than the results that are kept. The
// last 24 that are finished are pending, the newest first. Their results do not make older ones pending.
func TestPending(t *testing.T) {
	folder, start := t.TempDir(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	name := func(hour int) string {
		return start.Add(time.Duration(hour)*time.Hour).Format("20060102T150405Z") + ".ndjson.gz"
	}
	for hour := range 31 {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name(hour)), nil, 0o600))
	}
	must.Succeed(t, os.WriteFile(filepath.Join(folder, name(-500)), nil, 0o600))
	store, err := shadow.OpenStore(folder, 365*24*time.Hour)
	must.Succeed(t, err)
	s := &server{options: &options{folder: folder, keep: 7}, store: store}
	s.current.Store(filepath.Join(folder, name(30)))
	pending := func() (files []string) {
		t.Helper()
		names, err := s.pending(start.Add(32 * time.Hour))
		must.Succeed(t, err)
		for _, name := range names {
			files = append(files, filepath.Base(name))
		}
		return files
	}
	var want []string
	for hour := range maxPending {
		want = append(want, name(29-hour))
	}
	if diff := cmp.Diff(want, pending()); diff != "" {
		t.Error(diff)
	}
	for i, file := range want[1:] {
		w := &shadow.Window{Part: result.Part{From: start.Add(time.Duration(i) * time.Hour)}, File: file}
		must.Succeed(t, store.Add(w, start))
	}
	if got := pending(); !slices.Equal(got, want[:1]) {
		t.Errorf("pending %s", fmt.Sprint(got))
	}
}
