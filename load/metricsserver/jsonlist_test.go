package metricsserver

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// read returns the visited names and values of a list.
func read(in io.Reader, limit int64) (visited []string, err error) {
	err = readList(in, limit, func(name string, value *json.Decoder) error {
		var raw json.RawMessage
		err := value.Decode(&raw)
		visited = append(visited, name+"="+string(raw))
		return err
	})
	return visited, err
}

func TestReadList(t *testing.T) {
	for text, tc := range map[string]struct {
		want []string
		err  string
	}{
		`{"kind":"List","items":[{"a":[1]},2],"metadata":{}}`: {want: []string{`kind="List"`, `items={"a":[1]}`, "items=2", "metadata={}"}},
		`{"items":[]}` + "\n":       {},
		`{"items":[1],"items":[2]}`: {want: []string{"items=1", "items=2"}},
		``:                          {err: "unexpected end of JSON input"},
		`{"items":[1`:               {want: []string{"items=1"}, err: "unexpected end of JSON input"},
		`{"kind":"Status"}`:         {want: []string{`kind="Status"`}, err: "no field items"},
		`[]`:                        {err: "found [: must be an object"},
		`{"items":{}}`:              {err: "found {: must be a list of items"},
		`{"items":null}`:            {err: "found <nil>: must be a list of items"},
		`{"items":[]} 1`:            {err: "found a second value after the list"},
		`{"items":[1}`:              {want: []string{"items=1"}, err: "invalid character '}' after array element"},
	} {
		got, err := read(strings.NewReader(text), 1<<20)
		if !slices.Equal(got, tc.want) || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: visited %q and %v, want %q and %s", text, got, err, tc.want, tc.err)
		}
	}
}

// endless repeats a character without end, and counts the bytes that are read.
type endlessList struct {
	character byte
	read      int
}

func (e *endlessList) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.character
	}
	e.read += len(p)
	return len(p), nil
}

// TestLimit checks that Read ends at a value of more than 1 MiB, after at most twice as many bytes, 64 KiB, and one further buffer of
// the decoder, but not at a list of many small values.
func TestLimit(t *testing.T) {
	const limit = 1 << 20
	for name, tc := range map[string]struct {
		start    string
		repeated byte
		want     string
	}{
		"item":          {`{"items":[1,"`, 'a', "item 2 exceeds the limit of 1 MiB"},
		"another field": {`{"metadata":"`, 'a', "a value exceeds the limit of 1 MiB"},
		"spaces":        {`{"items":[1,`, ' ', "item 2 exceeds the limit of 1 MiB"},
		"spaces after":  {`{"items":[]}`, ' ', "a value exceeds the limit of 1 MiB"},
	} {
		body := &endlessList{character: tc.repeated}
		_, err := read(io.MultiReader(strings.NewReader(tc.start), body), limit)
		if !errors.Is(err, errTooLarge) || err.Error() != tc.want || body.read > 5*limit {
			t.Errorf("%s: %v after %d bytes, want %s", name, err, body.read, tc.want)
		}
	}
	many := `{"items":[` + strings.Repeat("12345678,", 1<<20) + "0]}"
	if visited, err := read(strings.NewReader(many), limit); err != nil || len(visited) != 1<<20+1 {
		t.Errorf("%d values, %v, want %d", len(visited), err, 1<<20+1)
	}
}
