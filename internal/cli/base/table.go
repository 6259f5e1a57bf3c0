package base

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Lines is the content of a cell that may have several lines. In cells of other types, newlines are
// escaped as well.
type Lines string

// NewTable returns a table with a header, in the style of all commands. Render prints it. Cells that are
// strings, errors or fmt.Stringers are escaped; see Escape.
func NewTable(out io.Writer, header ...any) table.Writer {
	t := escapingTable{table.NewWriter()}
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
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

// escapingTable is a table that escapes its texts.
type escapingTable struct{ table.Writer }

// AppendHeader adds a row to the header.
func (t escapingTable) AppendHeader(row table.Row, config ...table.RowConfig) {
	t.Writer.AppendHeader(escapeRow(row), config...)
}

// AppendFooter adds a row to the footer.
func (t escapingTable) AppendFooter(row table.Row, config ...table.RowConfig) {
	t.Writer.AppendFooter(escapeRow(row), config...)
}

// AppendRow adds a row.
func (t escapingTable) AppendRow(row table.Row, config ...table.RowConfig) {
	t.Writer.AppendRow(escapeRow(row), config...)
}

// AppendRows adds several rows.
func (t escapingTable) AppendRows(rows []table.Row, config ...table.RowConfig) {
	for _, row := range rows {
		t.AppendRow(row, config...)
	}
}

// SetTitle sets the title.
func (t escapingTable) SetTitle(format string, a ...any) {
	t.Writer.SetTitle("%s", Escape(fmt.Sprintf(format, a...)))
}

// SetCaption sets the caption.
func (t escapingTable) SetCaption(format string, a ...any) {
	t.Writer.SetCaption("%s", Escape(fmt.Sprintf(format, a...)))
}

// escapeRow returns a row whose texts are escaped.
func escapeRow(row table.Row) table.Row {
	out := make(table.Row, len(row))
	for i, cell := range row {
		switch cell := cell.(type) {
		case string:
			out[i] = Escape(cell)
		case Lines:
			out[i] = EscapeLines(string(cell))
		case error, fmt.Stringer:
			out[i] = Escape(fmt.Sprint(cell))
		default:
			out[i] = cell
		}
	}
	return out
}
