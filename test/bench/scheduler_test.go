// Package bench holds the benchmarks of whole programs. Each prints figures of
// its own, which the README quotes.
package bench

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate"
	"github.com/plimsoll-k8s/plimsoll/load"
)

func newNode(i int) *v1.Node {
	amounts := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"), v1.ResourcePods: resource.MustParse("250"),
	}
	name := fmt.Sprintf("node-%04d", i)
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// newPod returns pods of a few sizes, so that nodes differ.
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

// BenchmarkScheduler schedules pods on 5,000 nodes with 30 pods each, with the
// default profile and with all three plugins beside it, in turns: the figures
// are pods per second with each, and their ratio. Batching of equal pods is not
// at work: every pod is filtered and scored.
func BenchmarkScheduler(b *testing.B) {
	const nodes, podsPerNode, rounds, podsPerRound = 5000, 30, 20, 200
	cluster := simulate.Cluster{}
	reading := &load.Reading{Time: time.Now(), Nodes: map[string]load.Node{}}
	for i := range nodes {
		node := newNode(i)
		cluster.Nodes = append(cluster.Nodes, node)
		reading.Nodes[node.Name] = load.Node{
			CPU: load.Utilisation{Mean: 0.2 + 0.1*float64(i%6), StdDev: 0.05}, HasCPU: true,
			Memory: load.Utilisation{Mean: 0.3, StdDev: 0.02 + 0.01*float64(i%5)}, HasMemory: true,
		}
		for j := range podsPerNode {
			cluster.Running = append(cluster.Running, newPod(i*podsPerNode+j, node.Name))
		}
	}
	engine := func(cfg *internalconfig.KubeSchedulerConfiguration, err error) *simulate.Engine {
		if err != nil {
			b.Fatal(err)
		}
		e, err := simulate.New(b.Context(), cluster, simulate.Options{Config: cfg, Load: reading, Now: reading.Time})
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	byDefault, ours := engine(simulate.PlainConfig()), engine(simulate.DefaultConfig())
	took := map[*simulate.Engine]time.Duration{}
	next := nodes * podsPerNode
	for b.Loop() {
		for round := range rounds + 1 {
			order := []*simulate.Engine{byDefault, ours}
			if round%2 == 1 {
				order[0], order[1] = order[1], order[0]
			}
			for _, e := range order {
				began := time.Now()
				for i := range podsPerRound {
					if _, err := e.Schedule(b.Context(), newPod(next+i, ""), ""); err != nil {
						b.Fatal(err)
					}
				}
				if round > 0 { // the first is the warm-up
					took[e] += time.Since(began)
				}
			}
			next += podsPerRound
		}
	}
	rate := func(e *simulate.Engine) float64 {
		return float64(b.N*rounds*podsPerRound) / took[e].Seconds()
	}
	b.ReportMetric(rate(byDefault), "pods/s-default")
	b.ReportMetric(rate(ours), "pods/s-plimsoll")
	b.ReportMetric(rate(ours)/rate(byDefault), "ratio")
	b.ReportMetric(0, "ns/op")
}
