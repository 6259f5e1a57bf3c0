package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxFile is the largest size of a file in bytes. The published file of pods has 1 MB.
const maxFile = 256 << 20

// table reads the rows of a file, whose first row names the columns in any order, up to the first error.
type table struct {
	csv    *csv.Reader
	header []string
	row    []string
	line   int
	names  map[string]int // lines of the names that must be unique
	err    error
}

func newTable(source io.Reader, columns []string) *table {
	t := &table{csv: csv.NewReader(io.LimitReader(source, maxFile)), names: map[string]int{}}
	if !t.next() {
		if t.err == nil {
			t.err = fmt.Errorf("found an empty file: must have a header with the columns %s", strings.Join(columns, ", "))
		}
		return t
	}
	t.header = t.row
	t.header[0] = strings.TrimPrefix(t.header[0], "\ufeff") // the byte order mark of some editors
	for _, name := range columns {
		if !slices.Contains(t.header, name) {
			t.err = fmt.Errorf("line 1: found no column %s: must have %s", name, strings.Join(columns, ", "))
			break
		}
	}
	return t
}

// next advances to the next row and reports whether there is one.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.csv.Read()
	switch {
	case errors.Is(err, io.EOF) && t.csv.InputOffset() >= maxFile:
		t.err = fmt.Errorf("found more than %d MiB: must have less", maxFile>>20)
	case err != nil && !errors.Is(err, io.EOF):
		t.err = err // with the line
	}
	if err != nil {
		return false
	}
	t.row = row
	t.line, _ = t.csv.FieldPos(0)
	return true
}

// fail records an invalid value in a column of the row. Only the first error is kept.
func (t *table) fail(column, allowed string) {
	if t.err == nil {
		t.err = fmt.Errorf("line %d, column %s: invalid value %.60q: must be %s", t.line, column, t.text(column), allowed)
	}
}

// text returns a column of the row.
func (t *table) text(column string) string { return t.row[slices.Index(t.header, column)] }

// name returns a column that must be a valid name.
func (t *table) name(column string) string {
	name := t.text(column)
	if !validName.MatchString(name) {
		t.fail(column, fmt.Sprintf("a name of 1 to %d letters, digits and . _ - = + /", maxName))
	}
	return name
}

// unique returns a column that must be a valid name that is not in an earlier row.
func (t *table) unique(column string) string {
	name := t.name(column)
	if line, found := t.names[name]; found {
		t.fail(column, fmt.Sprintf("unique: it is also in line %d", line))
	}
	t.names[name] = t.line
	return name
}

// integer returns a column that must be an integer in [low, high]. A fraction of zero, as the published files have, is allowed.
func (t *table) integer(column string, low, high int64) int64 {
	value, err := strconv.ParseInt(strings.TrimSuffix(t.text(column), ".0"), 10, 64)
	if err != nil || value < low || value > high {
		t.fail(column, fmt.Sprintf("an integer from %d to %d", low, high))
		return low
	}
	return value
}

// second returns a column that must be a time in seconds, at least the earliest, which the description names.
func (t *table) second(column string, earliest int64, description string) int64 {
	value := t.integer(column, 0, maxSecond)
	if value < earliest {
		t.fail(column, fmt.Sprintf("at least %d, %s", earliest, description))
		return earliest
	}
	return value
}
