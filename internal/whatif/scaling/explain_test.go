package scaling

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// testNode returns a node of 4 CPUs in zone a.
func testNode(name string, change ...func(*v1.Node)) *v1.Node {
	node := generate.NewNode(name, resources.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 110}).Object
	node.Labels[v1.LabelTopologyZone] = "a"
	for _, f := range change {
		f(node)
	}
	return node
}

func ofKarpenter(n *v1.Node) { n.Labels[karpenterLabel] = "general" }

func annotated[O metav1.Object](key, value string) func(O) {
	return func(o O) { o.SetAnnotations(map[string]string{key: value}) }
}

// testPod returns a pod of a ReplicaSet, with the label app set to the first word of its name.
func testPod(name, node string, milliCPU int64, change ...func(*v1.Pod)) *v1.Pod {
	app, _, _ := strings.Cut(name, "-")
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: types.UID(name), Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, Controller: new(true)}},
		},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)},
		}}}},
	}
	for _, f := range change {
		f(pod)
	}
	manifest.SetPodDefaults(pod)
	return pod
}

func ofKind(kind string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.OwnerReferences[0].Kind = kind }
}

// testBudget returns a budget for pods of an app.
func testBudget(name, app string, change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	change(b)
	return b
}

func minAvailable(text string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = new(intstr.Parse(text)) }
}

func maxUnavailable(text string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = new(intstr.Parse(text)) }
}

// alwaysAllow allows no disruption, but of pods that are not ready.
func alwaysAllow(b *policyv1.PodDisruptionBudget) {
	maxUnavailable("0")(b)
	b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
}

func isNotReady(p *v1.Pod) {
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse}}
}

func toleratesEverything(p *v1.Pod) {
	p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
}

func startedBefore(age time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Status.StartTime = new(metav1.NewTime(time.Now().Add(-age))) }
}

// zonedVolume returns claim data of namespace shop and its volume, which is in a zone.
func zonedVolume(zone string) []apiruntime.Object {
	inZone := v1.NodeSelectorTerm{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{zone}}},
	}
	bound := map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	return []apiruntime.Object{
		&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{inZone}}},
		}},
		&v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "shop", Annotations: bound},
			Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		},
	}
}

// newTestEngine returns a scheduler with the default profile of kube-scheduler.
func newTestEngine(ctx context.Context, t must.TB, objects *manifest.Objects) *engine.Engine {
	t.Helper()
	profile, err := engine.ReadConfig("default")
	must.Succeed(t, err)
	cfg, err := profile.Config()
	must.Succeed(t, err)
	e, err := engine.State{Objects: objects}.Engine(ctx, engine.Scheduler{Config: cfg, Source: "default"})
	must.Succeed(t, err)
	return e
}

// describe returns the result of a node and what keeps it.
func describe(n *ExplainedNode) string {
	lines := []string{string(n.Result)}
	for _, c := range n.Constraints {
		lines = append(lines, fmt.Sprintf("%s %s: %s", c.Kind, c.Object, c.Text))
	}
	return strings.Join(lines, "\n")
}

