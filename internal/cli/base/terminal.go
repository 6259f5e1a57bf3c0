package base

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// defaultWidth is the width of a terminal that does not report its own, in columns.
const defaultWidth = 80

// minWidth is the smallest width that output is fitted to. A narrower terminal wraps lines itself.
const minWidth = 20

// terminal is what output is fitted to.
type terminal struct {
	// width in columns, 0 if lines can be as long as they need to be.
	width int
	color bool
}

// terminalOf returns the terminal that a writer writes to. $COLUMNS overrides its width, and sets that of output
// which is no terminal, such as a pipe to watch(1).
func terminalOf(out io.Writer) terminal {
	var t terminal
	if s, ok := unwrap(out).(*screen); ok {
		return terminalOf(s.out)
	}
	if file := fileOf(out); file != nil && term.IsTerminal(int(file.Fd())) {
		t.width = defaultWidth
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			t.width = columns
		}
		t.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		t.width = columns
	}
	if t.width > 0 {
		t.width = max(t.width, minWidth)
	}
	return t
}

// wrapper is a writer that passes what it gets to another one.
type wrapper interface{ unwrap() io.Writer }

// unwrap returns the writer behind those of this package.
func unwrap(out io.Writer) io.Writer {
	for {
		w, ok := out.(wrapper)
		if !ok {
			return out
		}
		out = w.unwrap()
	}
}

// Color is the color of a text. Output that is no terminal has no colors, nor if $NO_COLOR is set or $TERM is dumb.
type Color int

// The colors, by meaning.
const (
	Plain Color = iota
	Good
	Caution
	Bad
	Bold
)

var colors = map[Color]text.Colors{
	Good: {text.FgGreen}, Caution: {text.FgYellow}, Bad: {text.FgRed, text.Bold}, Bold: {text.Bold},
}

// Colored is a cell or a line with a color. The text is escaped when it is printed.
type Colored struct {
	Text  string
	Color Color
}

// paint returns the text with the escape sequences of a color, those of each line apart.
func paint(s string, color Color) string {
	if color == Plain || s == "" {
		return s
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		// Colors.Sprint does nothing if the program's standard output is no terminal.
		lines[i] = colors[color].EscapeSeq() + lines[i] + text.Reset.EscapeSeq()
	}
	return strings.Join(lines, "\n")
}

// PrintLine prints a label and a text on one line, wrapped to the terminal with continued lines indented. Both are escaped.
func PrintLine(out io.Writer, indent string, label Colored, text string) {
	t := terminalOf(out)
	head := Escape(label.Text)
	line := wrapLine(head+Escape(text), t.width, indent)
	if rest, ok := strings.CutPrefix(line, head); ok && t.color {
		line = paint(head, label.Color) + rest
	}
	_, _ = io.WriteString(unwrap(out), line+"\n") // Stdout keeps the error
}
