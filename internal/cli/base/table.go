package base

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// NewTable returns a table with a header, in the style of all commands. Render prints it.
func NewTable(out io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
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
