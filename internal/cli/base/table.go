package base

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Lines is the content of a cell that may have several lines. In cells of other types, newlines are
// escaped as well.
type Lines string

// Table is a table in the style of all commands. It fits the terminal: columns of words are wrapped, and columns that
// have no space are continued below, beside the first column again. Nothing is shortened.
type Table struct {
	out     io.Writer
	header  []Colored
	rows    []tableRow
	configs []table.ColumnConfig
	// attached are the columns, from 1, that stay beside the one before them.
	attached map[int]bool
	// numbers and words are the columns, from 0, with cells of either kind. Those with numbers only are aligned to the right.
	numbers, words map[int]bool
	// hideEmpty leaves out columns without content.
	hideEmpty bool
}

// tableRow is a row of cells whose text is escaped, or a separator if it has none.
type tableRow []Colored

// NewTable returns a table with a header. Render prints it. Cells that are strings, errors or fmt.Stringers are
// escaped; see Escape.
func NewTable(out io.Writer, header ...any) *Table {
	t := &Table{out: out, header: escapeRow(header), attached: map[int]bool{}, numbers: map[int]bool{}, words: map[int]bool{}}
	for i := range t.header {
		t.header[i].Color = Bold
	}
	return t
}

// RightAligned returns the configuration of columns with numbers. The first column is 1.
func RightAligned(columns ...int) []table.ColumnConfig {
	configs := make([]table.ColumnConfig, 0, len(columns))
	for _, column := range columns {
		configs = append(configs, table.ColumnConfig{Number: column, Align: text.AlignRight})
	}
	return configs
}

// AppendRow adds a row.
func (t *Table) AppendRow(row table.Row) {
	for i, cell := range row {
		switch cell {
		case nil, "":
		default:
			kind := reflect.TypeOf(cell).Kind()
			isNumber := kind >= reflect.Int && kind <= reflect.Float64 && kind != reflect.Uintptr
			t.numbers[i], t.words[i] = t.numbers[i] || isNumber, t.words[i] || !isNumber
		}
	}
	t.rows = append(t.rows, escapeRow(row))
}

// AppendSeparator adds a line between the rows before and after it.
func (t *Table) AppendSeparator() { t.rows = append(t.rows, nil) }

// SetColumnConfigs sets the alignment of columns, and which merge equal cells.
func (t *Table) SetColumnConfigs(configs []table.ColumnConfig) { t.configs = configs }

// Attach keeps columns beside the one before them. The first column is 1.
func (t *Table) Attach(columns ...int) {
	for _, column := range columns {
		t.attached[column] = true
	}
}

// SuppressEmptyColumns leaves out columns without content.
func (t *Table) SuppressEmptyColumns() { t.hideEmpty = true }

// Render prints the table, fitted to the terminal.
func (t *Table) Render() {
	terminal := terminalOf(t.out)
	for i, block := range t.blocks(terminal.width) {
		if i > 0 {
			fmt.Fprintln(t.out)
		}
		t.renderBlock(block, terminal.color)
	}
}

// renderBlock prints the columns of one block.
func (t *Table) renderBlock(block []column, color bool) {
	w := table.NewWriter()
	w.SetOutputMirror(unwrap(t.out)) // cells are escaped, and colors are escape sequences
	w.SetStyle(table.StyleLight)
	w.Style().Format.Header = text.FormatDefault
	var configs []table.ColumnConfig
	for i, c := range block {
		if t.numbers[c.index] && !t.words[c.index] {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight})
		}
		for _, config := range t.configs {
			if config.Number == c.index+1 {
				config.Number = i + 1
				configs = append(configs, config)
			}
		}
	}
	w.SetColumnConfigs(configs)
	w.AppendHeader(blockRow(t.header, block, color))
	for _, row := range t.rows {
		if row == nil {
			w.AppendSeparator()
			continue
		}
		w.AppendRow(blockRow(row, block, color))
	}
	w.Render()
}

// blockRow returns the cells of a row that are in a block, wrapped and with their colors.
func blockRow(row tableRow, block []column, color bool) table.Row {
	out := make(table.Row, 0, len(block))
	for _, c := range block {
		if c.index >= len(row) {
			out = append(out, "")
			continue
		}
		cell := wrapText(row[c.index].Text, c.width)
		if color {
			cell = paint(cell, row[c.index].Color)
		}
		out = append(out, cell)
	}
	return out
}

// Markdown prints the table as GitHub renders it. Columns with AlignRight are aligned to the right.
func (t *Table) Markdown() {
	var b strings.Builder
	block := t.blocks(0)[0]
	write := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	var header, rule []string
	for _, c := range block {
		header = append(header, EscapeMarkdown(t.header[c.index].Text))
		if slices.ContainsFunc(t.configs, func(config table.ColumnConfig) bool {
			return config.Number == c.index+1 && config.Align == text.AlignRight
		}) {
			rule = append(rule, "---:")
		} else {
			rule = append(rule, "---")
		}
	}
	write(header)
	write(rule)
	for _, row := range t.rows {
		var cells []string
		for _, c := range block {
			if c.index < len(row) {
				cells = append(cells, EscapeMarkdown(row[c.index].Text))
			} else {
				cells = append(cells, "")
			}
		}
		if row != nil {
			write(cells)
		}
	}
	_, _ = io.WriteString(unwrap(t.out), b.String()) // cells are escaped
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "#", `\#`, "~", `\~`, "@", "@\u2060",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "\n", "<br>")

// EscapeMarkdown returns a text that Markdown displays as it is, whatever it contains; newlines as line breaks.
// The text must be escaped for terminals (Escape).
func EscapeMarkdown(text string) string { return markdownEscapes.Replace(text) }

// escapeRow returns a row whose texts are escaped.
func escapeRow(row []any) tableRow {
	out := make(tableRow, len(row))
	for i, cell := range row {
		switch cell := cell.(type) {
		case nil:
		case Colored:
			out[i] = Colored{EscapeLines(cell.Text), cell.Color}
		case Lines:
			out[i].Text = EscapeLines(string(cell))
		default:
			out[i].Text = Escape(fmt.Sprint(cell))
		}
	}
	return out
}
