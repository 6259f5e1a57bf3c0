package base

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/wait"
)

// DefaultWidth is the width of help texts without a terminal, in columns.
const DefaultWidth = 80

// widthOf returns the width of the terminal that a writer writes to. $COLUMNS overrides it.
func widthOf(out io.Writer) int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if file := fileOf(out); file != nil {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return DefaultWidth
}

// wrappedWriter wraps lines to the width of the terminal that out writes to, except for lines with a command, which users copy.
type wrappedWriter struct{ out io.Writer }

// Write implements io.Writer. It returns the length of p if all of it is written.
func (w wrappedWriter) Write(p []byte) (int, error) {
	lines := strings.Split(string(p), "\n")
	for i, line := range lines {
		if text := strings.TrimLeft(line, " "); !strings.Contains(text, "kubectl ") {
			lines[i] = Wrap(line[:len(line)-len(text)], text, widthOf(w.out))
		}
	}
	if _, err := io.WriteString(w.out, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// isTerminal reports whether a writer writes to a terminal.
func isTerminal(out io.Writer) bool {
	file := fileOf(out)
	return file != nil && term.IsTerminal(int(file.Fd()))
}

// Stdout is the standard output of a program. It keeps the first error of a write, since functions that print tables and
// texts return no errors.
type Stdout struct {
	file *os.File
	err  error
}

// NewStdout returns a Stdout that writes to a file.
func NewStdout(file *os.File) *Stdout { return &Stdout{file: file} }

// Write implements io.Writer.
func (s *Stdout) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// Err returns the first error of Write.
func (s *Stdout) Err() error { return s.err }

// fileOf returns the file that a writer writes to, nil if it writes to no file.
func fileOf(out io.Writer) *os.File {
	switch out := unwrap(out).(type) {
	case *os.File:
		return out
	case *Stdout:
		return out.file
	}
	return nil
}

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

// Escape returns a text that a terminal displays as one line: control characters (C0, C1, ESC, newlines),
// characters that change the direction of text, and other characters that are not printable are replaced
// by their escapes in JSON, such as \n and \u001b; a byte of invalid UTF-8 by an escape such as \xff.
//
// Commands use it for text from manifests, snapshots, load sources and API servers.
func Escape(text string) string { return escape(text, "") }

// EscapeLines is Escape for text of several lines: it keeps newlines.
func EscapeLines(text string) string { return escape(text, "\n") }

// escape replaces the characters that are neither printable nor in keep.
func escape(text, keep string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
		} else {
			b.WriteString(escapeRune(r, size, text[i]))
		}
		i += size
	}
	return b.String()
}

// escapeRune returns the escape of a rune of size bytes; first is its first byte.
func escapeRune(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf(`\x%02x`, first)
	case r == '\n', r == '\r', r == '\t':
		return strings.Trim(strconv.QuoteRune(r), "'")
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Escaped returns a writer that passes text to out with EscapeLines. Characters that are split between
// two writes are written as escapes.
func Escaped(out io.Writer) io.Writer { return escapedWriter{out} }

type escapedWriter struct{ out io.Writer }

// unwrap returns the writer behind Escaped and wrappedWriter.
func unwrap(out io.Writer) io.Writer {
	switch out := out.(type) {
	case escapedWriter:
		return unwrap(out.out)
	case wrappedWriter:
		return unwrap(out.out)
	}
	return out
}

// Write implements io.Writer. It returns the length of p if all of it is written.
func (w escapedWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.out, EscapeLines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
