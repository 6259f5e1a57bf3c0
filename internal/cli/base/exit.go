// Package base has the code that all commands share: exit codes, output, tables, new files and progress.
package base

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Exit codes of the programs.
const (
	// ExitFailure: the input is valid, but the operation failed or found a problem.
	ExitFailure = 1
	// ExitUsage: a flag, an argument or a file is invalid.
	ExitUsage = 2
	// ExitCondition: the condition of --fail-on is true, or a recommendation is not confirmed.
	ExitCondition = 3
)

// exitError is an error with the exit code of the program.
type exitError struct {
	error
	code int
}

// Unwrap returns the error without its exit code.
func (e *exitError) Unwrap() error { return e.error }

// WithExitCode returns an error with an exit code, nil if err is nil.
func WithExitCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{err, code}
}

// Failure returns an error with the exit code ExitFailure, nil if err is nil.
func Failure(err error) error { return WithExitCode(ExitFailure, err) }

// UsageError returns an error with the exit code ExitUsage, nil if err is nil.
func UsageError(err error) error { return WithExitCode(ExitUsage, err) }

// ExitCode returns the exit code of an error: 0 for nil, and the argument otherwise for an error without an exit code.
func ExitCode(err error, otherwise int) int {
	if err == nil {
		return 0
	}
	if coded, ok := errors.AsType[*exitError](err); ok {
		return coded.code
	}
	return otherwise
}

// Report prints an error and returns the exit code; see ExitCode.
func Report(program string, err error, otherwise int) int {
	report(os.Stderr, program, err)
	return ExitCode(err, otherwise)
}

// report prints an error, nothing if it is nil: on one line or, on a terminal, wrapped, with the last part, which is what is allowed or
// what to do, on a line of its own.
func report(out io.Writer, program string, err error) {
	if err == nil {
		return
	}
	text := program + ": " + oneLine(strings.TrimSpace(err.Error()))
	if width := min(widthOf(out), DefaultWidth); isTerminal(out) && utf8.RuneCountInString(text) > width {
		head, last := text, strings.LastIndex(text, ": ")
		if text = ""; last > len(program) {
			head, text = head[:last+1], "\n"+Wrap("  ", head[last+2:], width)
		}
		text = Wrap("", head, width) + text
	}
	fmt.Fprintln(out, text)
}

// oneLine returns a message of several lines as one line that is safe to print.
func oneLine(message string) string { return Escape(strings.ReplaceAll(message, "\n", "; ")) }

// RunService runs the command of a service until a signal and returns the exit code. Errors of flags and arguments
// have the code ExitUsage, other errors ExitFailure unless they have a code themselves.
func RunService(cmd *cobra.Command) int {
	ctx, stop := SignalContext(cmd.Name(), 0)
	defer stop()
	return Report(cmd.Name(), cmd.ExecuteContext(ctx), ExitFailure)
}

// ConfigureService sets how a command of a service treats errors: arguments, invalid flags and
// errors of validate are usage errors.
func ConfigureService(cmd *cobra.Command, validate func(*cobra.Command) error) {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.Args = func(cmd *cobra.Command, args []string) error { return UsageError(NoArgs(cmd, args)) }
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return UsageError(validate(cmd)) }
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return UsageError(fmt.Errorf("%w (see %s --help)", FlagError(cmd, err), cmd.Name()))
	})
}

// InvalidValue returns the error of a flag with a value that is not allowed.
func InvalidValue(flag string, value any, allowed string) error {
	return format.InvalidValue("--"+flag, value, allowed)
}

// CheckAddress returns an error for the value of a flag that is no address to listen on.
func CheckAddress(flag, value string) error {
	_, port, err := net.SplitHostPort(value)
	if _, invalid := strconv.ParseUint(port, 10, 16); err != nil || invalid != nil {
		return InvalidValue(flag, value, "HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:7654")
	}
	return nil
}

// gracePeriod is how long a program may take to end after a signal before it is terminated. It ensures
// that the program ends within a second during any computation.
const gracePeriod = 900 * time.Millisecond

// SignalContext returns a context that ends at the first SIGINT or SIGTERM. If the process has not ended
// after gracePeriod, or at a second signal, it exits with exitCode: code that computes may not observe its
// context. The returned function stops the handling of signals and releases the resources.
func SignalContext(program string, exitCode int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel()
		case <-done:
			return
		}
		select {
		case <-signals:
		case <-time.After(gracePeriod):
			fmt.Fprintf(os.Stderr, "%s: terminated: it has not ended within %s of a signal\n", program, gracePeriod)
		case <-done:
			return
		}
		os.Exit(exitCode)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
