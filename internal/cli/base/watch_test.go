package base

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch checks that a result is shown once without --watch, and otherwise in intervals until the context ends,
// with errors as warnings.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		calls := 0
		show := func(_ context.Context, out io.Writer) error {
			calls++
			fmt.Fprintln(out, calls)
			return failed
		}
		var out bytes.Buffer
		once := Watch{Interval: time.Second}
		if err := once.Run(t.Context(), &out, nil, show); !errors.Is(err, failed) || out.String() != "1\n" {
			t.Errorf("once: %v, %q", err, out.String())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		var warnings []string
		repeated := Watch{Enabled: true, Interval: 10 * time.Second}
		out.Reset()
		if err := repeated.Run(ctx, &out, func(text string) { warnings = append(warnings, text) }, show); err != nil {
			t.Error(err)
		}
		// At 0, 10 and 20 seconds.
		if out.String() != "2\n3\n4\n" || len(warnings) != 3 || warnings[0] != "failed" {
			t.Errorf("%q, %v", out.String(), warnings)
		}
	})
}
