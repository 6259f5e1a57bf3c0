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

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// amounts returns CPU in millicores and memory in MiB.
var amounts = clustertest.List

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
	"hosts": func(rng *rand.Rand, p *v1.PodTemplateSpec) { spread(rng, p, v1.LabelHostname, 1+rng.Int32N(3)) },
	"zones": func(rng *rand.Rand, p *v1.PodTemplateSpec) { spread(rng, p, v1.LabelTopologyZone, 1+rng.Int32N(5)) },
	"port": func(_ *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	},
	"gpu": func(_ *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	},
	"alone": func(rng *rand.Rand, p *v1.PodTemplateSpec) {
		p.Spec.Affinity = &v1.Affinity{
			PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{TopologyKey: v1.LabelHostname, LabelSelector: selectorOf(rng, p)},
			}},
		}
	},
}

// selectorOf returns a selector of the pods of a template or, in one of three cases, of all pods of its release.
func selectorOf(rng *rand.Rand, p *v1.PodTemplateSpec) *metav1.LabelSelector {
	label := []string{"app", "app", "release"}[rng.IntN(3)]
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: p.Labels[label]}}
}

func spread(rng *rand.Rand, p *v1.PodTemplateSpec, key string, skew int32) {
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
		MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selectorOf(rng, p),
	})
}

// addRunning adds running pods to random nodes, wherever their constraints permit them or not: of the workload, some of them of an older
// revision without host ports, and pods of another component of its release; some of these pods keep the workload from their nodes.
func addRunning(rng *rand.Rand, cluster *engine.Cluster, template *v1.PodTemplateSpec, count, others int) {
	for i := range count + others {
		p := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		p.Namespace, p.Name, p.UID = "shop", fmt.Sprintf("running-%d", i), types.UID(fmt.Sprintf("running-%d", i))
		p.Spec.NodeName = cluster.Nodes[rng.IntN(len(cluster.Nodes))].Name
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: new(true)}}
		if rng.IntN(3) == 0 {
			p.Spec.Containers[0].Ports = nil
		}
		if i >= count {
			p.Labels["app"], p.OwnerReferences[0].Name = "other", "other"
			p.Spec = v1.PodSpec{NodeName: p.Spec.NodeName, Containers: []v1.Container{{Name: "c", Image: "c"}}}
			if rng.IntN(4) == 0 {
				p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
						TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
					}},
				}}
			}
		}
		manifest.SetPodDefaults(p)
		cluster.Running = append(cluster.Running, p)
	}
}

// TestFitOracle compares fits in 300 random clusters with the filters of kube-scheduler, which place replicas one by one until one fits on
// no node: on the nodes that its scores select, and on random ones. A fit is never higher and, in 95 % of the clusters, at most 10 % lower.
func TestFitOracle(t *testing.T) {
	config, err := engine.ReadConfig("default")
	must.Succeed(t, err)
	scheduler, err := config.Config()
	must.Succeed(t, err)
	const clusters = 300
	low := 0
	for seed := range uint64(clusters) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cluster := generatedCluster(rng, 1+rng.IntN(15))
		template := &v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "release": "edge"}},
			Spec: v1.PodSpec{Containers: []v1.Container{{
				Name: "c", Image: "c", Resources: v1.ResourceRequirements{Requests: amounts(500+rng.Int64N(4000), 500+rng.Int64N(8000))},
			}}},
		}
		drawn := []string{"affinity", "alone", "gpu", "hosts", "port", "selector", "toleration", "zones"}
		rng.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
		drawn = drawn[:rng.IntN(4)]
		slices.Sort(drawn) // "affinity" replaces what "alone" sets
		for _, name := range drawn {
			constraints[name](rng, template)
		}
		addRunning(rng, &cluster, template, rng.IntN(9), rng.IntN(4))
		converted, err := fit.NewTemplate(types.NamespacedName{Namespace: "shop", Name: "web"}, template)
		must.Succeed(t, err)
		workload := &fit.Workload{Parts: []fit.Part{{Template: converted, Pods: 1}}, Replicas: 1}
		objects := &manifest.Objects{Nodes: cluster.Nodes, Running: cluster.Running}
		hub, _, err := (&fitOptions{}).oneCluster(t.Context(), objects, workload, time.Now())
		must.Succeed(t, err)
		count, limit := hub.State().FitOf(workload, "", time.Now())
		best := scheduled(t, cluster, engine.Options{Config: scheduler}, template, nil)
		want := min(best, scheduled(t, cluster, engine.Options{Config: scheduler}, template, rng))
		if count.Now > want {
			t.Errorf("seed %d, %v: got %d (%s), the scheduler places %d", seed, drawn, count.Now, limit, want)
		}
		if count.Now*10 < best*9 {
			t.Logf("seed %d, %v: got %d (%s), the scheduler places %d", seed, drawn, count.Now, limit, best)
			low++
		}
	}
	if low*20 > clusters {
		t.Errorf("%d of %d fits are more than 10 %% too low", low, clusters)
	}
}

