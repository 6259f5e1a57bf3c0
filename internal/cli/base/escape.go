package base

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

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
