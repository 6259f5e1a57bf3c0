package replay

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// TestDefaultSpreading verifies that kube-scheduler spreads the replicas of a workload of a trace, and not the pods
// of a job, as in a cluster.
//
// A node of 64 cores is less allocated than three of 8, even with three pods of a core: (64-4)/64 = 94 % against
// (8-1)/8 = 88 %. Only the spreading of replicas makes a second pod avoid it: a node with a replica scores ln 6
// + 2 = 4, a node without a replica 2, and normalized 100 (4+2-4)/4 = 50 against 100, with a weight of 2.
func TestDefaultSpreading(t *testing.T) {
	for _, tc := range []struct {
		batch bool
		want  map[string]int
	}{{false, map[string]int{"big": 1, "a": 1, "b": 1, "c": 1}}, {true, map[string]int{"big": 4}}} {
		t.Run(fmt.Sprintf("batch=%t", tc.batch), func(t *testing.T) {
			cluster := generate.NewCluster{
				Nodes: []recording.Node{machine("big", 64, 256), machine("a", 8, 32), machine("b", 8, 32), machine("c", 8, 32)},
			}
			web := &generate.Owner{Name: "web", IsJob: tc.batch}
			for i := range 4 {
				pod := needs(fmt.Sprintf("p%d", i), 1, 4, 0, recording.Never)
				pod.Owner = web
				cluster.Pods = append(cluster.Pods, pod)
			}
			o := options(t, "default", "constant:mean=1", 1)
			got := map[string]int{}
			o.Placed = func(_, node string) { got[node]++ }
			outcomeOf(t, completed(cluster, generate.Limits{CPU: 2, Memory: 2}, 1), o)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