// TestExplainNodes checks what keeps node n1, beside n2 with 4 CPUs.
func TestExplainNodes(t *testing.T) {
	web := func(change ...func(*v1.Pod)) []*v1.Pod { return []*v1.Pod{testPod("web-1", "n1", 1000, change...)} }
	volume := func(source v1.VolumeSource) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: source}} }
	}
	emptyDir := volume(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	three := []*v1.Pod{testPod("web-1", "n1", 1000), testPod("web-2", "n2", 100), testPod("web-3", "n2", 100)}
	cordoned := func(n *v1.Node) { n.Spec.Unschedulable = true }
	for name, tc := range map[string]struct {
		node, other func(*v1.Node)
		pods        []*v1.Pod
		budgets     []*policyv1.PodDisruptionBudget
		others      []apiruntime.Object
		want        string
		warning     string
	}{
		// 1 of 4 CPUs is 25 %, below 50 %; n2 has 4 CPUs free.
		"fits elsewhere": {pods: web(), want: "can go"},
		// 2 of 4 CPUs.
		"utilization": {
			pods: []*v1.Pod{testPod("web-1", "n1", 2000)},
			want: "held\nutilization n1: pods request 50 % of the node: must be below 50 %",
		},
		"Karpenter has no threshold": {node: ofKarpenter, pods: []*v1.Pod{testPod("web-1", "n1", 2000)}, want: "can go"},
		// 3 expected, less 0.
		"no disruption": {
			pods: three, budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", maxUnavailable("0"))},
			want: "held\nbudget shop/b: allows no disruption: 3 healthy, 3 required",
		},
		// 70 % of 3 is 2.1, rounded up 3.
		"percentage that allows none": {
			pods: three, budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", minAvailable("70%"))},
			want: "held\nbudget shop/b: allows no disruption: 3 healthy, 3 required",
		},
		// 50 % of 3 is 1.5, rounded up 2; 3 - 2 = 1.
		"percentage that allows one": {
			pods: three, budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", minAvailable("50%"))}, want: "can go",
		},
		// 10 % of 3 is 0.3, rounded up 1.
		"percentage unavailable": {
			pods: three, budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", maxUnavailable("10%"))}, want: "can go",
		},
		"neither bound": { // 0 expected, so that none may be disrupted
			pods: three, budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", func(*policyv1.PodDisruptionBudget) {})},
			want: "held\nbudget shop/b: allows no disruption: 3 healthy, 3 required",
		},
		"invalid percentage": {
			pods: three, budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", minAvailable("many"))},
			want: "held\nbudget shop/b: allows no disruption: 3 healthy, 3 required",
		},
		"status of the cluster": {
			pods: three, budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", func(b *policyv1.PodDisruptionBudget) {
				b.Status = policyv1.PodDisruptionBudgetStatus{
					ObservedGeneration: 1, CurrentHealthy: 2, DesiredHealthy: 2,
					Conditions: []metav1.Condition{{
						Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
						LastTransitionTime: metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
					}},
				}
			})},
			want: "held\nbudget shop/b: allows no disruption: 2 healthy, 2 required, since 2026-11-21T12:00:00Z",
		},
		"budget without pods": {
			pods: web(), budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "wbe", maxUnavailable("0"))},
			want: "can go", warning: "budget shop/b selects no pod: check spec.selector",
		},
		"invalid selector": {
			pods: web(), budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", func(b *policyv1.PodDisruptionBudget) {
				b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}
			})}, want: "can go", warning: "budget shop/b selects no pod: check spec.selector",
		},
		"two budgets": {
			pods: three, budgets: []*policyv1.PodDisruptionBudget{
				testBudget("b", "web", maxUnavailable("1")), testBudget("c", "web", maxUnavailable("1")),
			},
			want: "held\nbudget shop/c: one of 2 budgets of the pod: the API server refuses to evict it",
		},
		"not safe to evict": {
			pods: web(annotated[*v1.Pod](safeToEvict, "false")),
			want: "held\nannotation shop/web-1: cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\"",
		},
		"do not disrupt": {
			node: ofKarpenter, pods: web(annotated[*v1.Pod](doNotDisrupt, "true")),
			want: "held\nannotation shop/web-1: karpenter.sh/do-not-disrupt: \"true\"",
		},
		"annotation of Karpenter":          {pods: web(annotated[*v1.Pod](doNotDisrupt, "true")), want: "can go"},
		"annotation of Cluster Autoscaler": {node: ofKarpenter, pods: web(annotated[*v1.Pod](safeToEvict, "false")), want: "can go"},
		"no controller": {
			pods: web(func(p *v1.Pod) { p.OwnerReferences = nil }),
			want: "held\nno controller shop/web-1: no controller would create it elsewhere",
		},
		"another controller":           {pods: web(ofKind("Rollout")), want: "held\nno controller shop/web-1: its controller is a Rollout"},
		"no controller with Karpenter": {node: ofKarpenter, pods: web(func(p *v1.Pod) { p.OwnerReferences = nil }), want: "can go"},
		"safe to evict":                {pods: web(ofKind("Rollout"), emptyDir, annotated[*v1.Pod](safeToEvict, "true")), want: "can go"},
		"local storage":                {pods: web(emptyDir), want: "held\nlocal storage shop/web-1: volume data is on the node"},
		"local storage in memory": {
			pods: web(volume(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})), want: "can go",
		},
		"local storage that may be lost": {pods: web(emptyDir, annotated[*v1.Pod](safeToEvictLocal, "tmp,data")), want: "can go"},
		"system pod": {
			pods: web(func(p *v1.Pod) { p.Namespace = metav1.NamespaceSystem }),
			want: "held\nsystem pod kube-system/web-1: in kube-system without a budget",
		},
		"annotation of the node": {
			node: annotated[*v1.Node](scaleDownDisabled, "true"), pods: web(),
			want: "held\nannotation n1: cluster-autoscaler.kubernetes.io/scale-down-disabled: \"true\"",
		},
		"control plane": {
			node: func(n *v1.Node) {
				n.Spec.Taints = []v1.Taint{{Key: resources.ControlPlaneLabel, Effect: v1.TaintEffectNoSchedule}}
			},
			pods: web(),
			want: "held\nnode n1: is a node of the control plane",
		},
		// n2 has 4 - 2.5 = 1.5 CPUs.
		"no room": {
			pods: []*v1.Pod{testPod("web-1", "n1", 1600), testPod("db-1", "n2", 2500)},
			want: "held\nno room shop/web-1: needs 1.6 CPU, nearest is n2 with 1.5 CPU; 1 node: Insufficient cpu",
		},
		// n2 has 4 - 2.5 = 1.5 CPUs, and gets the larger of the two.
		"room for one of two": {
			pods: []*v1.Pod{testPod("web-1", "n1", 800), testPod("web-2", "n1", 900), testPod("db-1", "n2", 2500)},
			want: "held\nno room shop/web-1: nodes with room, such as n2, refuse it or get other pods; " +
				"1 node: no room beside other pods of n1",
		},
		"another zone": {
			other: func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = "b" },
			pods:  web(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "a"} }),
			want: "held\nno room shop/web-1: nodes with room, such as n2, refuse it or get other pods; " +
				"1 node: node(s) didn't match Pod's node affinity/selector",
		},
		"not on the other node": {
			pods: web(func(p *v1.Pod) {
				p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
						MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: "NotIn", Values: []string{"n2"}}},
					}}},
				}}
			}),
			want: "held\nno room shop/web-1: nodes with room, such as n2, refuse it or get other pods; " +
				"1 node: node(s) didn't match Pod's node affinity/selector",
		},
		"no other node": {
			other: cordoned, pods: web(),
			want: "held\nno room shop/web-1: no other node is ready; 1 node: node(s) were unschedulable",
		},
		"a cordoned node": {node: cordoned, pods: web(), want: "can go"},
		"a node that is being deleted": {
			node: func(n *v1.Node) {
				n.Spec.Taints = []v1.Taint{{Key: "karpenter.sh/disrupted", Effect: v1.TaintEffectNoSchedule}}
			},
			pods: web(), want: "is being deleted",
		},
		"a pod of a DaemonSet": {pods: web(ofKind("DaemonSet"), emptyDir), other: cordoned, want: "can go"},
		"a pod of a DaemonSet with Karpenter": {
			node: ofKarpenter, pods: web(ofKind("DaemonSet"), annotated[*v1.Pod](doNotDisrupt, "true")),
			want: "held\nannotation shop/web-1: karpenter.sh/do-not-disrupt: \"true\"",
		},
		"a pod of a DaemonSet that stays until the node is gone": {
			node: ofKarpenter, pods: web(ofKind("DaemonSet"), toleratesEverything, annotated[*v1.Pod](doNotDisrupt, "true")),
			want: "held\nannotation shop/web-1: karpenter.sh/do-not-disrupt: \"true\"",
		},
		"a budget of such a pod": {
			node: ofKarpenter, pods: web(ofKind("DaemonSet"), toleratesEverything),
			budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", maxUnavailable("0"))}, want: "can go",
		},
		"do not disrupt for two hours": {
			node: ofKarpenter, pods: web(annotated[*v1.Pod](doNotDisrupt, "2h"), startedBefore(time.Hour)),
			want: "held\nannotation shop/web-1: karpenter.sh/do-not-disrupt: \"2h\"",
		},
		"did not disrupt for half an hour": {
			node: ofKarpenter, pods: web(annotated[*v1.Pod](doNotDisrupt, "30m"), startedBefore(time.Hour)), want: "can go",
		},
		"a pod that is not ready": {
			node: ofKarpenter, pods: web(isNotReady), want: "can go",
			budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", alwaysAllow)},
		},
		"a pod that is ready": {
			node: ofKarpenter, pods: web(), want: "held\nbudget shop/b: allows no disruption: 1 healthy, 1 required",
			budgets: []*policyv1.PodDisruptionBudget{testBudget("b", "web", alwaysAllow)},
		},
		"a volume of another zone": {
			node:   func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = "a" },
			other:  func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = "b" },
			pods:   web(volume(v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})),
			others: zonedVolume("a"),
			want: "held\nno room shop/web-1: nodes with room, such as n2, refuse it or get other pods; " +
				"1 node: node(s) didn't match PersistentVolume's node affinity",
		},
		"a pod that terminates": {pods: web(func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), other: cordoned, want: "can go"},
	} {
		t.Run(name, func(t *testing.T) {
			none := func(*v1.Node) {}
			n1, n2 := testNode("n1", none), testNode("n2", none)
			if tc.node != nil {
				tc.node(n1)
			}
			if tc.other != nil {
				tc.other(n2)
			}
			objects := &manifest.Objects{Nodes: []*v1.Node{n1, n2}, Running: tc.pods, Others: tc.others}
			for _, b := range tc.budgets {
				objects.Others = append(objects.Others, b)
			}
			got, err := ExplainNodes(t.Context(), newTestEngine(t.Context(), t, objects), objects, []string{"n1"})
			must.Succeed(t, err)
			if diff := gocmp.Diff(tc.want, describe(got.Nodes[0])); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if warnings := strings.Join(got.Warnings, "\n"); warnings != tc.warning {
				t.Errorf("warnings %q, want %q", warnings, tc.warning)
			}
		})
	}
}

