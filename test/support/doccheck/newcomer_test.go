package doccheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPagesOfNewcomers expects that a reader who pastes the blocks of the README or the tutorial in their order has built
// plimsoll and set PATH before the first line that runs it, and has a cluster before the first line that reads one.
func TestPagesOfNewcomers(t *testing.T) {
	for _, file := range []string{"README.md", "docs/tutorial.md"} {
		text, err := os.ReadFile(filepath.Join(project, file))
		must.Succeed(t, err)
		built, inPath, lines := false, false, 0
		for _, block := range (Page{file, string(text)}).Blocks() {
			for line := range strings.Lines(block.Text) {
				line = strings.TrimSpace(line)
				switch {
				case slices.Contains([]string{"make demo", "make build", "make bin/plimsoll"}, line):
					built = true
				case line == "export PATH=$PWD/bin:$PATH":
					inPath = true
				case strings.HasPrefix(line, "plimsoll "):
					if lines++; !built || !inPath {
						t.Errorf("%s:%d: %q: plimsoll is not built and in PATH before", file, block.Line, line)
					}
				}
			}
		}
		if lines < 3 {
			t.Errorf("%s: found %d lines that run plimsoll", file, lines)
		}
	}
	tutorial, err := os.ReadFile(filepath.Join(project, "docs/tutorial.md"))
	must.Succeed(t, err)
	demo, snapshot := strings.Index(string(tutorial), "    make demo\n"), strings.Index(string(tutorial), "    plimsoll snapshot ")
	if demo < 0 || demo > snapshot {
		t.Error("the tutorial reads a cluster before make demo starts one")
	}
}

// TestSnapshotsHaveNamesOfTheirOwn expects that no two pages write a snapshot of the same name: plimsoll snapshot does not replace a file, and
// a reader of several pages is in the same folder.
func TestSnapshotsHaveNamesOfTheirOwn(t *testing.T) {
	pages, err := Pages(project)
	must.Succeed(t, err)
	written, found := regexp.MustCompile(`(?m)^    plimsoll snapshot (?:.* )?-o (\S+)`), map[string]string{}
	for _, page := range pages {
		if strings.HasPrefix(page.File, "docs/cli/") {
			continue
		}
		for _, line := range written.FindAllStringSubmatch(page.Text, -1) {
			if before, taken := found[line[1]]; taken {
				t.Errorf("%s writes the snapshot %s, which exists after %s", page.File, line[1], before)
			}
			found[line[1]] = page.File
		}
	}
	if len(found) < 4 {
		t.Errorf("found %d snapshots", len(found))
	}
}

// TestDemoIsBuiltAsAllPrograms expects that make demo compiles with the flags of make build: with other flags, a reader of
// the README would compile Kubernetes twice.
func TestDemoIsBuiltAsAllPrograms(t *testing.T) {
	flags := func(target string) string {
		cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--dry-run", target, "VERSION=v", "COMMIT=c", "DATE=d")
		cmd.Dir = project
		out, err := cmd.Output()
		must.Succeed(t, err)
		return regexp.MustCompile(`(?m)^.*go build .* -o `).FindString(string(out))
	}
	if demo, all := flags("demo"), flags("build"); demo != all || demo == "" {
		t.Errorf("make demo builds with\n%s\nmake build with\n%s", demo, all)
	}
}
