package whatif

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestInvalidScenario expects errors that name the file and the field in it, not the flag that it replaces.
func TestInvalidScenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	for text, want := range map[string]string{
		"":                               "found an empty file: must be YAML or JSON",
		"apiVersion: v1\nkind: Pod\n":    "unknown field \"apiVersion\"\nunknown field \"kind\"",
		"generate: {nodes: 3, podz: 20}": `generate: unknown field "podz"`,
		"generate: {nodes: 3, pods: 5}\nusage: burst": "usage: ",
	} {
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
		err := (&whatIfOptions{scenario: file}).readScenario(false)
		if err == nil || !strings.HasPrefix(err.Error(), file+": "+want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// TestInvalidSlack expects the error of a value before the error that one value is too few.
func TestInvalidSlack(t *testing.T) {
	cmd := NewCompareCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(strings.Fields("--slack 10 --generate nodes=5,pods=50 --autoscaler shape=16x64"))
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), `--slack: invalid value "10": `) {
		t.Errorf("error %v", err)
	}
}