// TestExplainNodesUnknown checks the error for a node that does not exist.
func TestExplainNodesUnknown(t *testing.T) {
	objects := &manifest.Objects{Nodes: []*v1.Node{testNode("worker-1")}}
	_, err := ExplainNodes(t.Context(), newTestEngine(t.Context(), t, objects), objects, []string{"worker1"})
	if want := `nodes "worker1" not found; did you mean worker-1?`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestNothingHappens checks the answer for 50 nodes of Karpenter of which 43 are not needed, while none is removed. Each has a pod of 0.5
// CPUs, of which 4 / 0.5 = 8 fit on a node: 50 / 8 = 6.25, so 7 nodes are needed. A budget requires all 50 pods.
func TestNothingHappens(t *testing.T) {
	objects := &manifest.Objects{}
	for i := range 50 {
		objects.Nodes = append(objects.Nodes, testNode(fmt.Sprintf("n%02d", i), ofKarpenter))
		objects.Running = append(objects.Running, testPod(fmt.Sprintf("web-%02d", i), fmt.Sprintf("n%02d", i), 500))
	}
	explain := func(b *policyv1.PodDisruptionBudget) *NodesExplanation {
		objects.Others = append(objects.Others[:0], b)
		got, err := ExplainNodes(t.Context(), newTestEngine(t.Context(), t, objects), objects, nil)
		must.Succeed(t, err)
		return got
	}
	held := explain(testBudget("web", "web", minAvailable("100%")))
	if want := "0 of 50 nodes can go now, one after the other, 43 more if 1 budget allowed a disruption: shop/web"; held.Summary != want {
		t.Errorf("%s, want %s", held.Summary, want)
	}
	if want := "Rules of Karpenter for 50 nodes with the label karpenter.sh/nodepool"; held.Rules != want {
		t.Errorf("%s, want %s", held.Rules, want)
	}
	if got, want := explain(
		testBudget("web", "web", minAvailable("98%")),
	).Summary, "43 of 50 nodes can go now, one after the other"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// drawCluster returns nodes of Karpenter in two zones, with pods that run on them.
func drawCluster(t *rapid.T) *manifest.Objects {
	objects := &manifest.Objects{}
	nodes, used := rapid.IntRange(2, 7).Draw(t, "nodes"), map[int]int64{}
	for i := range nodes {
		zone := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")
		objects.Nodes = append(objects.Nodes, testNode(fmt.Sprint("n", i), ofKarpenter, func(n *v1.Node) {
			n.Labels[v1.LabelTopologyZone] = zone
			n.Spec.Unschedulable = rapid.IntRange(0, 9).Draw(t, "cordoned") == 0
		}))
	}
	for i := range rapid.IntRange(0, 14).Draw(t, "pods") {
		node, cpu := rapid.IntRange(0, nodes-1).Draw(t, "node"), rapid.Int64Range(1, 8).Draw(t, "CPU")*250
		if used[node]+cpu > 4000 {
			continue
		}
		used[node] += cpu
		app := rapid.SampledFrom([]string{"web", "db", "job"}).Draw(t, "app")
		own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		rule := rapid.IntRange(0, 7).Draw(t, "rule")
		objects.Running = append(objects.Running, testPod(fmt.Sprint(app, "-", i), fmt.Sprint("n", node), cpu, func(p *v1.Pod) {
			term := []v1.PodAffinityTerm{{LabelSelector: own, TopologyKey: v1.LabelHostname}}
			switch rule {
			case 0:
				p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: objects.Nodes[node].Labels[v1.LabelTopologyZone]}
			case 1:
				p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
			case 2:
				term[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
				p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
			case 3:
				p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: own,
				}}
			}
		}))
	}
	return objects
}

