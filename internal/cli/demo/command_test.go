package demo

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestHelp expects that the help fits 80 columns, and that errors of flags name what is allowed.
func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var out strings.Builder
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--help"})
	must.Succeed(t, cmd.ExecuteContext(t.Context()))
	for line := range strings.Lines(out.String()) {
		if columns := utf8.RuneCountInString(line) - 1; columns > 80 {
			t.Errorf("a line of %d columns: %s", columns, line)
		}
	}
	const want = `--scenario: invalid value "limit": must be one of predicted, limits, `
	cmd = newCommand()
	cmd.SetArgs([]string{"--scenario", "limit"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
