// Package bench has benchmarks of complete programs, whose results are in docs/benchmarks.md.
package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

func newNode(i int) *v1.Node {
	amounts := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse(
			"64",
		),
		v1.ResourceMemory: resource.MustParse("256Gi"),
		v1.ResourcePods:   resource.MustParse("250"),
	}
	name := fmt.Sprintf("node-%04d", i)
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// newPod returns the i-th pod. Pods have several sizes, so that nodes differ.
func newPod(i int, node string) *v1.Pod {
	name := fmt.Sprintf("pod-%06d", i)
	list := func(cpu, memory int) v1.ResourceList {
		return v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(int64(cpu), resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(int64(memory)<<20, resource.BinarySI),
		}
	}
	request := 250 + 250*(i%5)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{
			Name: "c", Image: "app",
			Resources: v1.ResourceRequirements{Requests: list(request, 1024), Limits: list(request*(1+i%4), 1024*(1+i%3))},
		}}},
	}
}

// nothing is a Score plugin without function, to measure the cost of a plugin in the framework itself.
type nothing struct{ name string }

func (n nothing) Name() string { return n.name }

func (n nothing) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}

func (n nothing) ScoreExtensions() fwk.ScoreExtensions { return nil }

func (n nothing) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) { return nil, nil }

// configurations are the plugins of the measured profiles.
var configurations = map[string]string{
	"default":  `{}`,
	"plimsoll": `{multiPoint: {enabled: [{name: NodeResourcesAllocatable}, {name: NodeResourcesLimits}, {name: LowRiskOverCommitment}]}}`,
	"nothing":  `{multiPoint: {enabled: [{name: Nothing1}, {name: Nothing2}, {name: Nothing3}]}}`,
	"in-place": `{score: {disabled: [{name: NodeResourcesFit}, {name: NodeResourcesBalancedAllocation}], enabled: [{name: NodeResourcesLimits}, {name: LowRiskOverCommitment}]}}`,
}

// newEngine returns a scheduler of a cluster of 5,000 nodes with 30 pods each and load data for all nodes.
func newEngine(b *testing.B, plugins string) *engine.Engine {
	b.Helper()
	const nodes, podsPerNode = 5000, 30
	cluster := engine.Cluster{}
	reading := &load.Reading{Time: time.Now(), Nodes: map[string]load.Node{}}
	for i := range nodes {
		node := newNode(i)
		cluster.Nodes = append(cluster.Nodes, node)
		reading.Nodes[node.Name] = load.Node{
			CPU: load.Utilization{Mean: 0.2 + 0.1*float64(i%6), StdDev: 0.05}, HasCPU: true,
			Memory: load.Utilization{Mean: 0.3, StdDev: 0.02 + 0.01*float64(i%5)}, HasMemory: true,
		}
		for j := range podsPerNode {
			cluster.Running = append(cluster.Running, newPod(i*podsPerNode+j, node.Name))
		}
	}
	file := filepath.Join(b.TempDir(), "scheduler.yaml")
	content := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: " + plugins + "}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		b.Fatal(err)
	}
	further := frameworkruntime.Registry{}
	for _, name := range []string{"Nothing1", "Nothing2", "Nothing3"} {
		further[name] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return nothing{name}, nil }
	}
	e, err := engine.New(b.Context(), cluster, engine.Options{Config: cfg, Load: reading, Now: reading.Time, ExtraPlugins: further})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkScheduler schedules pods on 5,000 nodes with 30 pods each, alternating between four profiles: the
// default; the default with all three plugins; the default with three plugins without function; and the
// default with two of the plugins instead of the two that spread by requests. It reports pods per second with
// the default profile, and the ratios of the others to it. Equal pods are not batched: each pod is filtered and
// scored.
func BenchmarkScheduler(b *testing.B) {
	const rounds, podsPerRound = 40, 100
	engines, took := map[string]*engine.Engine{}, map[string]time.Duration{}
	names := slices.Sorted(maps.Keys(configurations))
	for _, name := range names {
		engines[name] = newEngine(b, configurations[name])
	}
	for b.Loop() {
		for round := range rounds + 2 {
			for i := range names {
				name := names[(i+round)%len(names)]
				began := time.Now()
				for i := range podsPerRound {
					if _, err := engines[name].Schedule(b.Context(), newPod(1_000_000+round*podsPerRound+i, ""), ""); err != nil {
						b.Fatal(err)
					}
				}
				if round >= 2 { // warm-up
					took[name] += time.Since(began)
				}
			}
		}
	}
	b.ReportMetric(rounds*podsPerRound/took["default"].Seconds(), "pods/s-default")
	for _, name := range []string{"plimsoll", "nothing", "in-place"} {
		b.ReportMetric(took["default"].Seconds()/took[name].Seconds(), "ratio-"+name)
	}
	b.ReportMetric(0, "ns/op")
}