// TestNodesThatCanGo checks that the nodes that can go are removable in their order: the scheduler's filters accept each pod on the node that
// the explanation names, after the pods before it have moved.
func TestNodesThatCanGo(t *testing.T) {
	removed := 0
	rapid.Check(t, func(rt *rapid.T) {
		objects := drawCluster(rt)
		got, err := ExplainNodes(t.Context(), newTestEngine(t.Context(), rt, objects), objects, nil)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		oracle := newTestEngine(t.Context(), rt, objects)
		for _, n := range got.Nodes {
			if n.Result != CanGo {
				continue
			}
			removed++
			moved := map[string]*v1.Pod{}
			for _, pod := range objects.Running {
				if pod.Spec.NodeName == n.Name {
					moved[resources.Name(pod)] = pod
					_, err := oracle.UnassignPod(t.Context(), pod)
					must.Succeed(t, err)
				}
			}
			if len(moved) != len(n.Moves) {
				rt.Fatalf("%s: %d pods, %d moves", n.Name, len(moved), len(n.Moves))
			}
			i := slices.IndexFunc(objects.Nodes, func(node *v1.Node) bool { return node.Name == n.Name })
			must.Succeed(t, oracle.RemoveNode(t.Context(), objects.Nodes[i]))
			for _, move := range n.Moves {
				pod := moved[move.Pod].DeepCopy()
				pod.Spec.NodeName = ""
				fitting, err := oracle.Fitting(t.Context(), pod)
				must.Succeed(t, err)
				if fits, err := fitting(move.Node); err != nil || !fits {
					rt.Fatalf("%s: %s does not fit on %s: %v", n.Name, move.Pod, move.Node, err)
				}
				pod.Spec.NodeName = move.Node
				must.Succeed(t, oracle.AssignPod(t.Context(), pod))
			}
		}
	})
	if removed < 20 {
		t.Errorf("only %d nodes could go", removed)
	}
}

