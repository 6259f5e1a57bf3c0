package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdd(t *testing.T) {
	none, newest := []string{}, []string{latest}
	for name, tc := range map[string]struct {
		sites []site
		added site
		want  []site
	}{
		"first": {nil, site{"v0.1", "v0.1.0", nil}, []site{{"v0.1", "v0.1.0", newest}}},
		"patch": {
			[]site{{"v0.1", "v0.1.0", newest}}, site{"v0.1", "v0.1.1", nil},
			[]site{{"v0.1", "v0.1.1", newest}},
		},
		// 10 > 9, although "v0.10" < "v0.9"
		"numbers": {
			[]site{{"v0.9", "v0.9.3", newest}}, site{"v0.10", "v0.10.0", nil},
			[]site{{"v0.10", "v0.10.0", newest}, {"v0.9", "v0.9.3", none}},
		},
		"patch of an old version": {
			[]site{{"v1.0", "v1.0.0", newest}, {"v0.9", "v0.9.3", none}}, site{"v0.9", "v0.9.4", nil},
			[]site{{"v1.0", "v1.0.0", newest}, {"v0.9", "v0.9.4", none}},
		},
	} {
		if diff := cmp.Diff(tc.want, add(tc.sites, tc.added)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestInvalid(t *testing.T) {
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		list      string
		arguments []string
		want      string
	}{
		"no version": {"[]", []string{folder}, `-version: invalid value "": must be a semantic version such as v0.1.0`},
		"no folder":  {"[]", []string{"-version=v0.1.0"}, "found 0 arguments: must be the folder of all versions"},
		"no JSON":    {"x", []string{"-version=v0.1.0", folder}, "versions.json: invalid character"},
		"other list": {`[{"version":"../x"}]`, []string{"-version=v0.1.0", folder}, `version: invalid value "../x": must be a minor version such as v0.1`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(folder, list), []byte(tc.list), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := run(t.Context(), tc.arguments); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestPrerelease expects that a version before a release changes nothing.
func TestPrerelease(t *testing.T) {
	folder := t.TempDir()
	if err := run(t.Context(), []string{"-version=v0.2.0-rc.1", folder}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
