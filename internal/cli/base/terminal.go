package base

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// defaultWidth is the width of help texts without a terminal, in columns.
const defaultWidth = 80

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
	return defaultWidth
}

// isTerminal reports whether a writer writes to a terminal.
func isTerminal(out io.Writer) bool {
	file := fileOf(out)
	return file != nil && term.IsTerminal(int(file.Fd()))
}

// wrapper is a writer that passes text to another writer.
type wrapper interface{ unwrap() io.Writer }

// unwrap returns the writer behind the wrappers of this package.
func unwrap(out io.Writer) io.Writer {
	for {
		w, ok := out.(wrapper)
		if !ok {
			return out
		}
		out = w.unwrap()
	}
}
