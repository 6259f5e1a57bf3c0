package main

import (
	"os"
	"os/exec"
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
			[]site{{"v0.1", "v0.1.0", newest}},
			site{"v0.1", "v0.1.1", nil},
			[]site{{"v0.1", "v0.1.1", newest}},
		},
		// 10 > 9, although "v0.10" < "v0.9"
		"numbers": {
			[]site{{"v0.9", "v0.9.3", newest}},
			site{"v0.10", "v0.10.0", nil},
			[]site{{"v0.10", "v0.10.0", newest}, {"v0.9", "v0.9.3", none}},
		},
		"patch of an old version": {
			[]site{{"v1.0", "v1.0.0", newest}, {"v0.9", "v0.9.3", none}},
			site{"v0.9", "v0.9.4", nil},
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

// TestPublish runs .ci/docs for two versions in a copy of the project with an origin of its own: the branch gh-pages of the
// origin has both versions, and nothing else of the project.
func TestPublish(t *testing.T) {
	folder := t.TempDir()
	origin, project := filepath.Join(folder, "origin"), filepath.Join(folder, "project")
	for _, name := range []string{".ci", "docs", "hack/docversions"} {
		if err := os.CopyFS(filepath.Join(project, name), os.DirFS(filepath.Join("../..", name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Makefile", "mkdocs.yml", "go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(project, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shell := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", line)
		cmd.Dir = project
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	shell(`echo /dist/ > .gitignore; git init -q --bare "` + origin + `"; git init -q; git remote add origin "` + origin + `"; git add .
git -c user.name=test -c user.email=test@example.com commit -q -m "A project"`)
	shell("VERSION=v0.1.0 .ci/docs")
	shell("VERSION=v0.2.0 .ci/docs")
	const want = ".nojekyll\nindex.html\nv0.1\nv0.2\nversions.json\n"
	if files := shell(`git -C "` + origin + `" ls-tree --name-only gh-pages`); files != want {
		t.Errorf("gh-pages has\n%s", files)
	}
	sites, err := read(published(t, origin, list))
	if diff := cmp.Diff([]site{{"v0.2", "v0.2.0", []string{latest}}, {"v0.1", "v0.1.0", []string{}}}, sites); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	if status := shell("git worktree list; git status --short"); strings.Count(status, "\n") != 1 {
		t.Errorf("the project has changes:\n%s", status)
	}
}

// published returns the path of a copy of a file of gh-pages.
func published(t *testing.T, origin, name string) string {
	t.Helper()
	content, err := exec.CommandContext(t.Context(), "git", "-C", origin, "show", "gh-pages:"+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
