package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/load"
)

func TestDecodeErrors(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"nothing":     {"", "must be JSON in the format of a load watcher: unexpected end of JSON input"},
		"a bare word": {`{"data": x}`, "must be JSON in the format of a load watcher: invalid character 'x' looking for beginning of value"},
		"a timestamp in quotes": {
			`{"timestamp": "abc"}`, "must be JSON in the format of a load watcher: " +
				"json: cannot unmarshal string into Go struct field message.timestamp of type int64",
		},
		"no timestamp":         {`{"data": {"NodeMetricsMap": {}}}`, "timestamp: invalid value 0: must be Unix seconds"},
		"a negative timestamp": {`{"timestamp": -1, "data": {"NodeMetricsMap": {}}}`, "timestamp: invalid value -1: must be Unix seconds"},
		"milliseconds": {
			`{"timestamp": 1795239886000, "data": {"NodeMetricsMap": {}}}`,
			"timestamp: invalid value 1795239886000: must be Unix seconds",
		},
		"no nodes": {`{"timestamp": 1795239886, "data": {}}`, "data.NodeMetricsMap: required"},
		"no data":  {`{"timestamp": 1795239886}`, "data.NodeMetricsMap: required"},
		"a list of metrics-server": {
			`{"kind": "NodeMetricsList", "items": []}`,
			`found kind "NodeMetricsList": must be the message of a load watcher, with timestamp and data.NodeMetricsMap`,
		},
	} {
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

// messageOf returns a message with the nodes.
func messageOf(nodes string) string {
	return `{"timestamp": 1795239886, "data": {"NodeMetricsMap": ` + nodes + `}}`
}

// TestDecodeBadNodes checks that errors name the node or the metric.
func TestDecodeBadNodes(t *testing.T) {
	for nodes, want := range map[string]string{
		`[]`:                          `data.NodeMetricsMap: found "[]": must be an object`,
		`"text"`:                      `data.NodeMetricsMap: found "\"text\"": must be an object`,
		`{"a": 1}`:                    `data.NodeMetricsMap["a"]: json: cannot unmarshal number`,
		`{"a": {"metrics": {}}}`:      `data.NodeMetricsMap["a"]: metrics: found "{}": must be a list`,
		`{"a": {"metrics": [{}, 1]}}`: `data.NodeMetricsMap["a"]: metrics[1]: json: cannot unmarshal number`,
	} {
		_, err := Decode(strings.NewReader(messageOf(nodes)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", nodes, err, want)
		}
	}
}

// TestDecodeIgnored checks that metrics that are ignored are counted, and that metrics of other services are not.
func TestDecodeIgnored(t *testing.T) {
	for metric, want := range map[string]int{
		`"type": "CPU", "operator": "AVG", "value": 50`:                                                  0,
		`"type": "CPU", "operator": "AVG", "value": 50}, {"type": "CPU", "operator": "AVG", "value": 90`: 1,
		`"type": "Storage", "operator": "AVG", "value": 50`:                                              0,
		`"type": "CPU", "operator": "Unknown", "value": 50`:                                              0,
		`"type": "cpu", "operator": "AVG", "value": 50`:                                                  1,
		`"operator": "AVG", "value": 50`:                                                                 1,
		`"type": "CPU", "operator": "MEAN", "value": 50`:                                                 1,
		`"type": "CPU", "operator": "AVG"`:                                                               1,
		`"type": "CPU", "operator": "AVG", "value": "50%"`:                                               1,
		`"type": "CPU", "operator": "AVG", "value": 150`:                                                 0,
		`"type": "CPU", "operator": "AVG", "value": 400`:                                                 1, // a sum over CPUs
		`"type": "CPU", "operator": "AVG", "value": -5`:                                                  1,
	} {
		got, err := Decode(strings.NewReader(messageOf(`{"a": {"metrics": [{` + metric + `}]}}`)))
		if err != nil || got.Rejected != want {
			t.Errorf("%s: %d rejected, %v, want %d", metric, got.Rejected, err, want)
		}
	}
}

// TestDecodeIsBounded checks that small messages that would decode to much memory are rejected without
// taking that memory, and that the error states the bound.
func TestDecodeIsBounded(t *testing.T) {
	var nodes strings.Builder
	for i := range maxNodes + 1 {
		fmt.Fprintf(&nodes, `"%d":{"metrics":[{"type":"CPU","value":1}]},`, i)
	}
	for name, tc := range map[string]struct{ message, want string }{
		"metrics": {
			messageOf(`{"a": {"metrics": [` + strings.Repeat("{},", 5_000_000) + `{}]}}`),
			`data.NodeMetricsMap["a"]: metrics: found more than 10000: must have at most 10000`,
		},
		"nodes": {messageOf("{" + nodes.String() + `"a": {}}`), "data.NodeMetricsMap: found more than 100000 nodes: must have at most 100000"},
	} {
		_, err := Decode(strings.NewReader(tc.message))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %.200v, want %s", name, err, tc.want)
		}
	}
	// Parts without load are skipped: 5 million tags, and 3 million nodes without metrics.
	for name, text := range map[string]string{
		"tags":  messageOf(`{"a": {"metrics": [{"type": "CPU", "value": 1}], "tags": {"x": [` + strings.Repeat("{},", 5_000_000) + `{}]}}}`),
		"empty": messageOf(`{` + strings.Repeat(`"x":{},`, 3_000_000) + `"a": {"metrics": [{"type": "CPU", "value": 1}]}}`),
	} {
		got, err := Decode(strings.NewReader(text))
		if err != nil || len(got.Nodes) != 1 {
			t.Errorf("%s: %d nodes, %v", name, len(got.Nodes), err)
		}
	}
	long := strings.Repeat("x", maxName+1)
	got, err := Decode(strings.NewReader(messageOf(`{"` + long + `": {"metrics": [{"type": "CPU", "value": 1}]}}`)))
	if err != nil || len(got.Nodes) != 0 || got.Rejected != 1 {
		t.Errorf("a long name: %d nodes, %d rejected, %v", len(got.Nodes), got.Rejected, err)
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
