package plimsoll

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// run runs the command under the name of a program, and returns its output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(adaptToKubectl(cmd, program, args))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return out.String()
}

// walk calls visit for each visible command.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, subcommand := range cmd.Commands() {
		if subcommand.IsAvailableCommand() && subcommand.Name() != "completion" {
			walk(subcommand, visit)
		}
	}
}

// Each command that prints results has the flag --output with table, wide, json and yaml.
func TestOutputFlag(t *testing.T) {
	commands := 0
	walk(newCommand(), func(cmd *cobra.Command) {
		flag := cmd.Flags().Lookup("output")
		if flag == nil {
			if !cmd.HasSubCommands() {
				t.Errorf("%s has no --output", cmd.CommandPath())
			}
			return
		}
		if cmd.Name() == "snapshot" || cmd.Name() == "record" {
			return // --output is a file
		}
		commands++
		if !strings.HasPrefix(flag.Usage, "table, wide, json") || !strings.Contains(flag.Usage, "yaml") || flag.Shorthand != "o" ||
			flag.DefValue != "table" {
			t.Errorf("%s: -%s %s (default %s)", cmd.CommandPath(), flag.Shorthand, flag.Usage, flag.DefValue)
		}
	})
	if commands < 11 {
		t.Errorf("%d commands with --output", commands)
	}
}

// JSON and YAML have the same fields.
func TestYAMLEqualsJSON(t *testing.T) {
	t.Chdir("../../..")
	for _, args := range [][]string{
		{"version"},
		{"score", "-f", "examples/limits"},
		{"explain", "node", "-f", "examples/nodes"},
		{"placement", "decide", "-f", "examples/placement/prioritizers"},
		{"load", "top", "--provider=File", "--address=examples/low-risk/load.json"},
		{"compare", "--profile=default", "--profile=limits", "--generate=nodes=2,pods=5", "--tail=1m"},
	} {
		var fromJSON, fromYAML any
		must.Succeed(t, json.Unmarshal([]byte(run(t, "plimsoll", append(args, "-o", "json")...)), &fromJSON))
		must.Succeed(t, yaml.Unmarshal([]byte(run(t, "plimsoll", append(args, "-o", "yaml")...)), &fromYAML))
		// The load is older in the second run.
		ignoreAge := cmpopts.IgnoreMapEntries(func(key string, _ any) bool { return key == "ageSeconds" })
		if diff := cmp.Diff(fromJSON, fromYAML, ignoreAge); diff != "" || fromJSON == nil {
			t.Errorf("%v: -json +yaml\n%s", args, diff)
		}
	}
}

// The values of flags are completed. Files are offered only where they are accepted.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"score --output ":      "table wide json yaml :4",
		"compare -o ":          "table wide json yaml html markdown :4",
		"load top --sort-by ":  "cpu memory name :4",
		"load top --provider ": "Prometheus KubernetesMetricsServer SignalFx Service File :4",
		"placement ":           "decide explain fit :4",
		"explain pod -f ../../../examples/limits/cluster.yaml ":    "pod1 pod2 pod3 pod4 pod5 :4",
		"explain node n1 -f ../../../examples/nodes/cluster.yaml ": "n1 n2 n3 n4 n5 :4",
		"completion ": "bash fish powershell zsh :4",
	} {
		args := strings.Split(line, " ")
		lines := strings.Split(strings.TrimSpace(run(t, completionName, args...)), "\n")
		for i := range lines {
			lines[i], _, _ = strings.Cut(lines[i], "\t")
		}
		if got := strings.Join(lines, " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := run(t, "plimsoll", "completion", shell); !strings.Contains(script, "plimsoll") {
			t.Errorf("%s: %s", shell, script)
		}
	}
}

// choice matches a list of values at the beginning of a flag's usage: a, b or c.
var choice = regexp.MustCompile(`^[a-zA-Z]+(, [a-zA-Z]+)* or [a-zA-Z]+\b`)

// Each flag whose usage lists its values has a completion.
func TestChoicesAreCompleted(t *testing.T) {
	walk(newCommand(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			_, completes := cmd.GetFlagCompletionFunc(flag.Name)
			if flag.Value.Type() == "string" && choice.MatchString(flag.Usage) && !completes {
				t.Errorf("%s --%s: %s: no completion", cmd.CommandPath(), flag.Name, flag.Usage)
			}
		})
	})
}

// The help says "kubectl plimsoll" if the command runs as a plugin, and only then.
func TestKubectlPlugin(t *testing.T) {
	help := run(t, "/usr/local/bin/kubectl-plimsoll", "slack", "status", "--help")
	for _, want := range []string{"\n  kubectl plimsoll slack status [POLICY...]", "until kubectl plimsoll slack status general"} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in\n%s", want, help)
		}
	}
	if help := run(t, "plimsoll", "slack", "status", "--help"); strings.Contains(help, "kubectl plimsoll") {
		t.Error(help)
	}
	if got := run(t, `kubectl-plimsoll.exe`, "version"); !strings.HasPrefix(got, "plimsoll ") {
		t.Error(got)
	}
}

// TestTablesFit checks that the tables of all commands fit a terminal of 80 columns.
func TestTablesFit(t *testing.T) {
	t.Chdir("../../..")
	for _, args := range [][]string{
		{"score", "-f", "examples/limits"},
		{"explain", "pod", "pod1", "--recording", "examples/snapshot/low-risk.ndjson.gz"},
		{"explain", "node", "-f", "examples/nodes"},
		{"placement", "decide", "-f", "examples/placement/prioritizers"},
		{"load", "top", "--provider=File", "--address=examples/low-risk/load.json"},
		{"slack", "plan", "-f", "examples/slack"},
		{
			"compare", "--profile=default", "--profile=limits", "--profile=low-risk", "--profile=predicted",
			"--generate=nodes=3,pods=20", "--tail=1m", "--seeds=2", "--usage=bursts:mean=0.7",
		},
		{ // a long name of a profile, and long differences
			"compare", "--profile=default", "--profile=most-allocated",
			"--generate=nodes=6,pods=90,shapes=8x32", "--tail=1m", "--seeds=2", "--usage=bursts:mean=0.6",
		},
	} {
		out := run(t, "plimsoll", args...)
		for line := range strings.Lines(out) {
			if strings.Contains(line, "   ") && utf8.RuneCountInString(line) > 81 {
				t.Errorf("plimsoll %s: a row of %d columns:\n%s", strings.Join(args, " "), len(line)-1, out)
				break
			}
		}
	}
}

// TestCompareMarkdown checks the output for a pull request: a table with a row for each figure, the assumptions folded.
func TestCompareMarkdown(t *testing.T) {
	out := run(t, "plimsoll", "compare", "--profile=default", "--profile=limits", "--generate=nodes=2,pods=5", "--tail=1m", "--seeds=2",
		"-o", "markdown")
	for _, want := range []string{
		"### Cannot tell: no node was overloaded with any profile.\n\n- **effect of limits:** ",
		"\ngenerated: nodes=2,pods=5: 2 nodes, 5 pods, 2 seeds\n",
		"\nlimits compared with default\n\n| figure | default | limits | difference |\n| --- | --- | --- | --- |\n| overload, node minutes | 0 | 0 | 0 |\n",
		"\n<details><summary>Assumptions</summary>\n\n- nodes and pods are generated with the seed 1\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
