package base

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
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
