//go:build foreign

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestDocumentedCommands expects that Helm renders the documented install, upgrade and template
// commands with their values. TestChart in test/integration runs install, upgrade and uninstall in a
// cluster.
func TestDocumentedCommands(t *testing.T) {
	commands, err := doccheck.CommandsOf(project, "helm")
	must.Succeed(t, err)
	rendered := 0
	for _, command := range commands {
		verb, args := command.Words[1], command.Arguments()[1:]
		if !slices.Contains([]string{"install", "upgrade", "template"}, verb) {
			if verb != "uninstall" && verb != "show" {
				t.Errorf("%s: helm %s has no test", command, verb)
			}
			continue
		}
		if verb == "template" && !slices.Contains(args, "charts/plimsoll") {
			continue // a chart of the reader
		}
		rendered++
		var flags []string
		for _, arg := range args {
			switch arg {
			case "--reuse-values": // only of upgrade
			case "charts/plimsoll", "oci://ghcr.io/plimsoll-k8s/charts/plimsoll": // published by a release
				flags = append(flags, tool.Chart)
			case "values.yaml": // written by the reader
				_, file, _ := strings.Cut(valuesFile(t, "controller: {replicas: 3}\n"), "=")
				flags = append(flags, file)
			default:
				flags = append(flags, arg)
			}
		}
		out, err := tool.Run(t.Context(), append([]string{"template"}, flags...)...)
		if err != nil || !strings.Contains(out, "kind: Deployment") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if rendered < 5 {
		t.Errorf("found %d commands that install the chart, want at least 5", rendered)
	}
}

// TestDocumentedValuesFiles expects that the chart renders with the values files in docs/install.md.
func TestDocumentedValuesFiles(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(project, "docs", "install.md"))
	must.Succeed(t, err)
	blocks := strings.Split(string(raw), "\n```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Error("docs/install.md has no values files")
	}
	for _, block := range blocks {
		values, _, _ := strings.Cut(block, "\n```")
		render(t, values)
	}
}
