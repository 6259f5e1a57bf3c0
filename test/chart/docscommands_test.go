package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// What the documentation tells Helm to install, Helm renders: the values are
// there and make sense. Everything else about these commands (TestChart in
// test/integration installs, upgrades and uninstalls) takes a cluster.
func TestDocumentedCommands(t *testing.T) {
	commands, err := doccheck.Of(project, "helm")
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for _, command := range commands {
		verb, args := command.Words[1], command.Arguments()[1:]
		if !slices.Contains([]string{"install", "upgrade", "template"}, verb) {
			if verb != "uninstall" {
				t.Errorf("%s: no test of helm %s is known", command, verb)
			}
			continue
		}
		rendered++
		var of []string
		for _, arg := range args {
			switch arg {
			case "--reuse-values": // of upgrade only
			case "charts/plimsoll":
				of = append(of, tool.Chart)
			case "values.yaml": // the reader's own
				_, file, _ := strings.Cut(valuesFile(t, "controller: {replicas: 3}\n"), "=")
				of = append(of, file)
			default:
				of = append(of, arg)
			}
		}
		out, err := tool.Run(t.Context(), append([]string{"template"}, of...)...)
		if err != nil || !strings.Contains(out, "kind: Deployment") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if rendered < 5 {
		t.Errorf("%d commands found that install something", rendered)
	}
}

// The values that the page about installing shows can be copied.
func TestDocumentedValuesFiles(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(project, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(raw), "\n```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Error("no values found")
	}
	for _, block := range blocks {
		values, _, _ := strings.Cut(block, "\n```")
		render(t, values)
	}
}
