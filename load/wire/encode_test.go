package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func drawUtilization(t *rapid.T, label string) load.Utilization {
	fraction := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1), rapid.Just(1.0))
	return load.Utilization{Mean: fraction.Draw(t, label), StdDev: fraction.Draw(t, label+"StdDev")}
}

func drawReading(t *rapid.T) load.Reading {
	name := rapid.OneOf(rapid.StringMatching(`[a-z][a-z0-9.-]{0,20}`), rapid.StringN(0, -1, maxName),
		rapid.SampledFrom([]string{"NaN", `say "Infinity"`, `a\`, "-Inf", "{}", "ö\n"}))
	node := rapid.Custom(func(t *rapid.T) load.Node {
		var n load.Node
		if n.HasCPU = rapid.Bool().Draw(t, "hasCPU"); n.HasCPU {
			n.CPU = drawUtilization(t, "cpu")
		}
		if n.HasMemory = rapid.Bool().Draw(t, "hasMemory"); n.HasMemory {
			n.Memory = drawUtilization(t, "memory")
		}
		return n
	})
	return load.Reading{
		Source: rapid.String().Draw(t, "source"),
		Time:   time.Unix(rapid.Int64Range(1, math.MaxInt32).Draw(t, "time"), 0),
		Window: time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "window")),
		Nodes:  rapid.MapOfN(name, node, 0, 10).Draw(t, "nodes"),
	}
}

// TestEncodeAndDecode checks that decoding returns the encoded reading, except for nodes without known load and
// for rounding errors.
func TestEncodeAndDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reading := drawReading(t)
		var message, again bytes.Buffer
		must.Succeed(t, Encode(&message, reading))
		if err := Encode(&again, reading); err != nil || !bytes.Equal(message.Bytes(), again.Bytes()) {
			t.Fatalf("encoded twice, it differs (error %v):\n%s%s", err, &message, &again)
		}
		got, err := Decode(&message)
		must.Succeed(t, err)
		want := reading
		want.Nodes = map[string]load.Node{}
		for name, node := range reading.Nodes {
			if node.HasCPU || node.HasMemory {
				want.Nodes[name] = node
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEncode(t *testing.T) {
	reading := load.Reading{
		Source: "Test", Time: time.Unix(1000, 0), Window: time.Minute,
		Nodes: map[string]load.Node{
			"b": {Memory: load.Utilization{Mean: 0.5, StdDev: 0.25}, HasMemory: true},
			// Invalid values are omitted.
			"a": {CPU: load.Utilization{Mean: math.NaN()}, HasCPU: true},
		},
	}
	var got strings.Builder
	must.Succeed(t, Encode(&got, reading))
	// 1000 - 60 = 940
	want := `{"timestamp":1000,"window":{"duration":"1m","start":940,"end":1000},"source":"Test","data":{"NodeMetricsMap":{` +
		`"a":{"metrics":[],"tags":{},"metadata":{"dataCenter":""}},` +
		`"b":{"metrics":[{"name":"Memory","type":"Memory","operator":"AVG","rollup":"1m","value":50},` +
		`{"name":"Memory","type":"Memory","operator":"STD","rollup":"1m","value":25}],"tags":{},"metadata":{"dataCenter":""}}}}}` + "\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

// TestEncodeSmallValues checks that no number has an exponent that the client of load-watcher rejects.
func TestEncodeSmallValues(t *testing.T) {
	for fraction, want := range map[float64]string{
		0: "0", 5e-324: "0", 1e-22: "0", 9e-15: "0",
		// In percent, 1e-14 is 1e-12.
		1e-14: "1e-12", 2.5e-9: "2.5e-7", 1.0 / 1024: "0.09765625",
	} {
		nodes := map[string]load.Node{"a": {CPU: load.Utilization{Mean: 0.5, StdDev: fraction}, HasCPU: true}}
		var got strings.Builder
		must.Succeed(t, Encode(&got, load.Reading{Time: time.Unix(1000, 0), Nodes: nodes}))
		if want := `"operator":"STD","rollup":"0s","value":` + want + "}"; !strings.Contains(got.String(), want) {
			t.Errorf("deviation %g: got %s, want %s", fraction, &got, want)
		}
	}
}

// TestEncodeReportsWriteErrors checks that an error of the writer is returned.
func TestEncodeReportsWriteErrors(t *testing.T) {
	broken := errors.New("connection lost")
	reading, pipe := load.Reading{Nodes: map[string]load.Node{"a": {}}}, func() io.Writer {
		r, w := io.Pipe()
		_ = r.CloseWithError(broken)
		return w
	}()
	if err := Encode(pipe, reading); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func isValid(node load.Node) bool {
	within := func(u load.Utilization) bool { return u.Valid() && u.Mean <= 1 && u.StdDev <= 1 }
	return (node.HasCPU || node.HasMemory) && within(node.CPU) && within(node.Memory)
}

// FuzzDecode checks that Decode returns an error or a valid reading that can be encoded.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(documented))
	for _, value := range []string{"NaN", `"NaN"`, "null", "-Infinity", "+Inf", "-1", "1e400", "130", "{}", `"\"`} {
		f.Add([]byte(`{"timestamp": 1, "data": {"NodeMetricsMap": {"n": {"metrics": [` +
			`{"type": "CPU", "operator": "AVG", "value": ` + value + `}, {"type": "Memory", "operator": "STD", "value": ` + value + `}]}}}}`))
	}
	f.Add([]byte(`{"window": {"duration": "-1h", "end": 4}, "data": {"NodeMetricsMap": {"n": null}}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		reading, err := Decode(bytes.NewReader(message))
		if err != nil {
			if err.Error() == "" || reading.Nodes != nil {
				t.Errorf("error %q with %d nodes", err, len(reading.Nodes))
			}
			return
		}
		if reading.Time.Unix() <= 0 || reading.Rejected < 0 {
			t.Errorf("time %s, %d values rejected", reading.Time, reading.Rejected)
		}
		for name, node := range reading.Nodes {
			if !isValid(node) {
				t.Errorf("%q: %+v", name, node)
			}
		}
		var passedOn bytes.Buffer
		must.Succeed(t, Encode(&passedOn, reading))
		again, err := Decode(&passedOn)
		must.Succeed(t, err)
		if len(again.Nodes) != len(reading.Nodes) || !again.Time.Equal(reading.Time) || again.Window != reading.Window {
			t.Errorf("encoded again: %d nodes, %s, %s; before: %d nodes, %s, %s",
				len(again.Nodes), again.Time, again.Window, len(reading.Nodes), reading.Time, reading.Window)
		}
	})
}
