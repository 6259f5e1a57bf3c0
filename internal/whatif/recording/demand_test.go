package recording

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// demandNode returns a node with allocatable and all CPU in millicores.
func demandNode(name string, allocatable, capacity int64) Node {
	amounts := func(cpu int64) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI)}
	}
	return Node{Gone: Never, Object: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: amounts(allocatable), Capacity: amounts(capacity)},
	}}
}

// demandPod returns a pod of a workload with its CPU use in each step.
func demandPod(name, workload, node string, cpu ...float64) Pod {
	object := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if workload != "" {
		object.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: workload, Controller: new(true)}}
	}
	return Pod{Object: object, Node: node, Ended: Never, CPU: NewSeries(0, cpu...)}
}

// TestDemand has a node of 1000 millicores that is full in steps 2 and 3: of 300 + 700 = 1000, web demands the 500 that the other pod of its
// workload uses on n2, and batch what it used before on average, (500 + 600)/2 = 550, which is less than its 700. In step 3 web uses 480 of
// 960, less than the other, 520, and batch 480, less than 550. In step 4 the node has 940, which is not full. In step 5 it has 1200: more
// than the node has, which is not changed. If this lasts longer than the saturation, the recording is of a simulation, and nothing changes.
func TestDemand(t *testing.T) {
	nodes := []Node{demandNode("n1", 1000, 1000), demandNode("n2", 1000, 1000)}
	pods := []Pod{
		demandPod("web-0", "web", "n1", 300, 300, 300, 480, 440, 600),
		demandPod("batch-0", "", "n1", 500, 600, 700, 480, 500, 600),
		demandPod("web-1", "web", "n2", 300, 300, 500, 520, 900, 900),
	}
	d := estimateDemand(nodes, pods, 0, 6)
	if want := (demand{saturated: 2, byOthers: 2, before: 2}); d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
	for i, want := range [][]float64{{300, 300, 500, 520, 440, 600}, {500, 600, 700, 550, 500, 600}, {300, 300, 500, 520, 900, 900}} {
		for step, w := range want {
			if got, _ := pods[i].CPU.At(step); math.Abs(got-w) > 0.01*w {
				t.Errorf("%s, step %d: %v, want %v", pods[i].Object.Name, step, got, w)
			}
		}
	}
}

// TestDemandOfSimulation has two steps above the capacity, and one between.
func TestDemandOfSimulation(t *testing.T) {
	pods := []Pod{demandPod("a", "", "n1", 500, 980, 1300, 1200)}
	if d := estimateDemand([]Node{demandNode("n1", 1000, 1000)}, pods, 0, 4); d != (demand{}) {
		t.Errorf("%+v, want none", d)
	}
}

// TestDemandOfSnapshot has a snapshot of a node that its pods fill: web demands what the pod of its workload uses on the other node, and what
// batch demands is not known.
func TestDemandOfSnapshot(t *testing.T) {
	objects := &manifest.Objects{Nodes: []*v1.Node{demandNode("n1", 1000, 1000).Object, demandNode("n2", 1000, 1000).Object}}
	usage := &load.PodReading{}
	for _, p := range []Pod{demandPod("web-0", "web", "n1", 200), demandPod("batch-0", "", "n1", 790), demandPod("web-1", "web", "n2", 600)} {
		p.Object.Spec.NodeName = p.Node
		objects.Running = append(objects.Running, p.Object)
		cpu, _ := p.CPU.At(0)
		usage.Pods = append(usage.Pods, load.PodUsage{Namespace: "shop", Name: p.Object.Name, CPU: cpu})
	}
	got, d := demandAt(objects, usage)
	if want := (demand{saturated: 1, byOthers: 1, unknown: 1}); d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
	for i, want := range []float64{600, 790, 600} {
		if math.Abs(got.Pods[i].CPU-want) > 1 || usage.Pods[0].CPU > 201 {
			t.Errorf("%s: %v, want %v", got.Pods[i].Name, got.Pods[i].CPU, want)
		}
	}
}

// TestDemandIsUsageAtLeast verifies for any use of two nodes by pods of two workloads that demand is never less than usage, and that usage on
// nodes that are not saturated does not change.
func TestDemandIsUsageAtLeast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := []Node{demandNode("n1", 900, 1000), demandNode("n2", 1000, 1000)}
		const steps = 6
		var pods, before []Pod
		total := map[string][]float64{"n1": make([]float64, steps), "n2": make([]float64, steps)}
		for i := range rapid.IntRange(1, 6).Draw(rt, "pods") {
			node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "node")
			cpu := rapid.SliceOfN(rapid.Float64Range(0, 600), steps, steps).Draw(rt, "cpu")
			p := demandPod(string(rune('a'+i)), rapid.SampledFrom([]string{"", "w1", "w2"}).Draw(rt, "workload"), node, cpu...)
			for step, v := range cpu {
				total[node][step] += v
			}
			pods, before = append(pods, p), append(before, p)
		}
		estimateDemand(nodes, pods, 0, steps)
		for i := range pods {
			for step := range steps {
				got, _ := pods[i].CPU.At(step)
				was, _ := before[i].CPU.At(step)
				if got < was || got != was && total[pods[i].Node][step] < 0.94*900 {
					rt.Errorf("pod %d, step %d: %v, used %v of %v", i, step, got, was, total[pods[i].Node][step])
				}
			}
		}
	})
}
