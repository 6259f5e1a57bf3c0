package cache

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

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// scheduler is the part of kube-scheduler that keeps nodes and pods: its cache, the snapshot of each
// cycle, and the evaluation of groups of pods on the snapshot.
type scheduler struct {
	log      klog.Logger
	cache    schedulercache.Cache
	snapshot *schedulercache.Snapshot
	nodes    map[string]*v1.Node
	running  []*v1.Pod
	// assumed are the pods of a group, which are in the snapshot only.
	assumed []*v1.Pod

	// Two caches of sums: eager is read after every step, lazy only sometimes, so that it finds several
	// changes at once.
	eager, lazy *Cache
}

func newScheduler(ctx context.Context) *scheduler {
	metrics.Register()
	return &scheduler{
		log: klog.Background(), nodes: map[string]*v1.Node{},
		cache: schedulercache.New(ctx, nil, true, true), snapshot: schedulercache.NewEmptySnapshot(),
		eager: New(), lazy: New(),
	}
}

// beginCycle removes the pods of a group and updates the snapshot.
func (s *scheduler) beginCycle(t *rapid.T) {
	for len(s.assumed) > 0 {
		s.forgetLast(t)
	}
	must.Succeed(t, s.cache.UpdateSnapshot(s.log, s.snapshot))
	for _, c := range []*Cache{s.eager, s.lazy} {
		c.dropDeleted(s.snapshot)
		if nodes := len(s.list()); len(c.names()) > nodes {
			t.Fatalf("%d nodes in the cache, %d in the snapshot", len(c.names()), nodes)
		}
	}
}

func (s *scheduler) forgetLast(t *rapid.T) {
	last := len(s.assumed) - 1
	must.Succeed(t, s.snapshot.ForgetPod(s.log, s.assumed[last]))
	s.assumed = s.assumed[:last]
}

func (s *scheduler) list() []fwk.NodeInfo {
	nodes, _ := s.snapshot.NodeInfos().List()
	return nodes
}

// check compares the sums of every node of the snapshot with those of the oracle.
func (s *scheduler) check(t *rapid.T, c *Cache) {
	for _, node := range s.list() {
		sums := c.Sums(node, &Pending{InGroup: len(s.assumed) > 0, all: s.snapshot})
		pods := podsOf(node)
		want := recountSpecs(pods)
		for _, name := range resourceNames {
			if got := sums.Get(resources.NewResource(name)); got != want[name] {
				for _, pod := range pods {
					t.Log(describe(pod))
				}
				t.Fatalf("%s, %s: %+v, want %+v", node.Node().Name, name, got, want[name])
			}
		}
	}
	if got := len(c.names()); got != len(s.list()) {
		t.Fatalf("%d nodes in the cache, %d in the snapshot", got, len(s.list()))
	}
}

func podsOf(node fwk.NodeInfo) []*v1.Pod {
	var pods []*v1.Pod
	for _, info := range node.GetPods() {
		pods = append(pods, info.GetPod())
	}
	return pods
}

// drawFrom draws one of the items. Without items it calls Skip, which makes rapid draw another step; no
// test is skipped.
func drawFrom[T any](t *rapid.T, label string, items []T) T {
	if len(items) == 0 {
		t.Skip("no " + label)
	}
	return rapid.SampledFrom(items).Draw(t, label)
}

