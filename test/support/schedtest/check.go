package schedtest

import (
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// CheckScores runs a plugin over a cluster, once with PreScore and once enabled for score only, and
// compares the raw and the normalized score of every node.
func CheckScores(t *testing.T, registry frameworkruntime.Registry, p Plugin, cluster Cluster, pod *v1.Pod, want map[string][2]int64) {
	t.Helper()
	for _, scoreOnly := range []bool{false, true} {
		p.ScoreOnly = scoreOnly
		scores, err := Run(t, registry, p, cluster, pod)
		got := map[string][2]int64{}
		for node, s := range scores {
			got[node] = [2]int64{s.Raw, s.Normalized}
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("score only %t: scores %v, want %v (error %v)", scoreOnly, got, want, err)
		}
	}
}

// now is the fixed time of the stores that WithLoad creates.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// WithLoad returns a function that creates stores with a reading of that age, or without a reading if
// nodes is nil.
func WithLoad(nodes map[string]load.Node, age time.Duration) func(maxAge time.Duration) (*load.Store, error) {
	return func(maxAge time.Duration) (*load.Store, error) {
		store := load.NewStore(maxAge, func() time.Time { return now })
		if nodes == nil {
			return store, nil
		}
		return store, store.Put(load.Reading{Time: now.Add(-age), Nodes: nodes})
	}
}

// CPULoad returns the load of a node whose CPU alone is measured.
func CPULoad(mean, stdDev float64) load.Node {
	return load.Node{CPU: load.Utilization{Mean: mean, StdDev: stdDev}, HasCPU: true}
}
