package base

import (
	"errors"
	"fmt"
	"testing"
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
