package plimsoll

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// integrated are the commands that ask a cluster, or a source of load, and the
// integration test that runs each over real ones.
var integrated = map[string]string{
	"plimsoll doctor":            "TestPlimsollOnAHub",
	"plimsoll explain pod":       "TestSnapshot",
	"plimsoll load top":          "TestMetricsServer",
	"plimsoll placement explain": "TestPlimsollOnAHub",
	"plimsoll slack status":      "TestSlackMirrors",
	"plimsoll snapshot":          "TestSnapshot",
}

// files stand where the documentation has files that its readers have.
var files = map[string]string{
	"cluster.yaml":         "examples/limits/cluster.yaml",
	"cluster/cluster.yaml": "examples/low-risk/cluster.yaml",
	"cluster/pools.yaml":   "examples/slack/cluster.yaml",
	"load.json":            "examples/low-risk/load.json",
	"scheduler.yaml":       "examples/profiles/limits.yaml",
	"old.yaml":             "examples/profiles/allocatable-least.yaml",
	"new.yaml":             "examples/profiles/limits.yaml",
	"policy.yaml":          "examples/slack/policy.yaml",
	"s.tar.gz":             "examples/snapshot/low-risk.tar.gz",
	"hub.yaml":             "examples/placement/prioritizers/fleet.yaml",
	"placement.yaml":       "examples/placement/prioritizers/placement.yaml",
}

// piped is what comes out of kubectl get.
const piped = "examples/limits/cluster.yaml"

// names are those of objects in the documentation, and those of objects in
// these files.
var names = map[string]string{"shop/web-7d4b9c-x2x8p": "default/pod3"}

// Every command line of the program in the documentation is one that it takes:
// the command is there, and so are its flags, with these values. What it is to do
// is done, over the files above, unless it asks a cluster: that is for an
// integration test.
func TestDocumentedCommands(t *testing.T) {
	project, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := doccheck.Of(project, "plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	integration := integrationTests(t, project)
	readersFolder(t, project)
	checked, done := 0, map[string]bool{}
	for _, command := range commands {
		checked++
		cmd, err := command.Check(newCommand())
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		switch {
		case command.Shown: // TestDocumentation runs it
		case asksACluster(cmd):
			if test := integrated[cmd.CommandPath()]; !runs(integration[test], cmd.CommandPath()) {
				t.Errorf("%s: it asks a cluster, and no integration test runs %q (%q is to)", command, cmd.CommandPath(), test)
			}
		case command.Inline && !hasInput(cmd) || slices.Contains(command.Words, "..."): // cut short
		default:
			args := command.Arguments()
			if key := strings.Join(args, " "); done[key] {
				continue
			} else {
				done[key] = true
			}
			if err := perform(t, filepath.Join(project, piped), args); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		}
	}
	if checked < 80 || len(done) < 20 {
		t.Errorf("%d commands checked, %d of them run", checked, len(done))
	}
	for path := range integrated {
		if cmd, _, err := newCommand().Find(strings.Fields(path)[1:]); err != nil || cmd.CommandPath() != path {
			t.Errorf("there is no command %q", path)
		}
	}
}

// readersFolder changes to a folder that is like those of readers: with the
// project's examples, and files of their own.
func readersFolder(t *testing.T, project string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "examples"), os.DirFS(filepath.Join(project, "examples"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	for name, is := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.FromSlash(is), name); err != nil {
			t.Fatal(err)
		}
	}
}

// perform runs the program, with what kubectl may print on its standard input.
func perform(t *testing.T, input string, args []string) error {
	t.Helper()
	in, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for i, arg := range args {
		if name, ok := names[arg]; ok {
			args[i] = name
		}
	}
	if args[0] == "compare" || args[0] == "simulate" {
		// Two seeds: more are the same again, and take as long each.
		args = append(args, "--seeds", "2")
	}
	// What is written is not written over.
	if err := os.RemoveAll("report.html"); err != nil {
		t.Fatal(err)
	}
	cmd := newCommand()
	var out bytes.Buffer
	cmd.SetIn(in)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	if base.ExitCode(err, base.ExitUsage) == base.ExitCondition {
		return nil // an answer, too
	}
	if err == nil && out.Len() == 0 {
		return errors.New("nothing was printed")
	}
	return err
}

// asksACluster says whether a command that has taken its arguments would ask a
// cluster or a source of load.
func asksACluster(cmd *cobra.Command) bool {
	return cmd.Flags().Lookup("kubeconfig") != nil && !hasInput(cmd)
}

// hasInput says whether a command was told where its input is.
func hasInput(cmd *cobra.Command) bool {
	for _, name := range []string{"filename", "snapshot", "generate", "trace"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			return true
		}
	}
	return false
}

// integrationTests returns the files of integration tests by the tests in them.
func integrationTests(t *testing.T, project string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(project, "test", "integration", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{}
	for _, file := range found {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, rest := range strings.Split(string(raw), "\nfunc Test")[1:] {
			name, _, _ := strings.Cut(rest, "(")
			tests["Test"+name] = string(raw)
		}
	}
	return tests
}

// runs says whether the source of a test has a command as a list of words.
func runs(source, path string) bool {
	words := strings.Fields(path)[1:]
	return strings.Contains(source, `"`+strings.Join(words, `", "`)+`"`)
}
