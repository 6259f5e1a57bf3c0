package agent

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"
	"unique"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func list(cpu, memory string) v1.ResourceList {
	return clustertest.Amounts("cpu", cpu, "memory", memory)
}

func node(name string, change func(*v1.Node)) *v1.Node {
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     v1.NodeStatus{Capacity: list("4", "16Gi"), Allocatable: list("3", "12Gi")},
	}
	if change != nil {
		change(n)
	}
	return n
}

func pod(name, on string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{NodeName: on, Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: list("1", "4Gi"), Limits: list("2", "8Gi")},
		}}},
	}
}

// newFakeObserver returns an observer of objects.
func newFakeObserver(objects ...any) *observer {
	o := newObserver()
	for _, object := range objects {
		o.set(object)
	}
	return o
}

// memoryList returns an amount of memory.
func memoryList(amount int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(amount, resource.BinarySI)}
}

// set adds or replaces a node or a pod, as a reflector does.
func (o *observer) set(object any) {
	store := toolscache.ReflectorStore(&o.pods)
	if _, ok := object.(*v1.Node); ok {
		store = o.nodes
	}
	if err := store.Add(object); err != nil {
		panic(err)
	}
}

func TestAcceptsPods(t *testing.T) {
	condition := func(status v1.ConditionStatus) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Status.Conditions = []v1.NodeCondition{
				{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse},
				{Type: v1.NodeReady, Status: status},
			}
		}
	}
	taint := func(effect v1.TaintEffect) func(*v1.Node) {
		return func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "k", Effect: effect}} }
	}
	for name, tc := range map[string]struct {
		change func(*v1.Node)
		want   bool
	}{
		"no conditions":          {nil, true},
		"ready":                  {condition(v1.ConditionTrue), true},
		"not ready":              {condition(v1.ConditionFalse), false},
		"unknown":                {condition(v1.ConditionUnknown), false},
		"cordoned":               {func(n *v1.Node) { n.Spec.Unschedulable = true }, false},
		"being deleted":          {func(n *v1.Node) { n.DeletionTimestamp = &metav1.Time{} }, false},
		"NoSchedule taint":       {taint(v1.TaintEffectNoSchedule), false},
		"NoExecute taint":        {taint(v1.TaintEffectNoExecute), false},
		"PreferNoSchedule taint": {taint(v1.TaintEffectPreferNoSchedule), true},
	} {
		if got := summarize.NewNode(node("n", tc.change)).AcceptsPods(); got != tc.want {
			t.Errorf("%s: AcceptsPods() = %t, want %t", name, got, tc.want)
		}
	}
}

// TestPods checks the sums over one pod on node n.
func TestPods(t *testing.T) {
	placeholder, resized := pod("p", "n"), pod("p", "n")
	placeholder.Labels = map[string]string{slack.PlaceholderLabel: "general"}
	always := v1.ContainerRestartPolicyAlways
	resized.Spec.InitContainers = []v1.Container{{
		Name: "sidecar", RestartPolicy: &always,
		Resources: v1.ResourceRequirements{Requests: list("1", "1Gi")},
	}}
	resized.Spec.Overhead = list("500m", "1Gi")
	resized.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", Resources: &v1.ResourceRequirements{Requests: list("2", "4Gi")}}}
	for name, tc := range map[string]struct {
		pod         *v1.Pod
		cpu, memory resources.Sum
	}{
		"on another node": {pod: pod("p", "m")},
		"placeholder":     {pod: placeholder},
		"running": {
			pod("p", "n"),
			resources.Sum{Request: 1000, Limit: 2000, FlooredLimit: 2000},
			resources.Sum{Request: 4 << 30, Limit: 8 << 30, FlooredLimit: 8 << 30},
		},
		// requests: resized to 2 cores, sidecar 1, overhead 0.5; limits: the sidecar has none
		"with a sidecar, resized": {
			resized,
			resources.Sum{Request: 3500, PartialLimit: 2500, FlooredLimit: 3500, Unbounded: 1},
			resources.Sum{Request: 6 << 30, PartialLimit: 9 << 30, FlooredLimit: 9 << 30, Unbounded: 1},
		},
	} {
		converted, _ := convert(tc.pod)
		for _, object := range []any{tc.pod, converted} {
			sums := newFakeObserver(object).pods.pods.Sums(unique.Make("n"))
			if cpu, memory := sums.Get(resources.CPUResource), sums.Get(resources.MemoryResource); cpu != tc.cpu || memory != tc.memory {
				t.Errorf("%s: %+v, %+v, want %+v, %+v", name, cpu, memory, tc.cpu, tc.memory)
			}
		}
	}
}

