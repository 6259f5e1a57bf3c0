package plimsoll

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// docs/cli has a page for each command, generated from its help.
func TestPages(t *testing.T) {
	folder, generated := filepath.Join("..", "..", "..", "docs", "cli"), t.TempDir()
	cmd := newCommand()
	walk(cmd, func(cmd *cobra.Command) { cmd.DisableAutoGenTag = true })
	must.Succeed(t, doc.GenMarkdownTree(cmd, generated))
	want := pages(t, generated)
	for name, page := range want {
		want[name] = formatPage(page)
	}
	walk(cmd, func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() { // its page would link to its parent only
			name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
			want[name], _, _ = strings.Cut(want[name], "\n## SEE ALSO")
		}
	})
	if diff := cmp.Diff(want, pages(t, folder)); diff != "" && !*update {
		t.Fatalf("docs/cli is outdated (go test ./internal/cli/plimsoll -run Pages -update writes it): -want +got\n%s", diff)
	}
	if !*update {
		return
	}
	must.Succeed(t, os.RemoveAll(folder))
	must.Succeed(t, os.Mkdir(folder, 0o755))
	for name, page := range want {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(page), 0o644))
	}
}

// formatPage returns the Markdown of a page: headings begin with the first level, and indented lines of the help, such as
// lists of inputs, keep their layout.
func formatPage(page string) string {
	const fence = "```"
	var out []string
	fenced, indented := false, false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, fence) {
			fenced = !fenced
		}
		switch now := !fenced && strings.HasPrefix(line, "  "); {
		case now && !indented:
			out = append(out, "", fence)
			indented = true
		case !now && indented:
			out = append(out, fence)
			indented = false
		}
		if !fenced && strings.HasPrefix(line, "##") {
			line = line[1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// pages returns the pages in a directory by name.
func pages(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	must.Succeed(t, err)
	out := map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must.Succeed(t, err)
		out[filepath.Base(file)] = string(raw)
	}
	return out
}
