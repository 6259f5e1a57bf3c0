package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// workloadIn returns a workload of a namespace with the annotation and a number of replicas.
func workloadIn(namespace, name, annotation string, replicas int64) Workload {
	w := newWorkload(annotation)
	w.Namespace, w.Name, w.Replicas = namespace, name, replicas
	return w
}

// TestMirrorLimits checks the maximums per workload and per namespace, which apply before maxPlaceholders:
// one tenant cannot use up the placeholders of other tenants.
func TestMirrorLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		change    func(*v1alpha1.ResourceSlackSpec)
		workloads []Workload
		want      string // namespace/name=count
		reasons   string
	}{
		"defaults": {
			func(*v1alpha1.ResourceSlackSpec) {},
			[]Workload{workloadIn("a", "huge", "100%", 1<<31-1), workloadIn("a", "more", "9999", 1), workloadIn("a", "last", "1", 1), workloadIn("b", "web", "2", 1)},
			"a/huge=100 a/last=1 a/more=99 b/web=2",
			"Deployment a/huge requires 2147483647 placeholders, spec.mirrors.maxPerWorkload permits 100; " +
				"Deployment a/more requires 9999 placeholders, spec.mirrors.maxPerNamespace permits 99 more in namespace a",
		},
		"per namespace": {
			limits(10, 3, 100),
			[]Workload{workloadIn("a", "x", "2", 1), workloadIn("a", "y", "2", 1), workloadIn("b", "z", "2", 1)},
			"a/x=2 a/y=1 b/z=2", "Deployment a/y requires 2 placeholders, spec.mirrors.maxPerNamespace permits 1 more in namespace a",
		},
		"all": {
			limits(10, 10, 3),
			[]Workload{workloadIn("a", "x", "2", 1), workloadIn("b", "y", "2", 1), workloadIn("c", "z", "2", 1)},
			"a/x=1 b/y=1 c/z=1",
			"Deployment a/x requires 2 placeholders, maxPlaceholders permits 1 more in namespace a; " +
				"Deployment b/y requires 2 placeholders, maxPlaceholders permits 1 more in namespace b; " +
				"Deployment c/z requires 2 placeholders, maxPlaceholders permits 1 more in namespace c",
		},
		// b has its two, and a the remaining four of the ten that it may have.
		"all, unequal": {
			limits(10, 10, 6),
			[]Workload{workloadIn("a", "v", "3", 1), workloadIn("a", "w", "3", 1), workloadIn("a", "x", "4", 1), workloadIn("b", "y", "2", 1)},
			"a/v=3 a/w=1 b/y=2",
			"Deployment a/w requires 3 placeholders, maxPlaceholders permits 1 more in namespace a; " +
				"Deployment a/x requires 4 placeholders, maxPlaceholders permits 0 more in namespace a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := mirrorsOf(t, newPolicy("0", tc.change), tc.workloads...)
			var got []string
			for _, group := range plan.Groups {
				got = append(got, fmt.Sprintf("%s/%s=%d", group.Mirror.Namespace, group.Mirror.Name, group.Count))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("groups: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.reasons, strings.Join(plan.MirrorReasons, "; ")); diff != "" ||
				plan.MirrorsFeasible != (tc.reasons == "") {
				t.Errorf("feasible %t, reasons: -want +got:\n%s", plan.MirrorsFeasible, diff)
			}
		})
	}
}

// TestLimitsDuringCoolDown checks that a limit that is lowered applies to placeholders in a cool-down, too.
func TestLimitsDuringCoolDown(t *testing.T) {
	tracker := newTracker(t, newPolicy("0"), nil)
	tracker.SetWorkloads([]Workload{workloadIn("a", "x", "100%", 50)})
	tracker.Next(noon)
	tracker.SetWorkloads([]Workload{workloadIn("a", "x", "100%", 5)})
	must.Succeed(t, tracker.SetPolicy(newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) { s.Mirrors.MaxPerNamespace = new(int32(10)) })))
	if plan := tracker.Next(noon.Add(time.Second)); plan.placeholders() != 10 ||
		!strings.Contains(plan.MirrorReasons[0], "are held until") {
		t.Errorf("%d placeholders, reasons %q; want 10 during a cool-down", plan.placeholders(), plan.MirrorReasons)
	}
}

// TestNamespaceSelector checks that only workloads of selected namespaces are mirrored, that the default
// selects none, and that workloads that are not mirrored are named.
func TestNamespaceSelector(t *testing.T) {
	labeled := workloadIn("tenant", "api", "1", 1)
	labeled.NamespaceLabels = map[string]string{"team": "a"}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     int64
		reason   string
	}{
		"default": {nil, 0, "2 workloads with annotation plimsoll.dev/slack are in namespaces that " +
			"spec.mirrors.namespaceSelector does not select: Deployment shop/web, Deployment tenant/api"},
		"all":      {&metav1.LabelSelector{}, 2, ""},
		"by label": {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, 1, "does not select: Deployment shop/web"},
		"by name": {
			&metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}}, 1,
			"does not select: Deployment tenant/api",
		},
	} {
		policy := newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) { s.Mirrors.NamespaceSelector = tc.selector })
		plan := mirrorsOf(t, policy, labeled, newWorkload("1"))
		if reasons := strings.Join(plan.MirrorReasons, "; "); plan.placeholders() != tc.want || !strings.Contains(reasons, tc.reason) ||
			(reasons == "") != (tc.reason == "") || !plan.MirrorsFeasible {
			t.Errorf("%s: %d placeholders, feasible %t, reasons %q; want %d, %q", name, plan.placeholders(), plan.MirrorsFeasible, reasons,
				tc.want, tc.reason)
		}
	}
	invalid := newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) {
		s.Mirrors.NamespaceSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}},
		}
	})
	if _, err := NewTracker(invalid); err == nil || !strings.Contains(err.Error(), "matchExpressions[0].operator: Invalid value") {
		t.Errorf("an invalid selector: %v", err)
	}
}

