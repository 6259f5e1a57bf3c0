package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// documented is the message in the package comment.
const documented = `{"timestamp": 1795239886,
 "window": {"duration": "15m", "start": 1795238986, "end": 1795239886},
 "source": "Prometheus",
 "data": {"NodeMetricsMap": {"node-1": {"metrics": [
   {"name": "instance:node_cpu:ratio", "type": "CPU", "operator": "AVG", "rollup": "15m", "value": 40}],
   "tags": {}, "metadata": {"dataCenter": ""}}}}}`

func TestDecode(t *testing.T) {
	got, err := Decode(strings.NewReader(documented))
	must.Succeed(t, err)
	want := load.Reading{
		Source: "Prometheus", Time: time.Unix(1795239886, 0), Window: 15 * time.Minute,
		Nodes: map[string]load.Node{"node-1": {CPU: load.Utilization{Mean: 0.4}, HasCPU: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDecodeManyDisks checks a node with hundreds of disks: existing services send two metrics for each disk.
func TestDecodeManyDisks(t *testing.T) {
	disks := strings.Repeat(`{"type": "Storage", "operator": "AVG", "value": 1}, {"type": "Storage", "operator": "STD", "value": NaN},`,
		300)
	message := `{"timestamp": 1795239886, "data": {"NodeMetricsMap": {"a": {"metrics": [` + disks +
		`{"type": "CPU", "operator": "AVG", "value": 40}]}}}}`
	got, err := Decode(strings.NewReader(message))
	must.Succeed(t, err)
	if want := (load.Node{CPU: load.Utilization{Mean: 0.4}, HasCPU: true}); got.Nodes["a"] != want || got.Rejected != 0 {
		t.Errorf("%+v, %d values rejected, want %+v", got.Nodes, got.Rejected, want)
	}
}

func TestDecodeMetrics(t *testing.T) {
	cpu := func(mean, stdDev float64) *load.Node {
		return &load.Node{CPU: load.Utilization{Mean: mean, StdDev: stdDev}, HasCPU: true}
	}
	for name, tc := range map[string]struct {
		metrics string
		// want is nil if the load of the node is unknown.
		want     *load.Node
		rejected int
	}{
		"average and deviation": {
			`{"type": "CPU", "operator": "AVG", "value": 40}, {"type": "CPU", "operator": "STD", "value": 5}`, cpu(0.4, 0.05), 0,
		},
		"deviation first": {
			`{"type": "CPU", "operator": "STD", "value": 5}, {"type": "CPU", "operator": "AVG", "value": 40}`, cpu(0.4, 0.05), 0,
		},
		"cpu and memory": {
			`{"type": "CPU", "operator": "AVG", "value": 40}, {"type": "Memory", "operator": "AVG", "value": 60}`,
			&load.Node{CPU: load.Utilization{Mean: 0.4}, Memory: load.Utilization{Mean: 0.6}, HasCPU: true, HasMemory: true}, 0,
		},
		"memory only": {
			`{"type": "Memory", "operator": "AVG", "value": 60}`,
			&load.Node{Memory: load.Utilization{Mean: 0.6}, HasMemory: true}, 0,
		},
		"the latest value only": {`{"type": "CPU", "operator": "Latest", "value": 70}`, cpu(0.7, 0), 0},
		"no operator":           {`{"type": "CPU", "value": 70}`, cpu(0.7, 0), 0},
		"the average is preferred over the latest value": {
			`{"type": "CPU", "operator": "AVG", "value": 40}, {"type": "CPU", "operator": "Latest", "value": 70}`, cpu(0.4, 0), 0,
		},
		// The deviation belongs to an average that was not sent.
		"the latest value and a deviation": {
			`{"type": "CPU", "operator": "Latest", "value": 70}, {"type": "CPU", "operator": "STD", "value": 5}`, cpu(0.7, 0), 0,
		},
		"a deviation only":   {`{"type": "CPU", "operator": "STD", "value": 5}`, nil, 0},
		"zero":               {`{"type": "CPU", "operator": "AVG", "value": 0}`, cpu(0, 0), 0},
		"a hundred":          {`{"type": "CPU", "operator": "AVG", "value": 100}`, cpu(1, 0), 0},
		"over a hundred":     {`{"type": "CPU", "operator": "AVG", "value": 130}`, cpu(1, 0), 0},
		"a bare NaN":         {`{"type": "CPU", "operator": "AVG", "value": NaN}`, nil, 1},
		"NaN in quotes":      {`{"type": "CPU", "operator": "AVG", "value": "NaN"}`, nil, 1},
		"null":               {`{"type": "CPU", "operator": "AVG", "value": null}`, nil, 1},
		"no value":           {`{"type": "CPU", "operator": "AVG"}`, nil, 1},
		"infinite":           {`{"type": "CPU", "operator": "AVG", "value": Infinity}`, nil, 1},
		"minus infinite":     {`{"type": "CPU", "operator": "AVG", "value": -Infinity}`, nil, 1},
		"infinite, as in Go": {`{"type": "CPU", "operator": "AVG", "value": +Inf}`, nil, 1},
		"too many digits":    {`{"type": "CPU", "operator": "AVG", "value": 1e400}`, nil, 1},
		"negative":           {`{"type": "CPU", "operator": "AVG", "value": -3}`, nil, 1},
		"an object":          {`{"type": "CPU", "operator": "AVG", "value": {"ratio": 40}}`, nil, 1},
		"one invalid value of two": {
			`{"type": "CPU", "operator": "AVG", "value": NaN}, {"type": "Memory", "operator": "AVG", "value": 60}`,
			&load.Node{Memory: load.Utilization{Mean: 0.6}, HasMemory: true}, 1,
		},
		"invalid average, valid latest value": {
			`{"type": "CPU", "operator": "AVG", "value": NaN}, {"type": "CPU", "operator": "Latest", "value": 70}`, cpu(0.7, 0), 1,
		},
		"node names like NaN": {`{"name": "NaN", "type": "CPU", "operator": "AVG", "rollup": "\"-Infinity", "value": 40}`, cpu(0.4, 0), 0},
		"another type":        {`{"type": "Bandwidth", "operator": "AVG", "value": 40}`, nil, 0},
		"another operator":    {`{"type": "CPU", "operator": "P99", "value": 40}`, nil, 1},
		"fields of other services": {
			`{"type": "CPU", "operator": "AVG", "value": 40, "unit": "%", "labels": {"a": [1]}}`, cpu(0.4, 0), 0,
		},
		"no metrics": {``, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(
				strings.NewReader(`{"timestamp": 1795239886, "data": {"NodeMetricsMap": {"node-1": {"metrics": [` + tc.metrics + `]}}}}`),
			)
			must.Succeed(t, err)
			want := map[string]load.Node{}
			if tc.want != nil {
				want["node-1"] = *tc.want
			}
			if diff := cmp.Diff(want, got.Nodes); diff != "" {
				t.Error(diff)
			}
			if got.Rejected != tc.rejected {
				t.Errorf("%d values rejected, want %d", got.Rejected, tc.rejected)
			}
		})
	}
}

func TestDecodeTimes(t *testing.T) {
	const nodes = `"data": {"NodeMetricsMap": {}}`
	for name, tc := range map[string]struct {
		message string
		time    int64
		window  time.Duration
	}{
		"both": {
			`{"timestamp": 100, "window": {"duration": "15m", "start": 0, "end": 90}, ` + nodes + `}`, 100, 15 * time.Minute,
		},
		"no timestamp, the window's end": {`{"window": {"duration": "1h30m", "end": 90}, ` + nodes + `}`, 90, 90 * time.Minute},
		"no window":                      {`{"timestamp": 100, ` + nodes + `}`, 100, 0},
		"invalid duration of the window": {`{"timestamp": 100, "window": {"duration": "15 minutes"}, ` + nodes + `}`, 100, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(strings.NewReader(tc.message))
			must.Succeed(t, err)
			if got.Time.Unix() != tc.time || got.Window != tc.window {
				t.Errorf("time %d, window %s, want %d, %s", got.Time.Unix(), got.Window, tc.time, tc.window)
			}
		})
	}
}
