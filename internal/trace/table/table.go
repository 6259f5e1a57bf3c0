// Package table reads the comma-separated files of traces row by row, in memory
// that does not depend on how long they are, and says what is wrong with file,
// line, column, what was found and what is allowed.
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

// maxRow is how long a row may be, in bytes.
const maxRow = 64 << 10

// errRow is told of a row that does not end.
var errRow = fmt.Errorf("a row is longer than %d bytes", maxRow)

// Reader reads the rows of a file. The first thing wrong ends it.
type Reader struct {
	file    string
	csv     *csv.Reader
	source  *meter
	columns []string
	index   []int // where each column is in a row
	row     []string
	line    int
	err     error
}

// New returns a reader of a file with these columns in this order and without a
// header.
func New(file string, source io.Reader, columns []string) *Reader {
	r := &Reader{file: file, source: &meter{source: source}, columns: columns, index: make([]int, len(columns))}
	for i := range columns {
		r.index[i] = i
	}
	r.csv = csv.NewReader(r.source)
	r.csv.ReuseRecord = true
	r.csv.FieldsPerRecord = -1 // counted here, to say what is allowed
	return r
}

// NewWithHeader returns a reader of a file whose first row names these columns,
// in any order.
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
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // some editors mark UTF-8 so
	for i, name := range header {
		if !slices.Contains(columns, name) || slices.Index(header, name) < i {
			r.err = &Error{File: file, Line: r.line, Found: "the column " + quote(name), Allowed: "each once of " + strings.Join(columns, ", ")}
			return r
		}
	}
	for i, name := range columns {
		if r.index[i] = slices.Index(header, name); r.index[i] < 0 {
			r.err = &Error{File: file, Line: r.line, Found: "no column " + name, Allowed: "each once of " + strings.Join(columns, ", ")}
			return r
		}
	}
	return r
}

// read reads a row of any length.
func (r *Reader) read() ([]string, bool) {
	r.source.since = 0
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

// Next goes to the next row, and reports whether there is one.
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

// Err returns what was wrong first, nil if the file was read to its end.
func (r *Reader) Err() error { return r.err }

// Line returns the line of the row, from 1.
func (r *Reader) Line() int { return r.line }

// Fail notes that a column of this row is not what it may be. The first thing
// noted counts.
func (r *Reader) Fail(column int, allowed string) {
	if r.err == nil {
		r.err = &Error{File: r.file, Line: r.line, Column: r.columns[column], Found: quote(r.Text(column)), Allowed: allowed}
	}
}

// Text returns a column as it is. It must be cloned to be kept.
func (r *Reader) Text(column int) string { return r.row[r.index[column]] }

// Name returns a column that has to be a name of a trace.
func (r *Reader) Name(column int) string {
	name := r.Text(column)
	if !trace.ValidName(name) {
		r.Fail(column, fmt.Sprintf("a name of 1 to %d letters, digits and . _ - = + /", trace.MaxName))
	}
	return strings.Clone(name)
}

// Whole returns a column that has to be a whole number in [low, high]. It may be
// written with zeros after a decimal point.
func (r *Reader) Whole(column int, low, high int64) int64 {
	text := r.Text(column)
	if head, zeros, ok := strings.Cut(text, "."); ok && head != "" && zeros != "" && strings.Trim(zeros, "0") == "" {
		text = head
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < low || value > high {
		r.Fail(column, fmt.Sprintf("a whole number from %d to %d", low, high))
		return low
	}
	return value
}

// Number returns a column that has to be a number in [low, high].
func (r *Reader) Number(column int, low, high float64) float64 {
	value, err := strconv.ParseFloat(r.Text(column), 64)
	if err != nil || math.IsNaN(value) || value < low || value > high {
		r.Fail(column, fmt.Sprintf("a number from %v to %v", low, high))
		return low
	}
	return value
}

// Second returns a column that has to be a point in time at or after another, in
// seconds; why says what the other is.
func (r *Reader) Second(column int, least int64, why string) int64 {
	value := r.Whole(column, 0, trace.MaxSecond)
	if value < least {
		r.Fail(column, fmt.Sprintf("at least %d, %s", least, why))
		return least
	}
	return value
}

// Unique sees to it that names come once.
type Unique map[string]int32

// Name returns a column that has to be a name that did not come before.
func (u Unique) Name(r *Reader, column int) string {
	name := r.Name(column)
	if before, ok := u[name]; ok {
		r.Fail(column, fmt.Sprintf("each once; it is in line %d", before))
	}
	u[name] = int32(min(r.line, math.MaxInt32))
	return name
}

// meter reads from a source, and fails if one row takes too much of it.
type meter struct {
	source io.Reader
	since  int
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.since > maxRow {
		return 0, errRow
	}
	n, err := m.source.Read(p)
	m.since += n
	return n, err
}