// TestPodStore checks the sums over the pods of nodes after random events of a reflector against the sums over the remaining pods.
func TestPodStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, remaining := &newObserver().pods, map[string]*v1.Pod{}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			name := fmt.Sprint("p-", rapid.IntRange(0, 5).Draw(t, "pod"))
			p := pod(name, "")
			if before := remaining[name]; before != nil {
				p.Spec.NodeName = before.Spec.NodeName // does not change
			} else {
				p.Spec.NodeName = fmt.Sprint("n-", rapid.IntRange(0, 2).Draw(t, "node"))
			}
			p.Spec.Containers[0].Resources.Requests = list(fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "cpu")), "1Gi")
			var err error
			switch event := rapid.SampledFrom([]string{"set", "delete", "replace"}).Draw(t, "event"); {
			case event == "replace":
				remaining = map[string]*v1.Pod{name: p}
				converted, _ := convert(p)
				err = store.Replace([]any{converted}, "")
			case event == "delete":
				delete(remaining, name)
				err = store.Delete(p)
			case remaining[name] != nil:
				remaining[name] = p
				err = store.Update(p)
			default:
				remaining[name] = p
				err = store.Add(p)
			}
			must.Succeed(t, err)
			want := newObserver()
			for _, p := range remaining {
				want.set(p)
			}
			for node := range 3 {
				name := unique.Make(fmt.Sprint("n-", node))
				got, want := store.pods.Sums(name).Get(resources.CPUResource), want.pods.pods.Sums(name).Get(resources.CPUResource)
				if got != want {
					t.Fatalf("node %d: %+v, want %+v", node, got, want)
				}
			}
		}
	})
}

func TestResources(t *testing.T) {
	gpu := func(n *v1.Node) { n.Status.Allocatable["gpu"] = resource.MustParse("8") }
	cordoned := func(n *v1.Node) { n.Spec.Unschedulable = true }
	for want, nodes := range map[string][]any{
		"0 0 of 0 0, gpu 0":        nil,
		"6 24Gi of 8 32Gi, gpu 8":  {node("b", nil), node("a", gpu)},
		"3 12Gi of 8 32Gi, gpu 8":  {node("b", cordoned), node("a", gpu)},
		"0 0 of 4 16Gi, gpu 0":     {node("b", cordoned)},
		"6 24Gi of 12 48Gi, gpu 0": {node("c", cordoned), node("b", nil), node("a", nil)},
	} {
		total, allocatable := newFakeObserver(nodes...).resources()
		got := fmt.Sprintf("%s %s of %s %s, gpu %s", allocatable.Cpu(), allocatable.Memory(), total.Cpu(), total.Memory(),
			allocatable.Name("gpu", resource.DecimalSI))
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestSumsMatchRecount checks the sums against a recount with big integers, which is limited per node as int64.
func TestSumsMatchRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64))
		o := newFakeObserver()
		var allocatable, free, limits big.Float
		add := func(sum *big.Float, n *big.Int) { sum.Add(sum, new(big.Float).SetInt(n)) }
		for n := range rapid.IntRange(0, 4).Draw(t, "nodes") {
			memory, accepts := amount.Draw(t, "allocatable"), rapid.Bool().Draw(t, "accepts")
			o.set(node(fmt.Sprint(n), func(n *v1.Node) {
				n.Spec.Unschedulable = !accepts
				n.Status = v1.NodeStatus{Allocatable: memoryList(memory)}
			}))
			requests, limit, unbounded := new(big.Int), new(big.Int), false
			for p := range rapid.IntRange(0, 4).Draw(t, "pods") {
				a := resources.Amount{
					Request:   amount.Draw(t, "request"),
					Limit:     max(amount.Draw(t, "limit"), 1),
					Unbounded: rapid.Bool().Draw(t, "unbounded"),
				}
				p := pod(fmt.Sprint(n, "-", p), fmt.Sprint(n))
				p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: memoryList(a.Request), Limits: memoryList(a.Limit)}
				if a.Unbounded {
					p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "unbounded"})
				}
				o.set(p)
				requests.Add(requests, big.NewInt(a.Request))
				limit.Add(limit, big.NewInt(max(a.Limit, a.Request)))
				unbounded = unbounded || a.Unbounded
			}
			if !accepts {
				continue
			}
			if !limit.IsInt64() {
				limit.SetInt64(math.MaxInt64)
			}
			if unbounded && limit.Cmp(big.NewInt(memory)) < 0 {
				limit.SetInt64(memory)
			}
			add(&allocatable, big.NewInt(memory))
			add(&limits, limit)
			if left := new(big.Int).Sub(big.NewInt(memory), requests); left.Sign() > 0 {
				add(&free, left)
			}
		}
		got := o.state(nil, nil).Sums[resources.Memory]
		for name, sum := range map[string]struct {
			got  float64
			want *big.Float
		}{"allocatable": {got.Allocatable, &allocatable}, "free": {got.Free, &free}, "limits": {got.Limits, &limits}} {
			// Amounts have 53 bits as floats: the error of a difference is relative to the amount that it is of.
			if want, _ := sum.want.Float64(); math.Abs(sum.got-want) > 1e-15*(got.Allocatable+got.Limits) {
				t.Fatalf("%s: %v, want %v", name, sum.got, want)
			}
		}
	})
}

