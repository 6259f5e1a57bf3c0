package placement

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

// amounts returns CPU in millicores and memory in MiB.
func amounts(cpu, memory int64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
	}
}

// generatedCluster returns nodes in zones and pools, some tainted or cordoned, with running pods.
func generatedCluster(rng *rand.Rand, count int) engine.Cluster {
	var out engine.Cluster
	for i := range count {
		name, pool := fmt.Sprintf("node-%d", i), rng.IntN(3)
		cores := int64(4 << pool)
		allocatable := amounts(cores*1000, cores*4096)
		allocatable[v1.ResourcePods] = resource.MustParse(fmt.Sprint(5 + rng.IntN(20)))
		if pool == 2 {
			allocatable["example.com/gpu"] = resource.MustParse("4")
		}
		n := &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				v1.LabelHostname:     name,
				v1.LabelTopologyZone: fmt.Sprintf("zone-%d", rng.IntN(3)),
				"pool":               fmt.Sprint(pool),
				"generation":         fmt.Sprint(rng.IntN(5)),
			}},
			Status: v1.NodeStatus{Allocatable: allocatable, Capacity: allocatable},
		}
		if rng.IntN(6) == 0 {
			n.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "batch", Effect: v1.TaintEffectNoSchedule}}
		}
		if rng.IntN(12) == 0 {
			n.Spec.Unschedulable = true
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
		}
		manifest.SetNodeDefaults(n)
		out.Nodes = append(out.Nodes, n)
		for j := range rng.IntN(5) {
			p := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "other",
					Name:      fmt.Sprintf("p-%d-%d", i, j),
					UID:       types.UID(fmt.Sprintf("%d-%d", i, j)),
				},
				Spec: v1.PodSpec{NodeName: name, Containers: []v1.Container{
					{
						Name:      "c",
						Image:     "c",
						Resources: v1.ResourceRequirements{Requests: amounts(rng.Int64N(cores*200), rng.Int64N(cores*800))},
					},
				}},
			}
			if rng.IntN(8) == 0 {
				p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
			}
			manifest.SetPodDefaults(p)
			out.Running = append(out.Running, p)
		}
	}
	return out
}

// constraints are changes of a template, of which a test draws some.
var constraints = map[string]func(*rand.Rand, *v1.PodTemplateSpec){
	"selector": func(rng *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.NodeSelector = map[string]string{"pool": fmt.Sprint(rng.IntN(3))}
	},
	"affinity": func(rng *rand.Rand, p *v1.PodTemplateSpec) {
		operators := []v1.NodeSelectorRequirement{
			{Key: "generation", Operator: v1.NodeSelectorOpGt, Values: []string{fmt.Sprint(rng.IntN(4))}},
			{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpNotIn, Values: []string{"zone-0"}},
			{Key: "missing", Operator: v1.NodeSelectorOpDoesNotExist},
		}
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: operators[rng.IntN(3):]}},
		}}}
	},
	"toleration": func(_ *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpEqual, Value: "batch"}}
	},
	"hosts": func(rng *rand.Rand, p *v1.PodTemplateSpec) { spread(p, v1.LabelHostname, 1+rng.Int32N(3)) },
	"zones": func(rng *rand.Rand, p *v1.PodTemplateSpec) { spread(p, v1.LabelTopologyZone, 1+rng.Int32N(5)) },
	"port": func(_ *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	},
	"gpu": func(_ *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	},
	"alone": func(_ *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.Affinity = &v1.Affinity{
			PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
			}},
		}
	},
}

func spread(p *v1.PodTemplateSpec, key string, skew int32) {
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
		MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
	})
}

// loose are the constraints for which the numbers may be much too low: which nodes have the port in use is unknown, and two spread
// constraints together are bounded by the worst order of pods.
func loose(drawn []string) bool {
	return slices.Contains(drawn, "port") || slices.Contains(drawn, "hosts") && slices.Contains(drawn, "zones")
}

// addRunning adds running pods of a workload to random nodes, wherever its constraints permit them or not.
func addRunning(rng *rand.Rand, cluster *engine.Cluster, template *v1.PodTemplateSpec, count int) {
	for i := range count {
		p := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		p.Namespace, p.Name, p.UID = "shop", fmt.Sprintf("running-%d", i), types.UID(fmt.Sprintf("running-%d", i))
		p.Spec.NodeName = cluster.Nodes[rng.IntN(len(cluster.Nodes))].Name
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: new(true)}}
		manifest.SetPodDefaults(p)
		cluster.Running = append(cluster.Running, p)
	}
}

// TestFitOracle compares fits with the real scheduler, which schedules replicas one by one until one fits on no node: a fit is never
// higher and, without running replicas of the workload and with the exceptions of loose, at most 10 % lower.
func TestFitOracle(t *testing.T) {
	config, err := engine.ReadConfig("default")
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := config.Config()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		cluster := generatedCluster(rng, rapid.IntRange(1, 15).Draw(rt, "nodes"))
		template := &v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: v1.PodSpec{Containers: []v1.Container{{
				Name: "c", Image: "c", Resources: v1.ResourceRequirements{Requests: amounts(500+rng.Int64N(4000), 500+rng.Int64N(8000))},
			}}},
		}
		drawn := rapid.SliceOfNDistinct(
			rapid.SampledFrom([]string{"selector", "affinity", "toleration", "hosts", "zones", "port", "gpu", "alone"}),
			0,
			3,
			rapid.ID,
		).Draw(
			rt,
			"constraints",
		)
		for _, name := range drawn {
			constraints[name](rng, template)
		}
		running := rapid.IntRange(0, 8).Draw(rt, "running")
		addRunning(rng, &cluster, template, running)
		converted, err := fit.NewTemplate(types.NamespacedName{Namespace: "shop", Name: "web"}, template)
		if err != nil {
			rt.Fatal(err)
		}
		workload := &fit.Workload{Parts: []fit.Part{{Template: converted, Pods: 1}}, Replicas: 1}
		clusters, _, err := oneCluster(&manifest.Objects{Nodes: cluster.Nodes, Running: cluster.Running}, workload, time.Now())
		if err != nil {
			rt.Fatal(err)
		}
		count, limit := clusters.State().FitOf(workload, "", time.Now())
		got := count.Now
		want := scheduled(t.Context(), rt, cluster, engine.Options{Config: scheduler}, template)
		switch {
		case got > want:
			rt.Fatalf("%v, %d running: got %d (%s), the scheduler schedules %d", drawn, running, got, limit, want)
		case (running == 0 || !workload.ExcludesItself()) && !loose(drawn) && got*10 < want*9:
			rt.Fatalf("%v: got only %d, the scheduler schedules %d", drawn, got, want)
		}
	})
}

// scheduled returns how many replicas the scheduler schedules.
func scheduled(ctx context.Context, t *rapid.T, cluster engine.Cluster, options engine.Options, template *v1.PodTemplateSpec) (n int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, err := engine.New(ctx, cluster, options)
	if err != nil {
		t.Fatal(err)
	}
	for ; ; n++ {
		p := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		p.Namespace, p.Name, p.UID = "shop", fmt.Sprintf("web-%d", n), types.UID(fmt.Sprintf("web-%d", n))
		manifest.SetPodDefaults(p)
		_, err := e.Schedule(ctx, p, "")
		switch {
		case errors.Is(err, engine.ErrUnschedulable):
			return n
		case err != nil:
			t.Fatal(err)
		}
	}
}
