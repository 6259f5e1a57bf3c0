package base

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Watch is the flags --watch and --interval of a command that can show its result repeatedly.
type Watch struct {
	Enabled  bool
	Interval time.Duration
}

// AddFlags adds the flags. interval is the default.
func (w *Watch) AddFlags(cmd *cobra.Command, interval time.Duration) {
	cmd.Flags().BoolVarP(&w.Enabled, "watch", "w", false, "read repeatedly until interrupted")
	cmd.Flags().DurationVar(&w.Interval, "interval", interval, "time between reads with --watch, at least 1s")
	CheckFlag(cmd, "interval", "at least 1s", isAtLeast(time.Second))
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("interval") && !w.Enabled {
			return errors.New("--interval: requires --watch")
		}
		return nil
	}
}

// Run calls show once and returns its error. With --watch it calls show repeatedly until the context ends, and
// prints errors instead of returning them. On a terminal each result replaces the previous result.
func (w *Watch) Run(ctx context.Context, out io.Writer, warn func(string), show func(context.Context, io.Writer) error) error {
	if !w.Enabled {
		return show(ctx, out)
	}
	err := wait.PollUntilContextCancel(ctx, w.Interval, true, func(ctx context.Context) (bool, error) {
		return false, w.refresh(ctx, out, warn, show)
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user has ended it
	}
	return err
}

// Begin prints the separator between the documents of repeated reads: --- in YAML, nothing in other formats.
func (w *Watch) Begin(out io.Writer, format string) {
	if w.Enabled && format == FormatYAML {
		fmt.Fprintln(out, "---")
	}
}

// refresh shows one result. It returns an error only if it cannot be written.
func (w *Watch) refresh(ctx context.Context, out io.Writer, warn func(string), show func(context.Context, io.Writer) error) error {
	var text bytes.Buffer
	err := show(ctx, &text)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user has ended it
	}
	prefix := ""
	if isTerminal(out) {
		// Move the cursor to the corner and erase the rest of the screen: lines that have scrolled away stay.
		prefix = fmt.Sprintf("\x1b[H\x1b[Jevery %s, at %s; Ctrl-C ends\n", w.Interval, time.Now().Format(time.TimeOnly))
	}
	if _, failed := io.WriteString(unwrap(out), prefix+text.String()); failed != nil {
		return failed
	}
	if err != nil {
		warn(err.Error())
	}
	return nil
}