// loadFrom returns a snapshot of the load of nodes.
func loadFrom(nodes map[string]load.Node) *load.Snapshot {
	store := load.NewStore(time.Minute, nil)
	if err := store.Put(load.Reading{Time: time.Now(), Nodes: nodes}); err != nil {
		panic(err)
	}
	return store.Fresh()
}

func TestLoadRisk(t *testing.T) {
	o := newFakeObserver()
	for name, allocatable := range map[string]v1.ResourceList{"a": list("8", "8Gi"), "b": list("24", "8Gi"), "tainted": list("8", "8Gi")} {
		o.set(node(name, func(n *v1.Node) {
			n.Status = v1.NodeStatus{Allocatable: allocatable, Capacity: allocatable}
			if name == "tainted" {
				n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
			}
		}))
		p := pod(name, name)
		p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: list("2", "4Gi"), Limits: list("8", "8Gi")}
		o.set(p)
	}
	steady := func(cpu, memory float64) load.Node {
		return load.Node{CPU: load.Utilization{Mean: cpu}, Memory: load.Utilization{Mean: memory}, HasCPU: true, HasMemory: true}
	}
	for name, tc := range map[string]struct {
		loads map[string]load.Node
		risk  float64
		known bool
	}{
		"no load":        {nil, 0, false},
		"low everywhere": {map[string]load.Node{"a": steady(0.1, 0.1), "b": steady(0.05, 0.1)}, 0, true},
		// CPU: (8 x 1 + 24 x 0) / 32 = 0.25, memory low
		"a quarter of CPU exceeds requests": {map[string]load.Node{"a": steady(0.9, 0.1), "b": steady(0.05, 0.1)}, 0.25, true},
		// memory: (8 x 0 + 8 x 1) / 16
		"half of memory exceeds requests": {map[string]load.Node{"a": steady(0.9, 0.1), "b": steady(0.05, 0.9)}, 0.5, true},
		// CPU is known for 8 of 32, which is too little; memory for 8 of 16.
		"known for one node":     {map[string]load.Node{"a": steady(0.9, 0.1)}, 0, true},
		"only a tainted node":    {map[string]load.Node{"tainted": steady(0.9, 0.9)}, 0, false},
		"invalid loads":          {map[string]load.Node{"a": steady(math.NaN(), -1), "b": steady(-1, math.Inf(1))}, 0, false},
		"only CPU of b is known": {map[string]load.Node{"b": {CPU: load.Utilization{Mean: 0.9}, HasCPU: true}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := o.state(nil, loadFrom(tc.loads))
			if math.Abs(got.LoadRisk-tc.risk) > 1e-12 || got.LoadKnown != tc.known {
				t.Errorf("%v %v, want %v %v", got.LoadRisk, got.LoadKnown, tc.risk, tc.known)
			}
		})
	}
}

// BenchmarkReport measures what a report computes, in a cluster of 5,000 nodes with 30 pods each and known load.
func BenchmarkReport(b *testing.B) {
	o, loads := newFakeObserver(), map[string]load.Node{}
	for i := range 5000 {
		name := fmt.Sprint("node-", i)
		o.set(node(name, nil))
		loads[name] = load.Node{
			CPU: load.Utilization{Mean: 0.4, StdDev: 0.1}, Memory: load.Utilization{Mean: 0.5, StdDev: 0.1}, HasCPU: true, HasMemory: true,
		}
		for p := range 30 {
			o.set(pod(fmt.Sprint("pod-", i, "-", p), name))
		}
	}
	fresh := loadFrom(loads)
	b.ReportAllocs()
	for b.Loop() {
		scoresOf(o.state(nil, fresh))
		o.resources()
	}
}
