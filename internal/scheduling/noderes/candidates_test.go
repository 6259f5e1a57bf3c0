package noderes

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// snapshotHandle is a handle with a snapshot and a parallelizer.
type snapshotHandle struct {
	fwk.Handle
	all *lister
}

func (h snapshotHandle) SnapshotSharedLister() fwk.SharedLister { return h.all }
func (h snapshotHandle) Parallelizer() fwk.Parallelizer         { return parallelize.NewParallelizer(4) }

// Each candidate is scored once, with its own place, whatever the order of the candidates and their number.
func TestScoreOfCandidates(t *testing.T) {
	metrics.Register()
	all := numbered(3000)
	cache, handle, random := NewCache(), snapshotHandle{all: all}, rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{0, 1, 500, 1999, 2000, 3000} {
		nodes := slices.Clone(all.nodes)
		random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		nodes = nodes[:count]
		var mu sync.Mutex
		calls := map[fwk.NodeInfo]int{}
		request := func(place Place, node fwk.NodeInfo) int64 {
			mu.Lock()
			defer mu.Unlock()
			calls[node]++
			return cache.SumsAt(place, node, false).Get(resources.CPUResource).Request
		}
		scores := cache.Score(t.Context(), handle, framework.NewCycleState(), nodes, request)
		for i, node := range all.nodes {
			score, known := scores.Of(node)
			isCandidate := slices.Contains(nodes, node)
			if known != isCandidate || known && score != int64(i) || isCandidate != (calls[node] == 1) {
				t.Fatalf("%d candidates: node %d: score %d, known %t, %d calls", count, i, score, known, calls[node])
			}
		}
		if _, known := scores.Of(nodeWith("stranger")); known {
			t.Errorf("%d candidates: a node that is none of them has a score", count)
		}
	}
	var none Scores
	if _, known := none.Of(all.nodes[0]); known {
		t.Error("a score without PreScore")
	}
}

// A second PreScore of a cycle shares the candidates of the first, unless they are others, and sees changes of nodes.
func TestCandidatesAreShared(t *testing.T) {
	all := numbered(3)
	cache, handle, state := NewCache(), snapshotHandle{all: all}, framework.NewCycleState()
	request := func(place Place, node fwk.NodeInfo) int64 {
		return cache.SumsAt(place, node, false).Get(resources.CPUResource).Request
	}
	score := func(nodes []fwk.NodeInfo) Scores { return cache.Score(t.Context(), handle, state, nodes, request) }
	expect := func(what string, scores Scores, node int, want int64, wantKnown bool) {
		t.Helper()
		if got, known := scores.Of(all.nodes[node]); known != wantKnown || known && got != want {
			t.Errorf("%s: score %d of node %d (known: %t), want %d (%t)", what, got, node, known, want, wantKnown)
		}
	}
	first := score(all.nodes[1:])
	all.nodes[2].(*framework.NodeInfo).AddPodInfo(nodeWith("", podRequesting("more", 40)).Pods[0])
	second := score(all.nodes[1:])
	if second.cycle != first.cycle {
		t.Error("the candidates are not shared")
	}
	expect("first", first, 2, 2, true)
	expect("second", second, 2, 2+40, true)
	third := score(all.nodes[:1])
	expect("third", third, 0, 0, true)
	expect("third", third, 2, 0, false)
	expect("second after the third", second, 2, 0, false)
	all.nodes = append(all.nodes, nodeWith("new", podRequesting("pod-of-new", 7)))
	expect("a new node", score(all.nodes), 3, 7, true)
	// Several candidates are missing from the snapshot.
	known := all.nodes
	handle.all = &lister{nodes: known[:2]}
	all.nodes = append(slices.Clone(known), nodeWith("x", podRequesting("pod-of-x", 8)), nodeWith("y", podRequesting("pod-of-y", 9)))
	missing := score(all.nodes)
	expect("missing from the snapshot", missing, 4, 8, true)
	expect("missing from the snapshot", missing, 5, 9, true)
}

// Scores of a cycle are not mistaken for those of another that began later, with the same nodes.
func TestScoresOfOverwrittenCycle(t *testing.T) {
	all := numbered(10)
	cache, handle := NewCache(), snapshotHandle{all: all}
	constant := func(score int64) Scores {
		return cache.Score(t.Context(), handle, framework.NewCycleState(), all.nodes, func(Place, fwk.NodeInfo) int64 { return score })
	}
	first, second := constant(1), constant(2)
	if _, known := first.Of(all.nodes[3]); known {
		t.Error("a score of a cycle that has been overwritten")
	}
	if got, known := second.Of(all.nodes[3]); got != 2 || !known {
		t.Errorf("score %d (known: %t), want 2", got, known)
	}
}

// A PreScore allocates nothing but what the plugin itself does.
func TestCandidatesAreReused(t *testing.T) {
	all := numbered(500)
	cache := NewCache()
	var handle fwk.Handle = snapshotHandle{all: all}
	states := []fwk.CycleState{framework.NewCycleState(), framework.NewCycleState()}
	zero := func(Place, fwk.NodeInfo) int64 { return 0 }
	i := 0
	allocations := testing.AllocsPerRun(100, func() {
		i++
		for range 3 {
			cache.Score(t.Context(), handle, states[i%2], all.nodes[i%2:], zero)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations in a cycle of three plugins, want 0", allocations)
	}
}
