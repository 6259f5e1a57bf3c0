package source

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRelocated verifies that all files of a specification are renamed, and nothing else.
func TestRelocated(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, want Spec
		files      []string
	}{
		"manifests": {
			Spec{Files: []string{"a.yaml", "-", "dir"}, Stdin: []byte("x"), Strict: true, Pack: 1},
			Spec{Files: []string{"0/a.yaml", "-", "0/dir"}, Stdin: []byte("x"), Strict: true, Pack: 1},
			[]string{"a.yaml", "dir"},
		},
		"snapshot":  {Spec{Snapshot: "s.tar.gz", Reschedule: true}, Spec{Snapshot: "0/s.tar.gz", Reschedule: true}, []string{"s.tar.gz"}},
		"recording": {Spec{Recording: "w.plrec,from=1h,to=2h"}, Spec{Recording: "0/w.plrec,from=1h,to=2h"}, []string{"w.plrec"}},
		"openb": {
			Spec{Trace: "openb:n.csv,p.csv,fill=0.5,over=60"},
			Spec{Trace: "openb:0/n.csv,0/p.csv,fill=0.5,over=60"},
			[]string{"n.csv", "p.csv"},
		},
		"openb without options": {Spec{Trace: "openb:n.csv,p.csv"}, Spec{Trace: "openb:0/n.csv,0/p.csv"}, []string{"n.csv", "p.csv"}},
		"alibaba":               {Spec{Trace: "alibaba2018:dir/,from=5"}, Spec{Trace: "alibaba2018:0/dir,from=5"}, []string{"dir"}},
		"generated":             {Spec{Generate: "nodes=1,pods=1", Pack: -1}, Spec{Generate: "nodes=1,pods=1", Pack: -1}, nil},
	} {
		var files []string
		got, err := tc.spec.Relocated(func(path string) (string, error) {
			files = append(files, path)
			return "0/" + path, nil
		})
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" || !slices.Equal(files, tc.files) {
			t.Errorf("%s: %v, files %v, %s", name, err, files, diff)
		}
		failed := errors.New("no such file")
		if _, err := tc.spec.Relocated(func(string) (string, error) { return "", failed }); tc.files != nil && !errors.Is(err, failed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