// TestFairShares checks that a namespace with unmet demand has at most one less than any other namespace.
func TestFairShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands := rapid.MapOf(rapid.StringN(1, 2, -1), rapid.Int64Range(0, 20)).Draw(t, "demands")
		number := rapid.Int64Range(0, 100).Draw(t, "number")
		var demand, sum int64
		shares := fairShares(demands, number)
		for a, wanted := range demands {
			demand, sum = demand+wanted, sum+shares[a]
			if shares[a] < 0 || shares[a] > wanted {
				t.Fatalf("%s has %d of %d", a, shares[a], wanted)
			}
			for b := range demands {
				if shares[a] < wanted && shares[b] > shares[a]+1 {
					t.Fatalf("%s has %d of %d, %s has %d", a, shares[a], wanted, b, shares[b])
				}
			}
		}
		if sum != min(number, demand) {
			t.Fatalf("%d of %d are distributed, %d are wanted", sum, number, demand)
		}
	})
}

// TestLargeTemplates checks that templates with any large part, which are slow to compare with nodes, are not
// mirrored.
func TestLargeTemplates(t *testing.T) {
	values := make([]string, maxTemplateSize)
	requirements := make([]metav1.LabelSelectorRequirement, maxTemplateSize/2)
	for name, change := range map[string]func(*v1.PodSpec){
		"tolerations":   func(s *v1.PodSpec) { s.Tolerations = make([]v1.Toleration, maxTemplateSize) },
		"containers":    func(s *v1.PodSpec) { s.InitContainers = make([]v1.Container, maxTemplateSize) },
		"ports":         func(s *v1.PodSpec) { s.Containers[0].Ports = make([]v1.ContainerPort, maxTemplateSize) },
		"node affinity": func(s *v1.PodSpec) { s.Affinity = requiredAffinity(values) },
		"anti-affinity": func(s *v1.PodSpec) {
			antiAffine(s)
			term := &s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
			term.LabelSelector = &metav1.LabelSelector{MatchExpressions: requirements}
			term.Namespaces = values[:maxTemplateSize/2]
		},
		"many terms of anti-affinity": func(s *v1.PodSpec) {
			s.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: make([]v1.PodAffinityTerm, maxTemplateSize),
			}}
		},
	} {
		plan := mirrorsOf(t, newPolicy("0"), newWorkload("1", change), workloadIn("b", "other", "1", 1))
		if plan.placeholders() != 1 || plan.MirrorsFeasible || !strings.Contains(plan.MirrorReasons[0], "at most 250 are mirrored") {
			t.Errorf("%s: %d placeholders, reasons %q; want that of the other workload only", name, plan.placeholders(), plan.MirrorReasons)
		}
	}
}

// requiredAffinity returns an affinity to nodes with one of the values of a label.
func requiredAffinity(values []string) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "a", Operator: v1.NodeSelectorOpIn, Values: values}},
		}},
	}}}
}

// TestPlaceableIsBounded checks that anti-affinity that would be compared with too many pods costs only the
// mirrors of its own namespace. 150,000 pods and 134 terms make 20.1 million comparisons.
func TestPlaceableIsBounded(t *testing.T) {
	tracker := newTracker(t, newPolicy("0"), nil)
	for _, node := range nodesOf(5, "n", "16", "64Gi") {
		node.Labels[v1.LabelHostname] = node.Name
		tracker.SetNode(node, noon)
	}
	hostile := workloadIn("hostile", "web", "2", 1)
	antiAffine(&hostile.Template.Spec)
	terms := hostile.Template.Spec.Affinity.PodAntiAffinity
	term := terms.RequiredDuringSchedulingIgnoredDuringExecution[0]
	term.LabelSelector, term.NamespaceSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
	terms.RequiredDuringSchedulingIgnoredDuringExecution = slices.Repeat([]v1.PodAffinityTerm{term}, 134)
	other := workloadIn("other", "web", "2", 1)
	antiAffine(&other.Template.Spec)
	tracker.SetWorkloads([]Workload{hostile, other})
	pods := make([]*v1.Pod, 150_000)
	for i := range pods {
		pods[i] = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "many"}, Spec: v1.PodSpec{NodeName: "n0"}}
	}
	plan := tracker.Next(noon)
	if got := tracker.Capacity().Placeable(plan, pods); plan.placeholders() != 4 || got != 2 {
		t.Errorf("%d of %d placeholders fit, want the two of namespace other", got, plan.placeholders())
	}
}

func limits(perWorkload, perNamespace, all int32) func(*v1alpha1.ResourceSlackSpec) {
	return func(s *v1alpha1.ResourceSlackSpec) {
		s.MaxPlaceholders, s.Mirrors.MaxPerWorkload, s.Mirrors.MaxPerNamespace = &all, &perWorkload, &perNamespace
	}
}
