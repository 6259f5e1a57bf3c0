// Package table reads the CSV files of traces row by row in constant memory. Errors name the file, the
// line, the column, the invalid value and the valid ones.
package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// maxRow is the largest length of a row in bytes.
const maxRow = 64 << 10

// errRow is the error of rows that are too long.
var errRow = fmt.Errorf("the row exceeds %d bytes", maxRow)

// Reader reads the rows of a file up to the first error.
type Reader struct {
	file    string
	csv     *csv.Reader
	source  *meter
	columns []string
	index   []int // of each column in a row
	row     []string
	line    int
	err     error
}

// New returns a reader of a file without a header, with the columns in the given order.
func New(file string, source io.Reader, columns []string) *Reader {
	r := &Reader{file: file, source: &meter{source: source}, columns: columns, index: make([]int, len(columns))}
	for i := range columns {
		r.index[i] = i
	}
	r.csv = csv.NewReader(r.source)
	r.csv.ReuseRecord = true
	r.csv.FieldsPerRecord = -1 // Next checks the number, to name the columns in errors.
	return r
}

// NewWithHeader returns a reader of a file whose first row names the columns, in any order.
func NewWithHeader(file string, source io.Reader, columns []string) *Reader {
	r := New(file, source, columns)
	header, ok := r.read()
	if !ok {
		if r.err == nil {
			r.err = &Error{File: file, Found: "an empty file", Allowed: "a header with the columns " + strings.Join(columns, ", ")}
		}
		return r
	}
	header = slices.Clone(header)
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // The byte order mark of some editors.
	for i, name := range header {
		if !slices.Contains(columns, name) || slices.Index(header, name) < i {
			r.err = &Error{
				File: file, Line: r.line, Found: "the column " + quote(name), Allowed: "each of these once: " + strings.Join(columns, ", "),
			}
			return r
		}
	}
	for i, name := range columns {
		if r.index[i] = slices.Index(header, name); r.index[i] < 0 {
			r.err = &Error{
				File: file, Line: r.line, Found: "no column " + name, Allowed: "each of these once: " + strings.Join(columns, ", "),
			}
			return r
		}
	}
	return r
}

// read reads a row with any number of columns.
func (r *Reader) read() ([]string, bool) {
	r.source.row = 0
	row, err := r.csv.Read()
	if err == io.EOF {
		return nil, false
	}
	if err != nil {
		r.line++
		if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
			r.line, err = parse.Line, parse.Err
		}
		r.err = &Error{File: r.file, Line: r.line, Err: err}
		return nil, false
	}
	r.line, _ = r.csv.FieldPos(0)
	return row, true
}

// Next advances to the next row and reports whether there is one.
func (r *Reader) Next() bool {
	if r.err != nil {
		return false
	}
	row, ok := r.read()
	if !ok {
		return false
	}
	if len(row) != len(r.columns) {
		r.err = &Error{
			File: r.file, Line: r.line, Found: fmt.Sprintf("%d columns", len(row)),
			Allowed: fmt.Sprintf("%d: %s", len(r.columns), strings.Join(r.columns, ", ")),
		}
		return false
	}
	r.row = row
	return true
}

// Err returns the first error, or nil if the file was read completely.
func (r *Reader) Err() error { return r.err }

// Line returns the line of the row, counted from 1.
func (r *Reader) Line() int { return r.line }

// Fail records an invalid value in a column of the row. Only the first error is kept.
func (r *Reader) Fail(column int, allowed string) {
	if r.err == nil {
		r.err = &Error{File: r.file, Line: r.line, Column: r.columns[column], Found: quote(r.Text(column)), Allowed: allowed}
	}
}

// Text returns a column. The string is valid until the next call of Next.
func (r *Reader) Text(column int) string { return r.row[r.index[column]] }

// Name returns a column that must be a valid name.
func (r *Reader) Name(column int) string {
	name := r.Text(column)
	if !trace.ValidName(name) {
		r.Fail(column, fmt.Sprintf("a name of 1 to %d letters, digits and . _ - = + /", trace.MaxName))
	}
	return strings.Clone(name)
}

// Int returns a column that must be an integer in [low, high]. A fraction of zeros is allowed.
func (r *Reader) Int(column int, low, high int64) int64 {
	text := r.Text(column)
	if head, zeros, ok := strings.Cut(text, "."); ok && head != "" && zeros != "" && strings.Trim(zeros, "0") == "" {
		text = head
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < low || value > high {
		r.Fail(column, fmt.Sprintf("an integer from %d to %d", low, high))
		return low
	}
	return value
}

// Number returns a column that must be a number in [low, high].
func (r *Reader) Number(column int, low, high float64) float64 {
	value, err := strconv.ParseFloat(r.Text(column), 64)
	if err != nil || math.IsNaN(value) || value < low || value > high {
		r.Fail(column, fmt.Sprintf("a number from %v to %v", low, high))
		return low
	}
	return value
}

// Second returns a column that must be a time in seconds, at least the given one, which the description
// names.
func (r *Reader) Second(column int, earliest int64, description string) int64 {
	value := r.Int(column, 0, trace.MaxSecond)
	if value < earliest {
		r.Fail(column, fmt.Sprintf("at least %d, %s", earliest, description))
		return earliest
	}
	return value
}

// Unique has the lines of names that must be unique.
type Unique map[string]int32

// Name returns a column that must be a valid name that is not in an earlier row.
func (u Unique) Name(r *Reader, column int) string {
	name := r.Name(column)
	if line, ok := u[name]; ok {
		r.Fail(column, fmt.Sprintf("unique: it is also in line %d", line))
	}
	u[name] = int32(min(r.line, math.MaxInt32))
	return name
}

// meter limits the bytes that are read for one row.
type meter struct {
	source io.Reader
	row    int // bytes since the start of the row
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.row > maxRow {
		return 0, errRow
	}
	n, err := m.source.Read(p)
	m.row += n
	return n, err
}
