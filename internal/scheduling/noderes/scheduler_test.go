package noderes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"
)

// scheduler is the part of the real one that keeps nodes and pods: its cache,
// the snapshot that every cycle begins with, and the trying out of groups of
// pods on the snapshot.
type scheduler struct {
	log      klog.Logger
	cache    schedulercache.Cache
	snapshot *schedulercache.Snapshot
	nodes    map[string]*v1.Node
	running  []*v1.Pod
	// tried are the pods of a group that stand on the snapshot only.
	tried []*v1.Pod

	// Two caches of sums: one is asked about every node after every step, the
	// other now and then, so that it finds several changes at once.
	eager, lazy *Cache
}

func newScheduler(ctx context.Context) *scheduler {
	metrics.Register()
	return &scheduler{
		log: klog.Background(), nodes: map[string]*v1.Node{},
		cache: schedulercache.New(ctx, nil, true, true), snapshot: schedulercache.NewEmptySnapshot(),
		eager: NewCache(), lazy: NewCache(),
	}
}

// beginCycle takes a snapshot; a group that was being tried out is over.
func (s *scheduler) beginCycle(t *rapid.T) {
	for len(s.tried) > 0 {
		s.forgetLast(t)
	}
	if err := s.cache.UpdateSnapshot(s.log, s.snapshot); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Cache{s.eager, s.lazy} {
		c.Pending(framework.NewCycleState(), &v1.Pod{}, s.snapshot)
		if nodes := len(s.list()); c.Len() > nodes {
			t.Fatalf("%d nodes in the cache, %d in the snapshot", c.Len(), nodes)
		}
	}
}

func (s *scheduler) forgetLast(t *rapid.T) {
	last := len(s.tried) - 1
	if err := s.snapshot.ForgetPod(s.log, s.tried[last]); err != nil {
		t.Fatal(err)
	}
	s.tried = s.tried[:last]
}

func (s *scheduler) list() []fwk.NodeInfo {
	nodes, _ := s.snapshot.NodeInfos().List()
	return nodes
}

// check asks a cache about every node of the snapshot.
func (s *scheduler) check(t *rapid.T, c *Cache) {
	for _, node := range s.list() {
		sums := c.Sums(node, s.snapshot, len(s.tried) > 0)
		pods := podsOf(node)
		want := recountSpecs(pods)
		for _, name := range resourceNames {
			if got := sums.Get(NewResource(name)); got != want[name] {
				for _, pod := range pods {
					t.Log(describe(pod))
				}
				t.Fatalf("%s, %s: %+v, want %+v", node.Node().Name, name, got, want[name])
			}
		}
	}
	if c.Len() != len(s.list()) {
		t.Fatalf("%d nodes in the cache, %d in the snapshot", c.Len(), len(s.list()))
	}
}

func podsOf(node fwk.NodeInfo) []*v1.Pod {
	var pods []*v1.Pod
	for _, info := range node.GetPods() {
		pods = append(pods, info.GetPod())
	}
	return pods
}

// drawOf draws one of some. If there are none, the step does not apply, and rapid
// draws another: its Skip ends the step, and no test is skipped.
func drawOf[T any](t *rapid.T, label string, some []T) T {
	if len(some) == 0 {
		t.Skip("no " + label)
	}
	return rapid.SampledFrom(some).Draw(t, label)
}