// canPlace reports whether pods fit in the free amounts of the nodes whose index is not in the set, by trying all ways.
func canPlace(pods, free []int64, gone uint) bool {
	if len(pods) == 0 {
		return true
	}
	tried := map[int64]bool{}
	for i := range free {
		if gone>>i&1 == 1 || free[i] < pods[0] || tried[free[i]] {
			continue
		}
		tried[free[i]] = true
		free[i] -= pods[0]
		fits := canPlace(pods[1:], free, gone)
		if free[i] += pods[0]; fits {
			return true
		}
	}
	return false
}

// TestNodesThatCanGoTogether compares the number of nodes that can go together with an exhaustive search over all sets of nodes and all
// placements: at least 90 % are found.
func TestNodesThatCanGoTogether(t *testing.T) {
	random, found, most := rand.New(rand.NewPCG(1, 2)), 0, 0
	for range 60 {
		objects, nodes := &manifest.Objects{}, 4+random.IntN(7)
		free, pods := make([]int64, nodes), make([][]int64, nodes)
		for i := range nodes {
			objects.Nodes = append(objects.Nodes, testNode(fmt.Sprint("n", i), ofKarpenter))
			free[i] = 4000
			for range random.IntN(4) {
				cpu := 250 * (1 + random.Int64N(6))
				if cpu > free[i] {
					continue
				}
				free[i], pods[i] = free[i]-cpu, append(pods[i], cpu)
				objects.Running = append(objects.Running, testPod(fmt.Sprint("web-", len(objects.Running)), fmt.Sprint("n", i), cpu))
			}
		}
		best := 0
		for gone := range uint(1)<<nodes - 1 {
			var moved []int64
			count := 0
			for i := range nodes {
				if gone>>i&1 == 1 {
					moved, count = append(moved, pods[i]...), count+1
				}
			}
			slices.SortFunc(moved, func(a, b int64) int { return int(b - a) })
			if count > best && canPlace(moved, free, gone) {
				best = count
			}
		}
		got, err := ExplainNodes(t.Context(), newTestEngine(t.Context(), t, objects), objects, nil)
		must.Succeed(t, err)
		can := 0
		for _, n := range got.Nodes {
			if n.Result == CanGo {
				can++
			}
		}
		if can > best {
			t.Fatalf("%d nodes can go, at most %d can", can, best)
		}
		found, most = found+can, most+best
	}
	t.Logf("%d of %d nodes are found", found, most)
	if found*10 < most*9 {
		t.Errorf("%d of %d nodes are found, want at least 90 %%", found, most)
	}
}

