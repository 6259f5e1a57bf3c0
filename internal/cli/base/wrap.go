package base

import (
	"io"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
)

// maxToken is the length from which on a word is broken at punctuation, and within if that does not suffice.
const maxToken = 20

// wrapText wraps each line of a text to a width.
func wrapText(s string, width int) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = wrapLine(lines[i], width, "")
	}
	return strings.Join(lines, "\n")
}

// wrapLine breaks a line between words so that no part is wider than width, 0 for any width. Words that are too long
// are broken at punctuation, before capital letters, or anywhere. Continued parts begin with the indentation.
func wrapLine(line string, width int, indent string) string {
	if width <= 0 || text.StringWidth(line) <= width {
		return line
	}
	if len(indent) > width/2 {
		indent = ""
	}
	// The indentation of the line is part of its first word.
	body := strings.TrimLeft(line, " ")
	if lead := line[:len(line)-len(body)]; len(lead) > width/2 {
		line = body
	}
	var b strings.Builder
	used := 0
	for _, token := range tokens(line) {
		size := text.StringWidth(token)
		if used > 0 && used+1+size > width {
			b.WriteString("\n" + indent)
			used = 0
		} else if used > 0 {
			b.WriteByte(' ')
			used++
		}
		room := width
		if strings.Contains(b.String(), "\n") {
			room -= len(indent)
		}
		if used == 0 {
			used = width - room
		}
		for size > room {
			n := breakAt(token, room)
			b.WriteString(token[:n] + "\n" + indent)
			token = strings.TrimLeft(token[n:], " ")
			size, room, used = text.StringWidth(token), width-len(indent), len(indent)
		}
		b.WriteString(token)
		used += size
	}
	return b.String()
}

// tokens splits a line at single spaces, except in brackets that are no longer than maxToken: "[-1, +2]". Leading
// spaces belong to the first token.
func tokens(line string) []string {
	body := strings.TrimLeft(line, " ")
	lead := line[:len(line)-len(body)]
	parts := strings.Split(body, " ")
	joined := parts[:0:0]
	for i := 0; i < len(parts); i++ {
		token := parts[i]
		if strings.HasPrefix(token, "[") {
			whole := token
			for j := i + 1; !strings.Contains(whole, "]") && j < len(parts) && len(whole) < maxToken; j++ {
				if whole += " " + parts[j]; strings.Contains(whole, "]") && len(whole) <= maxToken {
					token, i = whole, j
				}
			}
		}
		joined = append(joined, token)
	}
	joined[0] = lead + joined[0]
	return joined
}

// breakAt returns the number of bytes of a word that go on a line of at most width columns, at least one character:
// as many as possible that end with punctuation or before a capital letter, otherwise as many as fit.
func breakAt(word string, width int) int {
	fits, best, used := 0, 0, 0
	var before rune
	for i, r := range word {
		isDecimal := before == '.' && unicode.IsDigit(r)
		if i > 0 && !isDecimal && (strings.ContainsRune(" -/.,:;=_", before) || unicode.IsUpper(r) && unicode.IsLower(before)) {
			best = i
		}
		used += text.RuneWidth(r)
		if used > width && i > 0 {
			break
		}
		fits, before = i+len(string(r)), r
	}
	if best > 0 && best <= fits && strings.TrimSpace(word[:best]) != "" {
		return best
	}
	return fits
}

// longestToken returns the width of the widest part of a text that is not broken: at most maxToken.
func longestToken(s string) int {
	longest := 0
	for line := range strings.SplitSeq(s, "\n") {
		for _, token := range tokens(line) {
			longest = max(longest, text.StringWidth(token))
		}
	}
	return min(longest, maxToken)
}

// Fitted returns a writer for text that is fitted to the terminal of out: as Escaped, with long lines wrapped between
// words.
func Fitted(out io.Writer) io.Writer { return wrappingWriter{out, terminalOf(out).width} }

type wrappingWriter struct {
	out   io.Writer
	width int
}

func (w wrappingWriter) unwrap() io.Writer { return w.out }

// Write implements io.Writer. It returns the length of p if all of it is written.
func (w wrappingWriter) Write(p []byte) (int, error) {
	lines := strings.Split(EscapeLines(string(p)), "\n")
	for i, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " -"))]
		lines[i] = wrapLine(line, w.width, strings.Repeat(" ", len(indent)))
	}
	if _, err := io.WriteString(w.out, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}
