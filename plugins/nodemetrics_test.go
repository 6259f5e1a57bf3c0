package plugins

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/nodemetrics"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// The risk in the metrics is the one in the scores, without a pod on top.
func TestRiskOfANode(t *testing.T) {
	cluster := schedtest.Cluster{
		Nodes: []*v1.Node{schedtest.Node("a", "cpu", "8", "memory", "32Gi"), schedtest.Node("b", "cpu", "8", "memory", "32Gi"), schedtest.Node("c", "cpu", "8", "memory", "32Gi")},
		Pods:  []*v1.Pod{schedtest.CPU("1", "a", "4", "12"), schedtest.CPU("2", "b", "4", "12")},
	}
	registry := RegistryWithLoad(func(time.Duration) (*load.Store, error) {
		store := load.NewStore(time.Hour, nil)
		return store, store.Put(load.Reading{Time: time.Now(), Nodes: map[string]load.Node{"a": cpuLoad(0.5, 0.1), "c": cpuLoad(0.02, 0.001)}})
	})
	f, snapshot, err := schedtest.New(t.Context(), registry, schedtest.Plugin{Name: "LowRiskOverCommitment"}, cluster)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := registry["LowRiskOverCommitment"](t.Context(), nil, handle{f, snapshot})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]float64{
		// Excess 12 - 4 = 8, allowed 8 - 4 = 4: limit risk 0.5. The mean is at the
		// requests: load risk 0.5. (0.5 + 0.5) / 2.
		"a": 0.5,
		// No load is known: the limit risk alone.
		"b": 0.5,
		// Empty and idle.
		"c": 0,
	} {
		info, err := snapshot.Get(node)
		if err != nil {
			t.Fatal(err)
		}
		if got := plugin.(nodemetrics.Judge).Risk(info, noderes.SumsOf(info)); math.Abs(got-want) > 0.005 {
			t.Errorf("%s: risk %.3f, want %.3f", node, got, want)
		}
	}
}
