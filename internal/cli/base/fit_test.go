package base

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"pgregory.net/rapid"
)

// TestTableFitsTerminal checks that no line is wider than the terminal, whatever the cells contain, and that the
// blocks together show all characters of each column.
func TestTableFitsTerminal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		columns := rapid.IntRange(1, 8).Draw(rt, "columns")
		cells := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9 \-\[\],./éÄ日]{0,40}`), columns, columns)
		rows := rapid.SliceOfN(cells, 1, 4).Draw(rt, "rows")
		width := rapid.IntRange(minWidth, 160).Draw(rt, "width")
		attached := rapid.IntRange(2, 9).Draw(rt, "attached")
		t.Setenv("COLUMNS", fmt.Sprint(width))
		var out bytes.Buffer
		tab := NewTable(&out, anyOf(rows[0])...)
		for _, row := range rows[1:] {
			tab.AppendRow(anyOf(row))
		}
		tab.Attach(attached)
		tab.Render()
		for line := range strings.Lines(out.String()) {
			if w := text.StringWidth(strings.TrimSuffix(line, "\n")); w > width && len(rows[0]) <= 4 {
				rt.Fatalf("a line of %d columns in a terminal of %d:\n%s", w, width, out.String())
			}
		}
		for i, want := range columnTexts(rows) {
			if !strings.Contains(" "+strings.Join(printedColumns(out.String()), " ")+" ", " "+want+" ") {
				rt.Fatalf("column %d %q is incomplete in\n%s", i, want, out.String())
			}
		}
	})
}

func anyOf(cells []string) []any {
	out := make([]any, len(cells))
	for i := range cells {
		out[i] = cells[i]
	}
	return out
}

// columnTexts returns the characters of each column without spaces.
func columnTexts(rows [][]string) []string {
	out := make([]string, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			out[i] += strings.ReplaceAll(cell, " ", "")
		}
	}
	return out
}

// printedColumns returns the characters of each column of each printed block without spaces.
func printedColumns(out string) []string {
	var columns, block []string
	for line := range strings.Lines(out + "\n") {
		parts := strings.Split(strings.Trim(line, "│\n"), "│")
		switch {
		case strings.HasPrefix(line, "┌") || line == "\n":
			columns, block = append(columns, block...), nil
		case strings.HasPrefix(line, "│"):
			for len(block) < len(parts) {
				block = append(block, "")
			}
			for i, part := range parts {
				block[i] += strings.ReplaceAll(part, " ", "")
			}
		}
	}
	return append(columns, block...)
}

// TestTableBlocks checks which columns are wrapped and which are continued below: the difference stays beside its
// profile.
func TestTableBlocks(t *testing.T) {
	t.Setenv("COLUMNS", "44")
	var out bytes.Buffer
	tab := NewTable(&out, "figure", "default", "limits", "difference", "other", "difference")
	tab.AppendRow(table.Row{"throttled by limits", "1", "2", "+1 [-0.5, +2.5] *", "3", "+2 [+1.5, +2.5] *"})
	tab.SetColumnConfigs(RightAligned(2, 3, 4, 5, 6))
	tab.Attach(4, 6)
	tab.Render()
	want := `
┌─────────────────────┬─────────┐
│ figure              │ default │
├─────────────────────┼─────────┤
│ throttled by limits │       1 │
└─────────────────────┴─────────┘

┌──────────────┬────────┬────────────────┐
│ figure       │ limits │ difference     │
├──────────────┼────────┼────────────────┤
│ throttled by │      2 │             +1 │
│ limits       │        │ [-0.5, +2.5] * │
└──────────────┴────────┴────────────────┘

┌──────────────┬───────┬────────────────┐
│ figure       │ other │ difference     │
├──────────────┼───────┼────────────────┤
│ throttled by │     3 │             +2 │
│ limits       │       │ [+1.5, +2.5] * │
└──────────────┴───────┴────────────────┘
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got%s", got)
	}
}

func TestWrapLine(t *testing.T) {
	tests := map[string]struct {
		line, indent string
		width        int
		want         string
	}{
		"no width":              {"a b c", "", 0, "a b c"},
		"fits":                  {"a b c", "", 5, "a b c"},
		"words":                 {"one two three", "", 7, "one two\nthree"},
		"indentation":           {"- one two three", "  ", 9, "- one two\n  three"},
		"long word":             {"abcdefghij", "", 4, "abcd\nefgh\nij"},
		"punctuation":           {"node-pool/general", "", 10, "node-pool/\ngeneral"},
		"capital letters":       {"NodeResourcesFit", "", 14, "NodeResources\nFit"},
		"interval":              {"+1 [-0.5, +2.5] *", "", 14, "+1\n[-0.5, +2.5] *"},
		"long word, indented":   {"x abcdefghij", "  ", 6, "x\n  abcd\n  efgh\n  ij"},
		"wide characters":       {"日本日本", "", 5, "日本\n日本"},
		"leading spaces":        {"  detail of figure", "", 10, "  detail\nof figure"},
		"indentation too large": {"a bb", "    ", 3, "a\nbb"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := wrapLine(tc.line, tc.width, tc.indent); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestFitted checks that long lines of text are wrapped and lists indented.
func TestFitted(t *testing.T) {
	t.Setenv("COLUMNS", "24")
	var out bytes.Buffer
	fmt.Fprintln(Fitted(&out), "a line that is too long\nshort\n- an item of a list that wraps")
	if want := "a line that is too long\nshort\n- an item of a list that\n  wraps\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestMarkdown checks that names cannot add markup or columns.
func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	tab := NewTable(&out, "name", "count")
	tab.AppendRow(table.Row{"<b>|*[x](y)@user", 1})
	tab.AppendSeparator()
	tab.AppendRow(table.Row{Lines("a\nb")})
	tab.SetColumnConfigs(RightAligned(2))
	tab.Markdown()
	want := "| name | count |\n| --- | ---: |\n| &lt;b&gt;\\|\\*\\[x\\](y)@\u2060user | 1 |\n| a<br>b |  |\n"
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
}
