package wire

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/load"
)

func TestDecodeErrors(t *testing.T) {
	tests := map[string]struct{ message, want string }{
		"nothing": {"", "decoding load-watcher message: unexpected end of JSON input"},
		"cut off": {"{\n \"timestamp\": 1", "decoding load-watcher message: line 2, column 15: unexpected end of JSON input"},
		"a page":  {"<html>", "decoding load-watcher message: line 1, column 1: invalid character '<' looking for beginning of value"},
		// the x is the tenth character of the third line
		"a bare word": {
			"{\n \"timestamp\": 12,\n \"data\": x}",
			"decoding load-watcher message: line 3, column 10: invalid character 'x' looking for beginning of value",
		},
		// the x is the 17th; quotes put around NaN do not count
		"a bare word after NaN": {
			`{"a": NaN, "b": x}`,
			"decoding load-watcher message: line 1, column 17: invalid character 'x' looking for beginning of value",
		},
		// the line break is the 14th of the first line
		"a line break in a string": {
			"{\"source\": \"a\nb\"}",
			"decoding load-watcher message: line 1, column 14: invalid character '\\n' in string literal",
		},
		"two messages": {
			documented + "\n{}",
			"decoding load-watcher message: line 7, column 1: invalid character '{' after top-level value",
		},
		// the word ends with the 19th
		"a timestamp in quotes": {
			`{"timestamp": "abc"}`,
			"decoding load-watcher message: line 1, column 19: json: cannot unmarshal string into Go struct field message.timestamp of type int64",
		},
		"no timestamp":         {`{"data": {"NodeMetricsMap": {}}}`, "timestamp: invalid value 0: must be Unix seconds"},
		"a negative timestamp": {`{"timestamp": -1, "data": {"NodeMetricsMap": {}}}`, "timestamp: invalid value -1: must be Unix seconds"},
		"milliseconds": {
			`{"timestamp": 1795239886000, "data": {"NodeMetricsMap": {}}}`,
			"timestamp: invalid value 1795239886000: must be Unix seconds",
		},
		"no nodes": {`{"timestamp": 1795239886, "data": {}}`, "data.NodeMetricsMap: required"},
		"no data":  {`{"timestamp": 1795239886}`, "data.NodeMetricsMap: required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(strings.NewReader(tc.message))
			if err == nil || err.Error() != tc.want {
				t.Errorf("error:\n%v\nwant:\n%s", err, tc.want)
			}
			if diff := cmp.Diff(load.Reading{}, got); diff != "" {
				t.Error("a reading beside the error", diff)
			}
		})
	}
}

// blanks is a message that does not end.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestDecodeEndlessMessage(t *testing.T) {
	_, err := Decode(blanks{})
	if want := "message is larger than 64 MiB"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestDecodeFailingReader(t *testing.T) {
	broken := errors.New("connection lost")
	if _, err := Decode(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