// TestFitOfSeveralTemplates compares fits of workloads of two or three templates in 300 random clusters with what kube-scheduler places:
// whole replicas one after the other, and all of their pods in a random order. A fit is never higher, and in nine of ten clusters at most
// 10 % lower.
func TestFitOfSeveralTemplates(t *testing.T) {
	config, err := engine.ReadConfig("default")
	must.Succeed(t, err)
	scheduler, err := config.Config()
	must.Succeed(t, err)
	const clusters = 300
	low := 0
	for seed := range uint64(clusters) {
		rng := rand.New(rand.NewPCG(seed, 2))
		cluster := generatedCluster(rng, 1+rng.IntN(15))
		workload := &fit.Workload{Replicas: 1}
		var one []*v1.Pod // of one replica
		for i := range 2 + rng.IntN(2) {
			name := fmt.Sprint("part-", i)
			template := &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name, "release": name}}}
			template.Spec.Containers = []v1.Container{{Name: "c", Image: "c"}}
			template.Spec.Containers[0].Resources.Requests = amounts(100+rng.Int64N(4000), 100+rng.Int64N(8000))
			if constraint := []string{"", "", "hosts", "toleration"}[rng.IntN(4)]; constraint != "" {
				constraints[constraint](rng, template)
			}
			converted, err := fit.NewTemplate(types.NamespacedName{Namespace: "shop", Name: name}, template)
			must.Succeed(t, err)
			pods := 1 + rng.Int64N(5)
			workload.Parts = append(workload.Parts, fit.Part{Template: converted, Pods: pods})
			for range pods {
				p := &v1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
				p.Namespace = "shop"
				manifest.SetPodDefaults(p)
				one = append(one, p)
			}
		}
		place := func(replicas int64, shuffled bool) (placed int64) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e, err := engine.New(ctx, cluster, engine.Options{Config: scheduler})
			must.Succeed(t, err)
			pods := slices.Repeat(one, int(replicas))
			if shuffled {
				rng.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
			}
			for i, p := range pods {
				p = p.DeepCopy()
				p.Name = fmt.Sprint(p.Labels["app"], "-", i)
				p.UID = types.UID(p.Name)
				scores, err := e.Score(ctx, p, "")
				must.Succeed(t, err)
				best := scores.Feasible()
				if len(best) == 0 {
					return int64(i / len(one))
				}
				equal := 1 // kube-scheduler selects one of equal nodes at random
				for equal < len(best) && best[equal].Total == best[0].Total {
					equal++
				}
				must.Succeed(t, e.Place(ctx, p, best[rng.IntN(equal)].Name))
			}
			return replicas
		}
		objects := &manifest.Objects{Nodes: cluster.Nodes, Running: cluster.Running}
		count := fitOfOne(t, objects, workload)
		inOrder := place(1000, false)
		want := inOrder
		for want > 0 && place(want, true) < want {
			want--
		}
		if count > want {
			t.Errorf("seed %d: got %d, the scheduler places %d, and shuffled %d", seed, count, inOrder, want)
		}
		if count*10 < want*9 {
			t.Logf("seed %d: got %d, the scheduler places %d", seed, count, want)
			low++
		}
	}
	if t.Logf("%d of %d fits are more than 10 %% too low", low, clusters); low*10 > clusters {
		t.Error("more than one of ten")
	}
}

// scheduled returns how many replicas the scheduler places, on random nodes if there is a generator.
func scheduled(t *testing.T, cluster engine.Cluster, options engine.Options, template *v1.PodTemplateSpec, rng *rand.Rand) (n int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, err := engine.New(ctx, cluster, options)
	must.Succeed(t, err)
	for ; ; n++ {
		p := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		p.Namespace, p.Name, p.UID = "shop", fmt.Sprintf("web-%d", n), types.UID(fmt.Sprintf("web-%d", n))
		manifest.SetPodDefaults(p)
		if rng == nil {
			_, err = e.Schedule(ctx, p, "")
		} else {
			err = placeAnywhere(ctx, e, p, rng)
		}
		switch {
		case errors.Is(err, engine.ErrUnschedulable):
			return n
		case err != nil:
			t.Fatal(err)
		}
	}
}

// placeAnywhere places a pod on a random one of the nodes that it fits.
func placeAnywhere(ctx context.Context, e *engine.Engine, p *v1.Pod, rng *rand.Rand) error {
	scores, err := e.Score(ctx, p, "")
	feasible := scores.Feasible()
	switch {
	case err != nil:
		return err
	case len(feasible) == 0:
		return engine.ErrUnschedulable
	}
	return e.Place(ctx, p, feasible[rng.IntN(len(feasible))].Name)
}

// fitOfOne returns how many replicas of a workload fit the nodes of a cluster as they are.
func fitOfOne(t *testing.T, objects *manifest.Objects, workload *fit.Workload) int64 {
	t.Helper()
	o := &fitOptions{}
	hub, _, err := o.oneCluster(t.Context(), objects, workload, time.Now())
	must.Succeed(t, err)
	count, _ := o.fitOf(hub.State(), workload, "", time.Now())
	return count.Now
}
