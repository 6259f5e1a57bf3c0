package base

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestWithExitCode checks the exit codes of errors, also of wrapped errors, and that nil stays nil.
func TestWithExitCode(t *testing.T) {
	plain := errors.New("refused")
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"none":                   {nil, 0},
		"no failure":             {Failure(nil), 0},
		"no usage error":         {UsageError(errors.Join(nil, nil)), 0},
		"no condition":           {WithExitCode(ExitCondition, nil), 0},
		"without a code":         {plain, 9},
		"failure":                {Failure(plain), ExitFailure},
		"usage error":            {UsageError(plain), ExitUsage},
		"wrapped":                {fmt.Errorf("reading: %w", Failure(plain)), ExitFailure},
		"the outer code applies": {UsageError(Failure(plain)), ExitUsage},
	} {
		if got := ExitCode(tc.err, 9); got != tc.want || (tc.err == nil) != (tc.want == 0) {
			t.Errorf("%s: error %v has the exit code %d, want %d", name, tc.err, got, tc.want)
		}
	}
}

// TestReportOfFlagGroups expects that errors of cobra about groups of flags are printed with the names of the flags first.
func TestReportOfFlagGroups(t *testing.T) {
	for args, want := range map[string]string{
		"":                        "plimsoll: --trace, --recording: one of them is required\n",
		"--recording b --trace a": "plimsoll: --trace, --recording: only one of them may be set\n",
		"--trace a":               "",
	} {
		cmd := &cobra.Command{Use: "plimsoll", SilenceUsage: true, SilenceErrors: true, Run: func(*cobra.Command, []string) {}}
		cmd.Flags().String("trace", "", "")
		cmd.Flags().String("recording", "", "")
		cmd.MarkFlagsOneRequired("trace", "recording")
		cmd.MarkFlagsMutuallyExclusive("trace", "recording")
		cmd.SetArgs(strings.Fields(args))
		var out strings.Builder
		if report(&out, "plimsoll", cmd.Execute()); out.String() != want {
			t.Errorf("%q: got %q, want %q", args, out.String(), want)
		}
	}
}
