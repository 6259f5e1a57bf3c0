package wire

import (
	"bytes"
	"math"
	"os"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// recorded.json is what load-watcher v0.2.3 answered to GET /watcher, reading a
// Prometheus server of three nodes.
func TestDecodeARecordedAnswer(t *testing.T) {
	raw, err := os.ReadFile("testdata/recorded.json")
	must.Succeed(t, err)
	reading, err := Decode(bytes.NewReader(raw))
	must.Succeed(t, err)
	if !reading.Time.Equal(time.Unix(1795259567, 0)) || reading.Window != 15*time.Minute || reading.Source != "Prometheus" ||
		reading.Rejected != 0 {
		t.Errorf("at %s over %s from %s, rejected %d", reading.Time, reading.Window, reading.Source, reading.Rejected)
	}
	want := map[string]load.Node{
		"node-1": {CPU: load.Utilization{Mean: 0.3863, StdDev: 0.0203}, Memory: load.Utilization{Mean: 0.5524, StdDev: 0.0057}},
		"node-2": {CPU: load.Utilization{Mean: 0.0516, StdDev: 0.0278}, Memory: load.Utilization{Mean: 0.2010, StdDev: 0.0055}},
		"node-3": {CPU: load.Utilization{Mean: 0.8987, StdDev: 0.0304}, Memory: load.Utilization{Mean: 0.7512, StdDev: 0.0039}},
	}
	if len(reading.Nodes) != len(want) {
		t.Errorf("%d nodes, want %d", len(reading.Nodes), len(want))
	}
	near := func(a, b load.Utilization) bool {
		return math.Abs(a.Mean-b.Mean) < 0.0001 && math.Abs(a.StdDev-b.StdDev) < 0.0001
	}
	for name, node := range want {
		if got := reading.Nodes[name]; !near(got.CPU, node.CPU) || !near(got.Memory, node.Memory) {
			t.Errorf("%s: %+v, want %+v", name, got, node)
		}
	}
	// The reading encoded again decodes to the same load.
	var again bytes.Buffer
	must.Succeed(t, Encode(&again, reading))
	if !bytes.Contains(again.Bytes(), []byte(`"window":{"duration":"15m","start":1795258667,"end":1795259567}`)) {
		t.Errorf("the window differs: %.200s", &again)
	}
	second, err := Decode(&again)
	if err != nil || len(second.Nodes) != 3 || !near(second.Nodes["node-3"].CPU, want["node-3"].CPU) {
		t.Errorf("%+v, %v", second, err)
	}
}
