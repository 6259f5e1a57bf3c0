// Command plimsoll shows what Plimsoll would do, before it does it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// The exit codes: for what was asked for rightly and could not be done, for what
// was given and makes no sense, and for what --fail-on says must not be.
const (
	exitFailure = 1
	exitUsage   = 2
	exitGate    = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cmd := newCommand()
	cmd.SetArgs(as(cmd, os.Args[0], os.Args[1:]))
	err := cmd.ExecuteContext(ctx)
	stop()
	os.Exit(report(err))
}

// newCommand returns the whole command.
func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plimsoll",
		Short: "How deep may a cluster be loaded?",
		Long: `Plimsoll shows how deep nodes may be loaded, with the code of the real
scheduler and before anything is changed.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			// What the scheduler's code has to say about its own workings is not
			// the answer to the question.
			klog.LogToStderr(false)
			klog.SetOutput(io.Discard)
		},
	}
	version.AddFlag(cmd)
	cmd.AddCommand(newSnapshotCommand(), newScoreCommand(), newExplainCommand(), newSimulateCommand(), newCompareCommand(), newRunCommand(), newLoadCommand(), newSlackCommand(), newPlacementCommand(), newDoctorCommand(), newVersionCommand())
	return cmd
}

// report prints an error on one line and returns the exit code.
func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "plimsoll:", strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, failed := errors.AsType[*failure](err); failed {
		return exitFailure
	}
	if _, gate := errors.AsType[*condemned](err); gate {
		return exitGate
	}
	return exitUsage
}
