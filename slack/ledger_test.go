package slack

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// newPoolLedger returns an empty ledger of its own cluster.
func newPoolLedger() *poolLedger { return NewCluster(gpuName, nicName).newPool() }

// testNode is a node that may be in the pool.
type testNode struct {
	InPool bool
	ledgerNode
}

// newLedgerOf returns a new ledger with nodes and pods.
func newLedgerOf(nodes map[string]testNode, pods map[string]ledgerPod) *poolLedger {
	l := newPoolLedger()
	for name, node := range nodes {
		l.SetNode(named(name), node.InPool, node.ledgerNode)
	}
	for id, pod := range pods {
		l.setPod(id, pod)
	}
	return l
}

// recount computes the pool without a ledger.
func recount(nodes map[string]testNode, pods map[string]ledgerPod) poolTotals {
	var p poolTotals
	shapes := []resources.Amounts{}
	for name, node := range nodes {
		if !node.InPool {
			continue
		}
		left, used := node.Allocatable, resources.Amounts{}
		for _, pod := range pods {
			if pod.Node != name {
				continue
			}
			if pod.Daemon {
				left = left.Subtract(pod.Requests)
				continue
			}
			used = used.Add(pod.Requests)
			if !pod.Requests.Extended.IsZero() {
				continue // see recountDevices
			}
			p.Requested = p.Requested.Add(pod.Requests)
			if !pod.OptedOut {
				p.MaxPodRequests = p.MaxPodRequests.Max(pod.Requests)
				if p.LargestByCPU.Compare(pod.Requests) < 0 {
					p.LargestByCPU = pod.Requests
				}
				if r := pod.Requests; r.Memory > p.LargestByMemory.Memory ||
					r.Memory == p.LargestByMemory.Memory &&
						r.CPU > p.LargestByMemory.CPU {
					p.LargestByMemory = r
				}
			}
		}
		p.Matching++
		if node.Usable {
			p.Nodes++
			p.Allocatable = p.Allocatable.Add(withDevices(node.Allocatable, 0, 0))
			if !node.Booting {
				p.Free = p.Free.Add(withDevices(left.Subtract(used), 0, 0))
			}
			shapes = append(shapes, withDevices(left, 0, 0))
		}
	}
	p.Shapes = maximalShapes(shapes)
	return p
}

// withDevices returns amounts with other amounts of two devices.
func withDevices(a resources.Amounts, gpus, nics int64) resources.Amounts {
	a.Extended = resources.ExtendedAmounts{}.With(gpuName, gpus).With(nicName, nics)
	return a
}

// recountDevices computes the pods with devices and the free devices of nodes without a ledger.
func recountDevices(
	nodes map[string]testNode, pods map[string]ledgerPod,
) (map[resources.ExtendedAmounts]devicePods, map[string]resources.ExtendedAmounts) {
	shapes, free := map[resources.ExtendedAmounts]devicePods{}, map[string]resources.ExtendedAmounts{}
	for name, node := range nodes {
		var used resources.Amounts
		for _, pod := range pods {
			devices := pod.Requests.Extended
			if pod.Node != name || devices.IsZero() {
				continue
			}
			used = used.Add(pod.Requests)
			if node.InPool && !pod.Daemon {
				shapes[devices] = devicePods{shapes[devices].pods + 1, shapes[devices].requests.Add(pod.Requests)}
			}
		}
		free[name] = node.Allocatable.Subtract(used).Extended
	}
	return shapes, free
}

