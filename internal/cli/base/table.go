package base

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// Table is a table as kubectl prints it. Columns without content are left out.
type Table struct{ table metav1.Table }

// NewTable returns a table with columns.
func NewTable(columns ...string) *Table {
	t := &Table{}
	t.add(0, columns)
	return t
}

// Add adds columns.
func (t *Table) Add(columns ...string) { t.add(0, columns) }

// Wide adds columns that are printed with -o wide only.
func (t *Table) Wide(columns ...string) { t.add(1, columns) }

func (t *Table) add(priority int32, columns []string) {
	for _, name := range columns {
		t.table.ColumnDefinitions = append(t.table.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: Escape(name), Type: "string", Priority: priority,
		})
	}
}

// AddRow adds a row with a cell for each column. Cells are escaped when they are printed; see Escape.
func (t *Table) AddRow(cells ...any) {
	row := metav1.TableRow{Cells: make([]any, len(t.table.ColumnDefinitions))}
	for i := range row.Cells {
		row.Cells[i] = ""
		if i < len(cells) && cells[i] != nil {
			row.Cells[i] = Escape(fmt.Sprint(cells[i]))
		}
	}
	t.table.Rows = append(t.table.Rows, row)
}

// withoutEmpty returns the table without columns that have no content.
func (t *Table) withoutEmpty() *metav1.Table {
	isEmpty := func(column int) bool {
		return !slices.ContainsFunc(t.table.Rows, func(row metav1.TableRow) bool { return row.Cells[column] != "" })
	}
	out := &metav1.Table{Rows: make([]metav1.TableRow, len(t.table.Rows))}
	for i, column := range t.table.ColumnDefinitions {
		if isEmpty(i) {
			continue
		}
		out.ColumnDefinitions = append(out.ColumnDefinitions, column)
		for j, row := range t.table.Rows {
			out.Rows[j].Cells = append(out.Rows[j].Cells, row.Cells[i])
		}
	}
	return out
}

// widestGap is the number of spaces between the columns of a table, as kubectl's.
const widestGap = 3

// Print prints the table. The columns of a table that does not fit DefaultWidth are closer together.
func (t *Table) Print(out io.Writer, o *Output) {
	lines := t.lines(o, widestGap)
	for gap := widestGap - 1; gap > 0 && slices.ContainsFunc(lines, isTooWide); gap-- {
		lines = t.lines(o, gap)
	}
	_, _ = io.WriteString(unwrap(out), strings.Join(lines, "")) // Stdout keeps the error
}

func isTooWide(line string) bool { return utf8.RuneCountInString(line) > DefaultWidth+len("\n") }

// lines returns the lines of the table with spaces between its columns.
func (t *Table) lines(o *Output, gap int) (lines []string) {
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: o.Format == FormatWide, NoHeaders: o.noHeaders})
	var text strings.Builder
	columns := printers.GetNewTabWriter(&text).Init(&text, 6, 4, gap, ' ', 0)
	_ = errors.Join(printer.PrintObj(t.withoutEmpty(), columns), columns.Flush()) // a Builder does not fail
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimRight(line, " \n")+"\n")
	}
	return lines
}

// Markdown prints all columns of the table as GitHub renders it.
func (t *Table) Markdown(out io.Writer) {
	table := t.withoutEmpty()
	write := func(cells []string) { _, _ = fmt.Fprintf(unwrap(out), "| %s |\n", strings.Join(cells, " | ")) }
	var header []string
	for _, column := range table.ColumnDefinitions {
		header = append(header, EscapeMarkdown(column.Name))
	}
	write(header)
	write(slices.Repeat([]string{"---"}, len(header)))
	for _, row := range table.Rows {
		var cells []string
		for _, cell := range row.Cells {
			cells = append(cells, EscapeMarkdown(cell.(string)))
		}
		write(cells)
	}
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "#", `\#`, "~", `\~`, "@", "@\u2060",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "\n", "<br>")

// EscapeMarkdown returns a text that Markdown displays literally, with newlines as line breaks. The text must
// be escaped for terminals (Escape).
func EscapeMarkdown(text string) string { return markdownEscapes.Replace(text) }
