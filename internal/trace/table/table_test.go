package table

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

var columns = []string{"name", "count", "share"}

type row struct {
	name  string
	count int64
	share float64
}

// read returns all rows.
func read(r *Reader) (rows []row, err error) {
	names := Unique{}
	for r.Next() {
		rows = append(rows, row{names.Name(r, 0), r.Int(1, 0, 100), r.Number(2, 0, 1)})
	}
	return rows, r.Err()
}

func TestRead(t *testing.T) {
	want := []row{{"a", 1, 0.5}, {"b", 100, 0}}
	for name, r := range map[string]*Reader{
		"in order":         NewWithHeader("f", strings.NewReader("name,count,share\na,1,0.5\nb,100,0\n"), columns),
		"in another order": NewWithHeader("f", strings.NewReader("share,name,count\n0.5,a,1\n0,b,100"), columns),
		"without a header": New("f", strings.NewReader("a,1,0.5\nb,100.0,0e9\n"), columns),
		"from Windows":     NewWithHeader("f", strings.NewReader("\ufeffname,count,share\r\na,1,0.5\r\nb,100,0\r\n"), columns),
		"quoted":           New("f", strings.NewReader("\"a\",\"1\",0.5\n\nb,100,0\n"), columns),
		"byte by byte":     New("f", iotest.OneByteReader(strings.NewReader("a,1,0.5\nb,100,0\n")), columns),
		"many short rows": New("f", strings.NewReader(
			strings.Repeat("\n", maxRow/2)+"a,1,0.5\n"+strings.Repeat("\n", maxRow/2)+"b,100,0\n"), columns),
	} {
		t.Run(name, func(t *testing.T) {
			if rows, err := read(r); err != nil || !slices.Equal(rows, want) {
				t.Errorf("%v, %v", rows, err)
			}
		})
	}
}

const header = "name,count,share\n"

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "f: found an empty file: must have a header with the columns name, count, share",
		"name,count\n":             "f, line 1: found no column share: must have each of these once: name, count, share",
		"name,count,share,extra\n": `f, line 1: found the column "extra": must have each of these once: name, count, share`,
		"name,count,share,name\n":  `f, line 1: found the column "name": must have each of these once: name, count, share`,
		header + "a,1\n":           "f, line 2: found 2 columns: must have 3: name, count, share",
		header + "a,1,1\nb,1,1,":   "f, line 3: found 4 columns: must have 3: name, count, share",
		header + "a,-1,1\n":        `f, line 2, column count: invalid value "-1": must be an integer from 0 to 100`,
		header + "a,1.5,1\n":       `f, line 2, column count: invalid value "1.5": must be an integer from 0 to 100`,
		header + "a,.0,1\n":        `f, line 2, column count: invalid value ".0": must be an integer from 0 to 100`,
		header + "a,99999999999999999999,1\n": `f, line 2, column count: invalid value "99999999999999999999": must be an integer ` +
			`from 0 to 100`,
		header + "a,1,NaN\n": `f, line 2, column share: invalid value "NaN": must be a number from 0 to 1`,
		header + "a,1,\n":    `f, line 2, column share: invalid value "": must be a number from 0 to 1`,
		header + "<script>,1,1\n": `f, line 2, column name: invalid value "<script>": must be a name of 1 to 253 letters, ` +
			`digits and . _ - = + /`,
		header + "a,1,1\nb,1,1\na,1,1\n": `f, line 4, column name: invalid value "a": must be unique: it is also in line 2`,
		header + "a,1,1\nb,x,y\n":        `f, line 3, column count: invalid value "x": must be an integer from 0 to 100`,
		header + "a,\"1,1\nb,1,1\n":      `f, line 3: extraneous or missing " in quoted-field`,
		header + "a\"b,1,1\n":            `f, line 2: bare " in non-quoted-field`,
		header + "a,1," + strings.Repeat("9", 100) + "\n": `f, line 2, column share: invalid value "` + strings.Repeat("9", 60) +
			`...": must be a number from 0 to 1`,
	} {
		t.Run(text[:min(len(text), 40)], func(t *testing.T) {
			if _, err := read(NewWithHeader("f", strings.NewReader(text), columns)); err == nil || err.Error() != want {
				t.Errorf("error\n%v, want\n%s", err, want)
			}
		})
	}
}

// endless is a row that does not end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	e.read += len(p)
	return len(p), nil
}

func TestRowLengthIsLimited(t *testing.T) {
	for name, start := range map[string]string{"plain": "", "quoted": "\""} {
		t.Run(name, func(t *testing.T) {
			source := &endless{}
			_, err := read(New("f", io.MultiReader(strings.NewReader(start), source), columns))
			if !errors.Is(err, errRow) || source.read > 2*maxRow {
				t.Errorf("error %v after %d bytes", err, source.read)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	fault := errors.New("disk failure")
	_, err := read(New("f", io.MultiReader(strings.NewReader("a,1,1\n"), iotest.ErrReader(fault)), columns))
	if !errors.Is(err, fault) || err.Error() != "f, line 2: disk failure" {
		t.Errorf("error %v", err)
	}
	if problem := (*Error)(nil); !errors.As(err, &problem) || problem.File != "f" {
		t.Errorf("error %T", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("name,count,share\na,1,0.5\n")
	f.Add("name,count,share\n\"a\n\",1,0.5\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := read(NewWithHeader("f", strings.NewReader(text), columns))
		if err != nil {
			if problem := (*Error)(nil); !errors.As(err, &problem) {
				t.Errorf("error %T", err)
			}
			return
		}
		for _, row := range rows {
			if row.name == "" || row.count < 0 || row.count > 100 || !(row.share >= 0 && row.share <= 1) {
				t.Errorf("%+v", row)
			}
		}
	})
}
