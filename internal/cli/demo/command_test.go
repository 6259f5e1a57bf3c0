package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
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

// TestKubectl verifies that printed commands use the kubectl in PATH, or else the one that make demo builds beside the program.
func TestKubectl(t *testing.T) {
	self, err := os.Executable()
	must.Succeed(t, err)
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	if got := program("kubectl"); got != "kubectl" {
		t.Errorf("without any kubectl: %s", got)
	}
	built := filepath.Join(filepath.Dir(self), "kubectl")
	for _, file := range []string{built, filepath.Join(folder, "kubectl")} {
		must.Succeed(t, os.WriteFile(file, nil, 0o700))
		want := "kubectl"
		if file == built {
			want = built
		}
		if got := program("kubectl"); got != want {
			t.Errorf("with %s: %s", file, got)
		}
	}
	must.Succeed(t, os.Remove(built))
}

// TestSummary expects one line for each scenario, with the pods that are on another node with Plimsoll, or with the
// first unexpected result.
func TestSummary(t *testing.T) {
	pod := func(profile, name, node string) demo.Result {
		return demo.Result{Scenario: "limits", Profile: profile, Object: name, Got: node, Want: "n2", OK: node != "bad"}
	}
	const byDefault, ours = demo.DefaultProfile, "plimsoll-limits"
	const limits = "the node whose limits fit better, not the one with fewer requests"
	for _, tc := range []struct {
		name, want string
		results    []demo.Result
	}{
		{"limits", limits + " (a, c: n1 -> n2; d: pending -> n2)", []demo.Result{
			pod(byDefault, "a", "n1"), pod(byDefault, "b", "n2"), pod(byDefault, "c", "n1"), pod(byDefault, "d", demo.Pending),
			pod(ours, "a", "n2"), pod(ours, "b", "n2"), pod(ours, "c", "n2"), pod(ours, "d", "n2"),
		}},
		{"limits", limits + " (the same nodes)", []demo.Result{pod(byDefault, "a", "n1"), pod(ours, "a", "n1")}},
		{
			"limits", "unexpected result: scenario limits, plimsoll-limits, a -> bad, want n2",
			[]demo.Result{pod(byDefault, "a", "n1"), pod(ours, "a", "bad")},
		},
		{slack.Scenario, "pods of a burst wait up to 3.14 s without slack, up to 0.03 s with slack", []demo.Result{
			{Profile: slack.WithoutSlack, OK: true, Seconds: 3.14},
			{Profile: slack.WithoutSlack, OK: true},
			{Profile: slack.WithSlack, OK: true},
			{Profile: slack.WithSlack, OK: true, Seconds: 0.02},
			{Profile: slack.WithSlack, OK: true, Seconds: 0.03},
		}},
		{fleet.Scenario, "placements follow the resources of clusters, stay, or go where workloads fit, as configured " +
			"(2 decisions, the slowest after 0.23 s)", []demo.Result{
			{OK: true, Seconds: 0.23}, {OK: true},
		}},
	} {
		got := summary(tc.name, tc.results)
		if got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
		var out strings.Builder
		printRow(&out, tc.name, got)
		for line := range strings.Lines(out.String()) {
			if len(line) > 81 {
				t.Errorf("a line of %d columns: %s", len(line)-1, line)
			}
		}
	}
}
