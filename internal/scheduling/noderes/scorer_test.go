package noderes

import (
	"sync/atomic"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// TestScorer checks the scores with and without PreScore, and what is computed: the data once per cycle, the score of a
// candidate once.
func TestScorer(t *testing.T) {
	all := numbered(3)
	for name, withPreScore := range map[string]bool{"with PreScore": true, "score only": false} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			var began, scored atomic.Int32
			scorer := NewScorer("test", cache, snapshotHandle{all: all},
				func(pending *Pending) int64 {
					began.Add(1)
					return pending.Get(resources.CPUResource).Request
				},
				func(request *int64, place Place, node fwk.NodeInfo) int64 {
					scored.Add(1)
					return *request + cache.SumsAt(place, node, false).Get(resources.CPUResource).Request
				})
			for cycle := range int32(2) {
				state, pod := framework.NewCycleState(), podRequesting("pending", 100*int64(cycle+1))
				if withPreScore {
					if status := scorer.PreScore(t.Context(), state, pod, all.nodes[:2]); !status.IsSuccess() {
						t.Fatal(status.AsError())
					}
				}
				for range 2 {
					for i, node := range all.nodes {
						// Node i has a pod that requests i.
						want := 100*int64(cycle+1) + int64(i)
						if got, status := scorer.Score(t.Context(), state, pod, node); got != want || !status.IsSuccess() {
							t.Errorf("cycle %d: score %d of node %d, status %v, want %d", cycle, got, i, status, want)
						}
					}
				}
				if data := *scorer.Data(state, pod); data != 100*int64(cycle+1) || began.Load() != cycle+1 {
					t.Errorf("cycle %d: data %d, computed %d times", cycle, data, began.Load())
				}
				want := 6 * (cycle + 1) // each of three nodes twice
				if withPreScore {
					want = 4 * (cycle + 1) // the two candidates once, the third node twice
				}
				if scored.Load() != want {
					t.Errorf("cycle %d: %d scores were computed, want %d", cycle, scored.Load(), want)
				}
			}
		})
	}
}
