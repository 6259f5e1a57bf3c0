package provider

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func messageAt(seconds int) string {
	return fmt.Sprintf(
		`{"timestamp": %d, "data": {"NodeMetricsMap": {"node-1": {"metrics": [{"type": "CPU", "operator": "AVG", "value": 40}]}}}}`,
		seconds,
	)
}

// write replaces a file by renaming a new one.
func write(t *testing.T, path, content string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path+".new", []byte(content), 0o600))
	must.Succeed(t, os.Rename(path+".new", path))
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "load.json")
	source := NewFile(path)
	for _, seconds := range []int{1000, 2000} {
		write(t, path, messageAt(seconds))
		got, err := source.Read(t.Context())
		must.Succeed(t, err)
		want := load.Reading{
			Time:  time.Unix(int64(seconds), 0),
			Nodes: map[string]load.Node{"node-1": {CPU: load.Utilization{Mean: 0.4}, HasCPU: true}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if want := "the file " + path; source.String() != want {
		t.Errorf("%q, want %q", source, want)
	}
}

func TestReadErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, path string)
		// want contains %[1]s in place of the path.
		want string
	}{
		"missing": {func(*testing.T, string) {}, "open %[1]s: no such file or directory"},
		"malformed": {
			func(t *testing.T, path string) { write(t, path, "{\n x}") },
			`%[1]s: must be JSON in the format of a load watcher: invalid character 'x' looking for beginning of object key string`,
		},
		"a folder": {func(t *testing.T, path string) {
			must.Succeed(t, os.Mkdir(path, 0o700))
		}, "%[1]s: not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "load.json")
			tc.prepare(t, path)
			got, err := NewFile(path).Read(t.Context())
			if want := fmt.Sprintf(tc.want, path); err == nil || err.Error() != want {
				t.Errorf("error:\n%v\nwant:\n%s", err, want)
			}
			if diff := cmp.Diff(load.Reading{}, got); diff != "" {
				t.Error("a reading together with the error", diff)
			}
			if errors.Is(err, fs.ErrNotExist) != (name == "missing") { // which callers can detect
				t.Error(err)
			}
		})
	}
}
