package plimsoll

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/whatif"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestMain(m *testing.M) {
	// The jobs of a simulation run in processes of this program.
	if len(os.Args) > 1 && os.Args[1] == whatif.RunCommand {
		main()
	}
	testscript.Main(m, map[string]func(){"plimsoll": main})
}

// main runs the command as cmd/plimsoll does.
func main() { os.Exit(Run(context.Background())) }

// The scripts run command lines and check their output.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../../examples")
	must.Succeed(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		// The scripts use the examples of the documentation.
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			return nil
		},
	})
}

func TestExitCode(t *testing.T) {
	if got := report(nil); got != 0 {
		t.Errorf("exit code %d without an error", got)
	}
	if got := report(errors.New("bad input")); got != 2 {
		t.Errorf("exit code %d for bad input, want 2", got)
	}
	if got := report(base.WithExitCode(base.ExitCondition, errors.New("limits ratio=2"))); got != 3 {
		t.Errorf("exit code %d where --fail-on is true, want 3", got)
	}
}

// TestOutputError checks that output that cannot be written is a failure, also of a command of cobra.
func TestOutputError(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must.Succeed(t, err)
	run := func(args ...string) int {
		cmd := newCommand()
		cmd.SetArgs(args)
		return report(execute(t.Context(), cmd, base.NewStdout(file)))
	}
	if got := run("version"); got != 0 {
		t.Errorf("exit code %d", got)
	}
	must.Succeed(t, file.Close())
	for _, args := range [][]string{{"version"}, {"completion", "bash"}} {
		if got := run(args...); got != base.ExitFailure {
			t.Errorf("%s: exit code %d with a closed output, want %d", args, got, base.ExitFailure)
		}
	}
}
