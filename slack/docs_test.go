package slack

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedTestsExist checks that the tests named in docs/slack.md exist.
func TestDocumentedTestsExist(t *testing.T) {
	docs, err := os.ReadFile("../docs/slack.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, folder := range []string{".", "../internal/algo/slack", "../internal/controllers/slack", "../test/integration", "../test/chaos"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			tests.Write(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`((?:Test|Benchmark)[A-Za-z]+)`").FindAllStringSubmatch(string(docs), -1)
	if len(named) < 15 {
		t.Errorf("docs/slack.md names %d tests, want at least 15", len(named))
	}
	for _, name := range named {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("docs/slack.md names %s, which does not exist", name[1])
		}
	}
}
