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
			return cache.SumsAt(place, node, false).Get(CPU).Request
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
	request := func(place Place, node fwk.NodeInfo) int64 { return cache.SumsAt(place, node, false).Get(CPU).Request }
	score := func(nodes []fwk.NodeInfo) Scores { return cache.Score(t.Context(), handle, state, nodes, request) }
	first := score(all.nodes[1:])
	all.nodes[2].(*framework.NodeInfo).AddPodInfo(nodeWith("", podRequesting("more", 40)).Pods[0])
	second, third := score(all.nodes[1:]), score(all.nodes[:1])
	if second.candidates != first.candidates || third.candidates == first.candidates {
		t.Error("the candidates are not shared, or those of other nodes are")
	}
	if got, _ := second.Of(all.nodes[2]); got != 42 {
		t.Errorf("score %d of a node that has changed, want 2 + 40", got)
	}
	all.nodes = append(all.nodes, nodeWith("new", podRequesting("pod-of-new", 7)))
	fourth := score(all.nodes)
	if got, known := fourth.Of(all.nodes[3]); got != 7 || !known {
		t.Errorf("score %d of a new node, known %t, want 7", got, known)
	}
}
