package plimsoll

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// integrated maps each command that reads a cluster or a load source to the integration test that
// runs it.
var integrated = map[string]string{
	"plimsoll doctor":            "TestPlimsollOnAHub",
	"plimsoll explain node":      "TestExplainLive",
	"plimsoll explain pod":       "TestSnapshot",
	"plimsoll load top":          "TestMetricsServer",
	"plimsoll placement explain": "TestPlimsollOnAHub",
	"plimsoll placement fit":     "TestPlacementByFit",
	"plimsoll record":            "TestRealPrometheus",
	"plimsoll score":             "TestExplainLive",
	"plimsoll shadow":            "TestShadowCommand",
	"plimsoll slack plan":        "TestExplainLive",
	"plimsoll slack status":      "TestSlackMirrors",
	"plimsoll snapshot":          "TestSnapshot",
}

// files maps the files of readers in the documentation to files of the project.
var files = map[string]string{
	"cluster.yaml":                      "examples/limits/cluster.yaml",
	"cluster/cluster.yaml":              "examples/low-risk/cluster.yaml",
	"cluster/pools.yaml":                "examples/slack/cluster.yaml",
	"load.json":                         "examples/low-risk/load.json",
	"scheduler.yaml":                    "examples/profiles/limits.yaml",
	"old.yaml":                          "examples/profiles/allocatable-least.yaml",
	"new.yaml":                          "examples/profiles/limits.yaml",
	"policy.yaml":                       "examples/slack/policy.yaml",
	"s.ndjson.gz":                       "examples/snapshot/low-risk.ndjson.gz",
	"mine.ndjson.gz":                    "examples/snapshot/low-risk.ndjson.gz",
	"look.ndjson.gz":                    "examples/snapshot/low-risk.ndjson.gz",
	"first.ndjson.gz":                   "examples/snapshot/low-risk.ndjson.gz",
	"demo.ndjson.gz":                    "examples/snapshot/low-risk.ndjson.gz",
	"shadow/20261121T120000Z.ndjson.gz": "examples/recording/week.ndjson.gz",
	"week.ndjson.gz":                    "examples/recording/week.ndjson.gz",
	"bitbrains.ndjson.gz":               "examples/recording/week.ndjson.gz",
	"deployment.yaml":                   "examples/placement/fit/workload.yaml",
	"pod.yaml":                          "examples/placement/fit/workload.yaml",
	"hub.yaml":                          "examples/placement/prioritizers/fleet.yaml",
	"capacities.yaml":                   "examples/placement/fit/clusters.yaml",
	"hub/fleet.yaml":                    "examples/placement/prioritizers/fleet.yaml",
	"hub/placement.yaml":                "examples/placement/prioritizers/placement.yaml",
	"placement.yaml":                    "examples/placement/prioritizers/placement.yaml",
}

// written are further files of readers, with their content.
var written = map[string]string{
	"0.json":         `{"apiVersion": "whatif.plimsoll.dev/v1", "kind": "WhatIf", "shard": {"index": 0, "count": 2}, "seeds": [1]}`,
	"1.json":         `{"apiVersion": "whatif.plimsoll.dev/v1", "kind": "WhatIf", "shard": {"index": 1, "count": 2}, "seeds": [2]}`,
	"decisions.yaml": "apiVersion: v1\nkind: List\nitems: []\n",
}

// piped is used as the output of kubectl get.
const piped = "examples/limits/cluster.yaml"

// names maps names of objects in the documentation to names of objects in these files.
var names = map[string]string{"shop/web-7d4b9c-x2x8p": "default/pod3"}