// Whatever the scheduler does to its nodes, sums are those of the pods that
// stand on them.
func TestCacheUnderTheScheduler(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newScheduler(ctx)
		names := 0
		nodeName := func(t *rapid.T) string { return drawOf(t, "node", slices.Sorted(maps.Keys(s.nodes))) }
		rt.Repeat(map[string]func(*rapid.T){
			"add node": func(*rapid.T) {
				names++
				node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", names%6)}}
				if _, ok := s.nodes[node.Name]; !ok {
					s.nodes[node.Name] = node
					s.cache.AddNode(s.log, node)
				}
			},
			"delete node, its pods stay a while": func(t *rapid.T) {
				name := nodeName(t)
				if err := s.cache.RemoveNode(s.log, s.nodes[name]); err != nil {
					t.Fatal(err)
				}
				delete(s.nodes, name)
			},
			"update node": func(t *rapid.T) {
				name := nodeName(t)
				s.cache.UpdateNode(s.log, s.nodes[name], s.nodes[name].DeepCopy())
			},
			"add pod": func(t *rapid.T) {
				pod := drawPod(t)
				pod.Spec.NodeName = nodeName(t)
				if err := s.cache.AddPod(s.log, pod); err != nil {
					t.Fatal(err)
				}
				s.running = append(s.running, pod)
			},
			"replace pod": func(t *rapid.T) {
				old := drawOf(t, "pod", s.running)
				pod := drawPod(t)
				pod.Name, pod.UID, pod.Spec.NodeName = old.Name, old.UID, old.Spec.NodeName
				if err := s.cache.UpdatePod(s.log, old, pod); err != nil {
					t.Fatal(err)
				}
				s.running[slices.Index(s.running, old)] = pod
			},
			"remove pod": func(t *rapid.T) {
				pod := drawOf(t, "pod", s.running)
				if err := s.cache.RemovePod(s.log, pod); err != nil {
					t.Fatal(err)
				}
				s.running = slices.DeleteFunc(s.running, func(p *v1.Pod) bool { return p == pod })
			},
			"begin a cycle": s.beginCycle,
			"try a pod of a group": func(t *rapid.T) {
				pod := drawPod(t)
				pod.Spec.NodeName = drawOf(t, "node", s.list()).Node().Name
				info, err := framework.NewPodInfo(pod)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.snapshot.AssumePod(info); err != nil {
					t.Fatal(err)
				}
				s.tried = append(s.tried, pod)
			},
			"take the last pod of the group off": func(t *rapid.T) {
				if len(s.tried) == 0 {
					t.Skip("no pod") // the step, as in drawOf
				}
				s.forgetLast(t)
			},
			"ask now and then": func(t *rapid.T) { s.check(t, s.lazy) },
			"":                 func(t *rapid.T) { s.check(t, s.eager) },
		})
	})
}

// Two groups of pods, one after the other: the same number, the same pod last,
// and the generation says that nothing happened.
func TestCacheWhileGroupsAreTriedOut(t *testing.T) {
	pod := func(name string, request int64) *framework.PodInfo {
		pod := podRequesting(name, request)
		pod.Spec.NodeName = "node"
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	snapshot := schedulercache.NewSnapshot(nil, []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}}})
	node, err := snapshot.Get("node")
	if err != nil {
		t.Fatal(err)
	}
	cache, generation := NewCache(), node.GetGeneration()
	a, b, last := pod("a", 100), pod("b", 700), pod("last", 10)
	for _, tc := range []struct {
		group []*framework.PodInfo
		want  int64
	}{
		{nil, 0},
		{[]*framework.PodInfo{a, last}, 110},
		{[]*framework.PodInfo{b, last}, 710},
		{[]*framework.PodInfo{a, last}, 110},
	} {
		for _, info := range tc.group {
			if err := snapshot.AssumePod(info); err != nil {
				t.Fatal(err)
			}
		}
		if node.GetGeneration() != generation {
			t.Fatal("the scheduler no longer hides a group that it tries out; this test proves nothing")
		}
		if got := cache.Sums(node, snapshot, true).Get(CPU).Request; got != tc.want {
			t.Errorf("with %d pods: %d, want %d", len(tc.group), got, tc.want)
		}
		for _, info := range slices.Backward(tc.group) {
			if err := snapshot.ForgetPod(klog.Background(), info.Pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The group is over, and pods are scheduled one by one again.
	if got := cache.Sums(node, snapshot, false).Get(CPU).Request; got != 0 {
		t.Errorf("after the groups: %d, want 0", got)
	}
}
