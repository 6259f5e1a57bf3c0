package plimsoll

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var update = flag.Bool("update", false, "update the output of commands in the documentation")

// lessOverload matches the row of a clear reduction of the overload.
var lessOverload = regexp.MustCompile(`(?m)^overload, node minutes +[^-]+ -\S+ \[.*\] \*$`)

// Commands in the documentation print the documented output, in which comparisons show a clear effect. A block that begins with
// "$ plimsoll" runs in the root directory of the project.
func TestDocumentation(t *testing.T) {
	t.Chdir("../../..")
	t.Setenv("COLUMNS", "100") // so that tables fit the width of a page
	var files []string
	for _, pattern := range []string{"docs/plugins/*.md", "docs/*.md"} {
		found, err := filepath.Glob(pattern)
		must.Succeed(t, err)
		files = append(files, found...)
	}
	run := 0
	for _, file := range append(files, "README.md") {
		t.Run(file, func(t *testing.T) {
			before, err := os.ReadFile(file)
			must.Succeed(t, err)
			after, commands := runCommands(t, string(before))
			run += commands
			if after == string(before) {
				return
			}
			if !*update {
				t.Fatalf("%s has outdated output (go test ./internal/cli/plimsoll -update writes it), want\n%s", file, after)
			}
			must.Succeed(t, os.WriteFile(file, []byte(after), 0o600))
		})
	}
	if run < 5 {
		t.Errorf("found %d commands, want those of the three plugins, of slack and of the README", run)
	}
}

// runCommands returns the text with the current output of its commands, and the number of commands.
func runCommands(t *testing.T, text string) (string, int) {
	t.Helper()
	const open, end = "```console\n$ plimsoll ", "\n```"
	var out strings.Builder
	for commands := 0; ; commands++ {
		before, rest, found := strings.Cut(text, open)
		out.WriteString(before)
		if !found {
			return out.String(), commands
		}
		block, after, found := strings.Cut(rest, end)
		if !found {
			t.Fatalf("block without end: %s", rest)
		}
		command, _, _ := strings.Cut(block, "\n")
		var printed bytes.Buffer
		cmd := newCommand()
		cmd.SetOut(&printed)
		cmd.SetArgs(strings.Fields(command))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("plimsoll %s: %v", command, err)
		}
		if strings.HasPrefix(command, "compare ") && !lessOverload.MatchString(printed.String()) {
			t.Errorf("plimsoll %s shows no effect", command)
		}
		out.WriteString(open + command + "\n" + strings.TrimRight(printed.String(), "\n") + end)
		text = after
	}
}

// Each configuration in docs/load.md is valid and selects a load source.
func TestDocumentedConfigurations(t *testing.T) {
	t.Setenv(provider.SignalFxTokenVariable, "")
	text, err := os.ReadFile("../../../docs/load.md")
	must.Succeed(t, err)
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) < len(metricprovider.Types) {
		t.Errorf("%d configurations, want one for each of %v", len(blocks), metricprovider.Types)
	}
	access := provider.Cluster{Nodes: func() ([]*v1.Node, error) { return nil, nil }, Metrics: noMetrics{}}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if strings.HasPrefix(block, "metricProvider:") { // an argument of the plugin
			const plugin = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
				"profiles:\n- schedulerName: plimsoll\n  pluginConfig:\n  - name: LowRiskOverCommitment\n    args:\n      "
			block = plugin + strings.ReplaceAll(block, "\n", "\n      ")
		}
		file := filepath.Join(t.TempDir(), "scheduler.yaml")
		must.Succeed(t, os.WriteFile(file, []byte(block), 0o600))
		cfg, err := config.Load(file)
		if err != nil {
			t.Errorf("%v in\n%s", err, block)
			continue
		}
		for _, plugin := range cfg.Profiles[0].PluginConfig {
			args, ok := plugin.Args.(*config.LowRiskOverCommitmentArgs)
			if !ok {
				continue
			}
			chosen, any := shared.LoadConfigOf(args).Source()
			if _, err := provider.New(chosen, access); !any || err != nil {
				t.Errorf("%v in\n%s", err, block)
			}
		}
	}
}

type noMetrics struct{ metricsserver.Lister }