// TestLedgerMatchesRecount checks for random changes of nodes and pods that the ledgers of two pools equal a recount,
// do not depend on the order of changes, and are empty after all are deleted.
func TestLedgerMatchesRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, nodes, pods := newPoolLedger(), map[string]testNode{}, map[string]ledgerPod{}
		shared, inShared := l.newPool(), map[string]testNode{} // another pool of the cluster
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			name := fmt.Sprint("node-", rapid.IntRange(0, 4).Draw(t, "node"))
			id := fmt.Sprint("pod-", rapid.IntRange(0, 9).Draw(t, "pod"))
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0, 1:
				pods[id] = ledgerPod{
					Node:     rapid.SampledFrom([]string{"", name, name, name}).Draw(t, "on"),
					Requests: drawAmounts(t, "requests", resources.Amounts{CPU: 4000, Memory: 16 * gib}),
					Daemon:   rapid.Bool().Draw(t, "daemon"), OptedOut: rapid.Bool().Draw(t, "opted out"),
				}
				if pod := pods[id]; rapid.Bool().Draw(t, "device") {
					pod.Requests = withDevices(
						pod.Requests, rapid.Int64Range(1, 3).Draw(t, "gpus"), rapid.Int64Range(0, 1).Draw(t, "nics"))
					pods[id] = pod
				}
				l.setPod(id, pods[id])
			case 2:
				delete(pods, id)
				l.deletePod(id)
			case 3:
				node := testNode{
					rapid.Bool().Draw(t, "in pool"),
					ledgerNode{
						rapid.Bool().Draw(t, "usable"),
						rapid.Bool().Draw(t, "booting"),
						withDevices(drawAmounts(t, "allocatable", resources.Amounts{CPU: 16_000, Memory: 64 * gib}),
							rapid.Int64Range(0, 2).Draw(t, "gpus"), 0),
						rapid.Int64Range(0, 5).Draw(t, "slots"),
					},
				}
				nodes[name] = node
				l.SetNode(named(name), node.InPool, node.ledgerNode)
				node.InPool = rapid.Bool().Draw(t, "in shared pool")
				inShared[name] = node
				shared.SetNode(named(name), node.InPool, node.ledgerNode)
			case 4:
				delete(nodes, name)
				delete(inShared, name)
				l.DeleteNode(name)
			}
			want := recount(nodes, pods)
			if got := l.Pool(); !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v\nwant\n%+v", got, want)
			}
			if got, want := shared.Pool(), recount(inShared, pods); !reflect.DeepEqual(got, want) {
				t.Fatalf("shared: %+v\nwant\n%+v", got, want)
			}
			shapes, free := recountDevices(nodes, pods)
			if !reflect.DeepEqual(l.mergedDevicePods(), shapes) {
				t.Fatalf("pods with devices %+v, want %+v", l.devicePods, shapes)
			}
			for _, node := range l.capacities(true) {
				if node.Free.Extended != free[node.node.Name] {
					t.Fatalf("%s: free %+v, want devices %+v", node.node.Name, node.Free, free[node.node.Name])
				}
			}
			if fresh := newLedgerOf(nodes, pods).Pool(); !reflect.DeepEqual(fresh, want) {
				t.Fatalf("new ledger: %+v\nwant\n%+v", fresh, want)
			}
		}
		for id := range pods {
			l.deletePod(id)
		}
		for name := range nodes {
			l.DeleteNode(name)
		}
		if got := l.Pool(); len(l.accounts)+len(l.pods)+len(l.podShapes)+len(l.nodeShapes)+len(l.devicePods) > 0 ||
			!reflect.DeepEqual(got, newPoolLedger().Pool()) || !reflect.DeepEqual(shared.Pool(), got) {
			t.Fatalf("not empty: %+v, %+v", l, got)
		}
	})
}

// nodeNames and podIDs name 5,000 nodes and 150,000 pods.
var nodeNames, podIDs = func() (nodes [5000]string, pods [150_000]string) {
	for n := range nodes {
		nodes[n] = fmt.Sprint("node-", n)
	}
	for i := range pods {
		pods[i] = fmt.Sprint("pod-", i)
	}
	return nodes, pods
}()

// largeLedger returns a ledger of these nodes and pods, with one hundred shapes of pods.
func largeLedger() *poolLedger {
	l := newPoolLedger()
	for n, name := range nodeNames {
		l.SetNode(named(name), true, ledgerNode{true, false, cores(float64(16*(1+n%4)), float64(64*(1+n%4))), 110})
		for p := range 30 {
			i := n*30 + p
			l.setPod(podIDs[i], ledgerPod{Node: name, Requests: cores(0.1+0.01*float64(i%50), 0.25+0.05*float64(i%20)), Daemon: p < 3})
		}
	}
	return l
}

func BenchmarkLedger(b *testing.B) {
	l := largeLedger()
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			compute(l.Pool(), usual)
		}
	})
	b.Run("add and delete pod", func(b *testing.B) {
		for b.Loop() {
			l.setPod("new", ledgerPod{Node: "node-7", Requests: cores(0.3, 1)})
			l.deletePod("new")
		}
	})
	b.Run("from scratch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			compute(largeLedger().Pool(), usual)
		}
	})
}
