package shadow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestFlagErrors checks that errors name the flag, also errors of the configuration of recordings.
func TestFlagErrors(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]}`
	must.Succeed(t, os.WriteFile(kubeconfig, []byte(content), 0o600))
	for args, want := range map[string]string{
		"--every 1m":         "--every: invalid value 1m0s: must be at least 10m0s, ten steps of 1m0s",
		"--every 25h":        "--every: invalid value 25h0m0s: must be at most 24h",
		"--folder shadow.go": `--folder: invalid value "shadow.go": must be a directory`,
		"--listen nope":      `--listen: invalid value "nope": must be HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:7654`,
		"--step 1ms":         "--step: invalid value 1ms",
		"--days 0":           "--days: invalid value 0: must be from 1 to 365",
		"--keep 1":           "--keep: invalid value 1: must be from --days (7) to 365",
		"--candidate low":    "--candidate: ",
		"--candidate predicted --candidate predicted": "--candidate: found predicted twice",
	} {
		cmd := NewCommand()
		cmd.SetArgs(strings.Fields("--kubeconfig " + kubeconfig + " --folder " + t.TempDir() + " " + args))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) || base.ExitCode(err, 2) != 2 {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
	}
}

// TestReportOfAnotherFolder checks that a folder of another program is not a shadow without results.
func TestReportOfAnotherFolder(t *testing.T) {
	cmd := newReportCommand()
	cmd.SetArgs([]string{t.TempDir()})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "found no recordings in /") {
		t.Errorf("error %v", err)
	}
}