// BenchmarkExplainNodes explains 1,000 nodes with 20,000 pods, a tenth of them with budgets, spreading or anti-affinity.
func BenchmarkExplainNodes(b *testing.B) {
	objects, random := &manifest.Objects{}, rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		objects.Nodes = append(objects.Nodes, testNode(fmt.Sprint("n", i), ofKarpenter, func(n *v1.Node) {
			n.Labels[v1.LabelTopologyZone] = string(rune('a' + i%3))
		}))
	}
	for i := range 20_000 {
		app := fmt.Sprint("app", i%400)
		own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		pod := testPod(fmt.Sprint(app, "-", i), fmt.Sprint("n", i%1000), 50+random.Int64N(120), func(p *v1.Pod) {
			switch i % 400 {
			case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19:
				p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
					MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: own,
				}}
			case 20, 21, 22, 23, 24:
				p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
						{LabelSelector: own, TopologyKey: v1.LabelHostname},
					},
				}}
			}
		})
		if objects.Running = append(objects.Running, pod); i < 40 {
			objects.Others = append(objects.Others, testBudget(app, app, maxUnavailable("1")))
		}
	}
	for b.Loop() {
		got, err := ExplainNodes(b.Context(), newTestEngine(b.Context(), b, objects), objects, nil)
		must.Succeed(b, err)
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		b.ReportMetric(float64(memory.Sys)/(1<<20), "MiB")
		b.Log(got.Summary)
	}
}