// Sums are correct after any sequence of operations of the scheduler.
func TestCacheWithScheduler(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newScheduler(ctx)
		names := 0
		nodeName := func(t *rapid.T) string { return drawFrom(t, "node", slices.Sorted(maps.Keys(s.nodes))) }
		rt.Repeat(map[string]func(*rapid.T){
			"add node": func(*rapid.T) {
				names++
				node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", names%6)}}
				if _, ok := s.nodes[node.Name]; !ok {
					s.nodes[node.Name] = node
					s.cache.AddNode(s.log, node)
				}
			},
			"delete node, keep its pods": func(t *rapid.T) {
				name := nodeName(t)
				must.Succeed(t, s.cache.RemoveNode(s.log, s.nodes[name]))
				delete(s.nodes, name)
			},
			"update node": func(t *rapid.T) {
				name := nodeName(t)
				s.cache.UpdateNode(s.log, s.nodes[name], s.nodes[name].DeepCopy())
			},
			"add pod": func(t *rapid.T) {
				pod := drawPod(t)
				pod.Spec.NodeName = nodeName(t)
				must.Succeed(t, s.cache.AddPod(s.log, pod))
				s.running = append(s.running, pod)
			},
			"replace pod": func(t *rapid.T) {
				old := drawFrom(t, "pod", s.running)
				pod := drawPod(t)
				pod.Name, pod.UID, pod.Spec.NodeName = old.Name, old.UID, old.Spec.NodeName
				must.Succeed(t, s.cache.UpdatePod(s.log, old, pod))
				s.running[slices.Index(s.running, old)] = pod
			},
			"remove pod": func(t *rapid.T) {
				pod := drawFrom(t, "pod", s.running)
				must.Succeed(t, s.cache.RemovePod(s.log, pod))
				s.running = slices.DeleteFunc(s.running, func(p *v1.Pod) bool { return p == pod })
			},
			"begin a cycle": s.beginCycle,
			"add a pod of a group": func(t *rapid.T) {
				pod := drawPod(t)
				pod.Spec.NodeName = drawFrom(t, "node", s.list()).Node().Name
				info, err := framework.NewPodInfo(pod)
				must.Succeed(t, err)
				must.Succeed(t, s.snapshot.AssumePod(info))
				s.assumed = append(s.assumed, pod)
			},
			"remove the last pod of the group": func(t *rapid.T) {
				if len(s.assumed) == 0 {
					t.Skip("no pod") // the step, as in drawFrom
				}
				s.forgetLast(t)
			},
			"check the lazy cache": func(t *rapid.T) { s.check(t, s.lazy) },
			"":                     func(t *rapid.T) { s.check(t, s.eager) },
		})
	})
}

// Two groups of pods in sequence with the same number of pods, the same last pod and the same generation.
func TestCacheWithPodGroups(t *testing.T) {
	pod := func(name string, request int64) *framework.PodInfo {
		pod := podRequesting(name, request)
		pod.Spec.NodeName = "node"
		info, err := framework.NewPodInfo(pod)
		must.Succeed(t, err)
		return info
	}
	snapshot := schedulercache.NewSnapshot(nil, []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}}})
	node, err := snapshot.Get("node")
	must.Succeed(t, err)
	cache, generation := New(), node.GetGeneration()
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
			must.Succeed(t, snapshot.AssumePod(info))
		}
		if node.GetGeneration() != generation {
			t.Fatal("the scheduler changes the generation for a group: the test does not cover the case")
		}
		if got := cache.Sums(node, &Pending{InGroup: true, all: snapshot}).Get(resources.CPUResource).Request; got != tc.want {
			t.Errorf("with %d pods: %d, want %d", len(tc.group), got, tc.want)
		}
		for _, info := range slices.Backward(tc.group) {
			must.Succeed(t, snapshot.ForgetPod(klog.Background(), info.Pod))
		}
	}
	// Without a group.
	if got := cache.Sums(node, in(snapshot)).Get(resources.CPUResource).Request; got != 0 {
		t.Errorf("after the groups: %d, want 0", got)
	}
}

// During the preemption of a group, the scheduler works on copies of all nodes, with other addresses. The sums
// of nodes that did not change are not computed again.
func TestSumsOfCopiedNodes(t *testing.T) {
	pods, nodes := []*v1.Pod{}, []*v1.Node{}
	for i := range 20 {
		pod := podRequesting(fmt.Sprint("pod-", i), int64(i))
		pod.Spec.NodeName = fmt.Sprint("node-", i)
		node := &v1.Node{}
		node.Name = pod.Spec.NodeName
		pods, nodes = append(pods, pod), append(nodes, node)
	}
	snapshot, cache := schedulercache.NewSnapshot(pods, nodes), New()
	read := func() map[string]*NodeSums {
		sums := map[string]*NodeSums{}
		infos, _ := snapshot.List()
		for _, info := range infos {
			sums[info.Node().Name] = cache.Sums(info, in(snapshot))
		}
		return sums
	}
	before := read()
	must.Succeed(t, snapshot.StartMutations())
	during := read()
	must.Succeed(t, snapshot.EndMutations())
	for name, after := range read() {
		if before[name] != during[name] || before[name] != after {
			t.Errorf("%s: the sums were computed again", name)
		}
	}
	if got := len(cache.names()); got != len(nodes) {
		t.Errorf("%d nodes in the cache, want %d", got, len(nodes))
	}
}