// TestDocumentedCommands checks that each command line in the documentation is valid. Command lines
// that do not read a cluster are also run, over the files above; the remaining command lines must
// be run by an integration test.
func TestDocumentedCommands(t *testing.T) {
	project, err := filepath.Abs("../../..")
	must.Succeed(t, err)
	commands, err := doccheck.CommandsOf(project, "plimsoll")
	must.Succeed(t, err)
	integration := integrationTests(t, project)
	changeToReaderDir(t, project)
	checked, done := 0, map[string]bool{}
	for _, command := range commands {
		checked++
		cmd, err := command.Check(newCommand())
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		switch {
		case command.Shown: // run by TestDocumentation
		case showsGenerated(command): // run by TestExamplesShowEffects
		case readsCluster(cmd):
			if test := integrated[cmd.CommandPath()]; !runs(integration[test], cmd.CommandPath()) {
				t.Errorf("%s reads a cluster, and no integration test runs %q (expected: %q)", command, cmd.CommandPath(), test)
			}
		case command.Inline && !hasInput(cmd) || slices.Contains(command.Words, "..."): // abbreviated
		default:
			args := command.Arguments()
			if key := strings.Join(args, " "); done[key] {
				continue
			} else {
				done[key] = true
			}
			if err := runCommand(t, filepath.Join(project, piped), args); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		}
	}
	if checked < 80 || len(done) < 20 {
		t.Errorf("checked %d commands, %d of them ran", checked, len(done))
	}
	for path := range integrated {
		if cmd, _, err := newCommand().Find(strings.Fields(path)[1:]); err != nil || cmd.CommandPath() != path {
			t.Errorf("command %q not found", path)
		}
	}
}

// changeToReaderDir changes to a directory as readers have it: with the examples of the project and
// files of their own.
func changeToReaderDir(t *testing.T, project string) {
	t.Helper()
	folder := t.TempDir()
	must.Succeed(t, os.CopyFS(filepath.Join(folder, "examples"), os.DirFS(filepath.Join(project, "examples"))))
	t.Chdir(folder)
	for name, content := range written {
		must.Succeed(t, os.WriteFile(name, []byte(content), 0o600))
	}
	for name, source := range files {
		must.Succeed(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Succeed(t, os.Link(filepath.FromSlash(source), name))
	}
}

// runCommand runs the command with the file input as standard input.
func runCommand(t *testing.T, input string, args []string) error {
	t.Helper()
	in, err := os.Open(input)
	must.Succeed(t, err)
	defer in.Close()
	for i, arg := range args {
		if name, ok := names[arg]; ok {
			args[i] = name
		}
	}
	if args[0] == "compare" || args[0] == "simulate" {
		// Two seeds suffice: the duration grows with the number of seeds.
		if i := slices.Index(args, "--seeds"); i >= 0 {
			args = slices.Delete(args, i, i+2)
		}
		args = append(args, "--seeds", "2")
	}
	if args[0] == "recommend" { // two profiles suffice: TestFind of package recommend has a whole search
		args = append(args, "--profile", "default", "--profile", "packed")
		if !slices.Contains(args, "--change") {
			args = append(args, "--change", "profile")
		}
	}
	// Existing files are not replaced.
	for i, arg := range args[:len(args)-1] {
		if slices.Contains([]string{"--report", "--write"}, arg) {
			must.Succeed(t, os.RemoveAll(args[i+1]))
		}
	}
	cmd := newCommand()
	var out bytes.Buffer
	cmd.SetIn(in)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	if base.ExitCode(err, base.ExitUsage) == base.ExitCondition {
		return nil // --fail-on is true
	}
	if err == nil && out.Len() == 0 {
		return errors.New("no output")
	}
	return err
}

// readsCluster reports whether a command with parsed flags reads a cluster or a load source.
func readsCluster(cmd *cobra.Command) bool {
	flags := cmd.Flags()
	return (flags.Lookup("kubeconfig") != nil || flags.Lookup("prometheus") != nil) && (!cmd.HasSubCommands() || cmd.Name() == "shadow") &&
		!hasInput(cmd)
}

// hasInput reports whether a flag of a command sets its input.
func hasInput(cmd *cobra.Command) bool {
	for _, name := range []string{"filename", "recording", "generate", "clusters"} {
		if name == "filename" && cmd.Flags().Lookup("clusters") != nil {
			continue // the workload, whose clusters are another input
		}
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			return true
		}
	}
	return false
}

// integrationTests returns the source files of integration tests by the names of the tests.
func integrationTests(t *testing.T, project string) map[string]string {
	t.Helper()
	tests := map[string]string{}
	err := filepath.WalkDir(filepath.Join(project, "test"), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(file)
		for _, rest := range strings.Split(string(raw), "\nfunc Test")[1:] {
			name, _, _ := strings.Cut(rest, "(")
			tests["Test"+name] = string(raw)
		}
		return err
	})
	must.Succeed(t, err)
	return tests
}

// runs reports whether the source of a test contains a command as a list of words.
func runs(source, path string) bool {
	words := strings.Fields(path)[1:]
	return strings.Contains(strings.Join(strings.Fields(source), " "), `"`+strings.Join(words, `", "`)+`"`)
}
