package base

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// hostile has an escape sequence, a C1 control character, newlines, characters that change the direction
// of text, a zero-width character, a line separator and invalid UTF-8.
const hostile = "a\x1b[2J\u009b31m\r\nb\t\u202edcba\u2066\u200b\u2028\u007f\x00\xff"

func TestEscape(t *testing.T) {
	const escaped = `a\u001b[2J\u009b31m\r\nb\t\u202edcba\u2066\u200b\u2028\u007f\u0000\xff`
	for text, want := range map[string]string{
		"":                        "",
		"node-1, 50 % ± 3":        "node-1, 50 % ± 3",
		"日本 é e\u0301 😀 ┌ \ufffd": "日本 é e\u0301 😀 ┌ \ufffd",
		hostile:                   escaped,
		"\U000e0001":              `\udb40\udc01`,
		"two\u00a0words":          `two\u00a0words`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got, want := EscapeLines(hostile), strings.Replace(escaped, `\n`, "\n", 1); got != want {
		t.Errorf("lines: %s, want %s", got, want)
	}
}

// FuzzEscape checks that the result is printable on one line, that printable text is unchanged, and that
// a second call changes nothing.
func FuzzEscape(f *testing.F) {
	f.Add("node-1")
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(got) {
			t.Errorf("%q is not printable", got)
		}
		if again := Escape(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = Escape(lines[i])
		}
		if want := strings.Join(lines, "\n"); EscapeLines(text) != want {
			t.Errorf("lines %q, want %q", EscapeLines(text), want)
		}
	})
}

// TestOutputIsEscaped checks that the output of a command passes no control characters to a terminal.
func TestOutputIsEscaped(t *testing.T) {
	for _, format := range []string{FormatTable, FormatJSON, FormatYAML} {
		var out bytes.Buffer
		output := Output{Format: format}
		must.Succeed(t, output.Print(&out, map[string]string{"name": hostile}, func(out io.Writer) {
			tab := NewTable(hostile, "name")
			tab.AddRow(hostile, errors.New(hostile))
			tab.AddRow(bytes.NewBufferString(hostile))
			tab.Print(out, &output)
			tab.Markdown(out)
			fmt.Fprintln(out, hostile)
		}))
		expectPrintable(t, format, out.String())
		if format == FormatJSON {
			var read map[string]string
			if err := json.Unmarshal(out.Bytes(), &read); err != nil || read["name"] != strings.ToValidUTF8(hostile, "\ufffd") {
				t.Errorf("%v in %s", err, out.String())
			}
		}
	}
	var errOut bytes.Buffer
	Warnings(&errOut)(hostile)
	report(&errOut, "plimsoll", errors.New(hostile))
	expectPrintable(t, "messages", errOut.String())
	if lines := strings.Count(errOut.String(), "\n"); lines != 2 {
		t.Errorf("%d lines, want 2: %s", lines, errOut.String())
	}
}

// A document has the same texts in YAML as in JSON, whatever their characters, and all are printable.
func TestTextsInYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{hostile, "95\u202f% of", "'\u00a0: #", "- \u2066"})).Draw(t, "text")
		document := map[string]any{text: []string{text, "plain"}}
		var asJSON, asYAML bytes.Buffer
		must.Succeed(t, writeJSON(&asJSON, document))
		must.Succeed(t, writeYAML(&asYAML, document))
		var want, got map[string]any
		must.Succeed(t, json.Unmarshal(asJSON.Bytes(), &want))
		must.Succeed(t, yaml.Unmarshal(asYAML.Bytes(), &got))
		if !reflect.DeepEqual(got, want) ||
			Escape(strings.ReplaceAll(asYAML.String(), "\n", "")) != strings.ReplaceAll(asYAML.String(), "\n", "") {
			t.Errorf("%q in YAML, want %q: %s", got, want, asYAML.String())
		}
	})
}

func expectPrintable(t *testing.T, what, text string) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || !utf8.ValidString(text) {
		t.Errorf("%s is not printable: %q", what, text)
	}
}

// TestTable checks that tables follow kubectl: a cell has one line, columns without content are left out, and further columns need -o
// wide.
func TestTable(t *testing.T) {
	tab := NewTable("name", "count", "empty")
	tab.Wide("message")
	tab.AddRow("a\nb", 1, nil, "text")
	tab.AddRow("long name", 23)
	for want, o := range map[string]Output{
		"NAME        COUNT\na\\nb        1\nlong name   23\n":                      {Format: FormatTable},
		"NAME        COUNT   MESSAGE\na\\nb        1       text\nlong name   23\n": {Format: FormatWide},
		"a\\nb        1\nlong name   23\n":                                         {Format: FormatTable, noHeaders: true},
	} {
		var out bytes.Buffer
		if tab.Print(&out, &o); out.String() != want {
			t.Errorf("got\n%s, want\n%s", out.String(), want)
		}
	}
}
