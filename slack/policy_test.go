package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// newPolicy returns a policy for the nodes with label pool=web.
func newPolicy(rate string, changes ...func(*v1alpha1.ResourceSlackSpec)) *v1alpha1.ResourceSlack {
	policy := &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1234"},
		Spec:       v1alpha1.ResourceSlackSpec{MinRate: rate, Pool: v1alpha1.Pool{NodeSelector: map[string]string{"pool": "web"}}},
	}
	policy.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{}
	for _, change := range changes {
		change(&policy.Spec)
	}
	return policy
}

func granularity(n int32) func(*v1alpha1.ResourceSlackSpec) {
	return func(s *v1alpha1.ResourceSlackSpec) { s.Granularity = &n }
}

func maxPlaceholders(n int32) func(*v1alpha1.ResourceSlackSpec) {
	return func(s *v1alpha1.ResourceSlackSpec) { s.MaxPlaceholders = &n }
}

func baseAllocatable(s *v1alpha1.ResourceSlackSpec) { s.Base = v1alpha1.BaseAllocatable }

func uncovered(s *v1alpha1.ResourceSlackSpec) { s.CoverBiggestPod = new(false) }

// nodesOf returns nodes with the names prefix0, prefix1 and so on.
func nodesOf(n int, prefix, cpu, memory string, changes ...func(*v1.Node)) (nodes []*v1.Node) {
	for i := range n {
		nodes = append(nodes, newNode(fmt.Sprint(prefix, i), cpu, memory, changes...))
	}
	return nodes
}

// podsOf returns n pods on each of the nodes.
func podsOf(n int, nodes []*v1.Node, name, cpu, memory string, changes ...func(*v1.Pod)) (pods []*v1.Pod) {
	for _, node := range nodes {
		for i := range n {
			pods = append(pods, newPod(fmt.Sprintf("%s-%s-%d", name, node.Name, i), node.Name, cpu, memory, changes...))
		}
	}
	return pods
}

func TestCompute(t *testing.T) {
	large, small := nodesOf(2, "web-", "16", "64Gi"), nodesOf(2, "web-", "4", "16Gi")
	database := nodesOf(2, "db-", "64", "256Gi", label("pool", "db"))
	head := func(cpu, memory string) Group {
		return Group{Name: "web-head", Head: true, Requests: list(cpu, memory), Count: 1}
	}
	rest := func(n int64, cpu, memory string) Group {
		return Group{Name: "web-rate", Requests: list(cpu, memory), Count: n}
	}
	for name, tc := range map[string]struct {
		policy         *v1alpha1.ResourceSlack
		nodes          []*v1.Node
		pods           []*v1.Pod
		base, target   v1.ResourceList
		total          v1.ResourceList
		groups         []Group
		infeasible     bool
		reasonContains string
	}{
		// Pool web only: base = 20 x (1, 4) = (20, 80), target 20% = (4, 16), head (1, 4),
		// missing (3, 12). s = min((16, 64)/5, (1, 4)) = (1, 4): 3 of them.
		"a pool and other nodes": {
			policy: newPolicy("20%"), nodes: slices.Concat(database, large),
			pods: slices.Concat(podsOf(10, large, "p", "1", "4Gi"), podsOf(1, database, "q", "32", "128Gi")),
			base: list("20", "80Gi"), target: list("4", "16Gi"), total: list("4", "16Gi"),
			groups: []Group{head("1", "4Gi"), rest(3, "1", "4Gi")},
		},
		// Base = 2 x (2, 8), without 2 x (1, 4) of daemons: (4, 16); target 100% =
		// (4, 16), head (2, 8), missing (2, 8). s = min((4, 16)/5 = (0.8, 3.2), (2, 8)):
		// ceil(2/0.8) = 3 of (2, 8)/3 = (0.667, 2731 MiB), rounded up.
		"DaemonSets are not in the base": {
			policy: newPolicy("1"), nodes: small,
			pods: slices.Concat(podsOf(1, small, "p", "2", "8Gi"), podsOf(1, small, "d", "1", "4Gi", ownedBy("DaemonSet", true))),
			base: list("4", "16Gi"), target: list("4", "16Gi"), total: list("4001m", "16385Mi"),
			groups: []Group{head("2", "8Gi"), rest(3, "667m", "2731Mi")},
		},
		// Base = 2 x (4, 16), target 75% = (6, 24). One placeholder per node would be (4, 16), but daemon
		// pods leave (3, 12): 2 placeholders. There is no biggest pod.
		"DaemonSets reduce the capacity of nodes": {
			policy: newPolicy("75%", baseAllocatable, granularity(1)), nodes: small,
			pods: podsOf(1, small, "d", "1", "4Gi", ownedBy("DaemonSet", true)),
			base: list("8", "32Gi"), target: list("6", "24Gi"), total: list("6", "24Gi"),
			groups: []Group{rest(2, "3", "12Gi")},
		},
		// Base = 8 x (1, 4) + (12, 48) = (20, 80), target 10% = (2, 8), head (1, 4),
		// missing (1, 4), the maximum size: 1 placeholder.
		"a database that opted out": {
			policy: newPolicy("10%"), nodes: large,
			pods: append(podsOf(4, large, "p", "1", "4Gi"), newPod("db", "web-0", "12", "48Gi",
				annotated(v1alpha1.AnnotationBiggest, v1alpha1.BiggestIgnore))),
			base: list("20", "80Gi"), target: list("2", "8Gi"), total: list("2", "8Gi"),
			groups: []Group{head("1", "4Gi"), rest(1, "1", "4Gi")},
		},
		// The same base and target, but the head of (12, 48) exceeds the target.
		"a database that did not opt out": {
			policy: newPolicy("10%"), nodes: large,
			pods: append(podsOf(4, large, "p", "1", "4Gi"), newPod("db", "web-0", "12", "48Gi")),
			base: list("20", "80Gi"), target: list("2", "8Gi"), total: list("12", "48Gi"),
			groups: []Group{head("12",
				"48Gi")}, reasonContains: "placeholders exceed the target by 10 CPU and 40Gi memory: they cover the biggest pod",
		},
		// Base = 2 x (1, 4) of the running pods. Target 100% = (2, 8), head (1, 4), 1 of (1, 4).
		"finished pods, pending pods and placeholders": {
			policy: newPolicy("100%", granularity(4)), nodes: small,
			pods: slices.Concat(podsOf(1, small, "p", "1", "4Gi"), podsOf(1, small, "done", "2", "8Gi", phase(v1.PodSucceeded)),
				podsOf(1, small, "held", "3", "12Gi", placeholderOf("web")),
				[]*v1.Pod{newPod("waits", "", "4", "16Gi", phase(v1.PodPending))}),
			base: list("2", "8Gi"), target: list("2", "8Gi"), total: list("2", "8Gi"),
			groups: []Group{head("1", "4Gi"), rest(1, "1", "4Gi")},
		},
		// A cordoned node has pods, but no capacity: base = (16, 64) of the other node,
		// target 50% = (8, 32). s = min((16, 64)/2, (2, 8)) = (2, 8): 4 of them.
		"a cordoned node": {
			policy: newPolicy("50%", baseAllocatable, uncovered, granularity(2)),
			nodes:  append(nodesOf(1, "old-", "16", "64Gi", cordoned), large[0]),
			pods:   []*v1.Pod{newPod("p", "old-0", "2", "8Gi")},
			base:   list("16", "64Gi"),
			target: list("8", "32Gi"),
			total:  list("8", "32Gi"),
			groups: []Group{rest(4, "2", "8Gi")},
		},
		// No node fits the highest CPU, 12, and the highest memory, 48 GiB, but each pod fits a node.
		// Target 0: the two heads only.
		"two heads": {
			policy: newPolicy("0"), nodes: append(nodesOf(1, "cpu-", "16", "8Gi"), newNode("memory-0", "2", "64Gi")),
			pods: []*v1.Pod{newPod("p", "cpu-0", "12", "2Gi"), newPod("q", "memory-0", "1", "48Gi")},
			base: list("13", "50Gi"), target: list("0", "0"), total: list("13", "50Gi"),
			groups:         []Group{head("12", "2Gi"), {Name: "web-head2", Head: true, Requests: list("1", "48Gi"), Count: 1}},
			reasonContains: "placeholders exceed the target by 13 CPU and 50Gi memory: they cover the biggest pod",
		},
		// Target 100% of (8, 32), s = (1, 4): 8 required, maximum 3.
		"more than maxPlaceholders": {
			policy: newPolicy("100%", uncovered, maxPlaceholders(3)), nodes: large, pods: podsOf(4, large, "p", "1", "4Gi"),
			base: list("8", "32Gi"), target: list("8", "32Gi"), total: list("3", "12Gi"),
			groups: []Group{rest(3, "1", "4Gi")}, infeasible: true, reasonContains: "8 placeholders are required, maxPlaceholders is 3",
		},
		"an empty cluster": {
			policy: newPolicy("10%"), base: list("0", "0"), target: list("0", "0"), total: list("0", "0"),
			infeasible: true, reasonContains: "spec.pool: no node matches (nodeSelector: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.policy.DeepCopy()
			got, err := Compute(tc.policy, tc.nodes, tc.pods, nil, noon)
			must.Succeed(t, err)
			if reasons := strings.Join(got.Reasons, "; "); !strings.Contains(reasons, tc.reasonContains) ||
				(tc.reasonContains == "") != (reasons == "") {
				t.Errorf("reasons %q, want %q", reasons, tc.reasonContains)
			}
			want := Plan{
				Policy: "web", Base: tc.base, Target: tc.target, Total: tc.total, Groups: tc.groups, Feasible: !tc.infeasible,
				Reasons: got.Reasons, MirrorsFeasible: true, NoNodes: len(tc.nodes) == 0, NodeShape: got.NodeShape,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// Defaults are applied to a copy.
			if diff := cmp.Diff(before, tc.policy); diff != "" {
				t.Errorf("the policy was changed: -before +after:\n%s", diff)
			}
		})
	}
}

// TestComputeWithUnreadyNode checks that a node that is not ready counts for one minute.
func TestComputeWithUnreadyNode(t *testing.T) {
	node := newNode("a", "10", "40Gi", readySince(v1.ConditionFalse, 0))
	policy := newPolicy("10%", baseAllocatable)
	for after, want := range map[int64]string{59: "10", 60: "0"} {
		plan, err := Compute(policy, []*v1.Node{node}, nil, nil, metav1.Unix(noon.Unix()+after, 0).Time)
		must.Succeed(t, err)
		if got := plan.Base.Cpu().String(); got != want {
			t.Errorf("not ready for %d s: base %s cores, want %s", after, got, want)
		}
	}
}

// TestOverflow checks that plans whose sums exceed int64, and pods that exceed their node by such a factor, have valid
// amounts and counts.
func TestOverflow(t *testing.T) {
	const huge = "9223372036854775807"
	vast, tiny := newNode("vast", huge, "8Ei"), newNode("tiny", "1m", "1Mi")
	for name, tc := range map[string]struct {
		node *v1.Node
		pods []*v1.Pod
	}{
		"vast": {vast, []*v1.Pod{newPod("a", "vast", huge, "1Ei"), newPod("b", "vast", "1", "7Ei"), newPod("c", "vast", "1m", huge)}},
		"tiny": {tiny, []*v1.Pod{newPod("a", "tiny", huge, "7Ei"), newPod("b", "tiny", huge, "7Ei")}},
	} {
		for _, most := range []int32{2, 100_000} {
			plan, err := Compute(newPolicy("200%", maxPlaceholders(most)), []*v1.Node{tc.node}, tc.pods, nil, noon)
			must.Succeed(t, err)
			if sum := plan.placeholders(); sum < 0 || sum > int64(most) || plan.Target.Cpu().Sign() < 0 || plan.Total.Memory().Sign() < 0 {
				t.Errorf("%s with at most %d placeholders: %d, target %v, total %v", name, most, sum, plan.Target, plan.Total)
			}
			if name == "tiny" && plan.Feasible {
				t.Errorf("tiny is feasible: %+v", plan)
			}
		}
	}
}

func TestBadPolicies(t *testing.T) {
	type change = func(*v1alpha1.ResourceSlackSpec)
	tests := map[string]struct {
		rate    string
		changes []change
		// fields are the fields that the error names.
		fields []string
	}{
		"negative rate":                   {"-10%", nil, []string{"spec.minRate"}},
		"a rate of minus 0":               {"-0", nil, []string{"spec.minRate"}},
		"a rate with a plus":              {"+10%", nil, []string{"spec.minRate"}},
		"a rate that is not a number":     {"NaN", nil, []string{"spec.minRate"}},
		"an infinite rate":                {"Inf", nil, []string{"spec.minRate"}},
		"a rate with an exponent":         {"1e3", nil, []string{"spec.minRate"}},
		"a rate in hexadecimal":           {"0x10", nil, []string{"spec.minRate"}},
		"a rate with a space":             {"10 %", nil, []string{"spec.minRate"}},
		"a rate with a comma":             {"0,1", nil, []string{"spec.minRate"}},
		"a rate with two signs":           {"10%%", nil, []string{"spec.minRate"}},
		"a rate without a number":         {"%", nil, []string{"spec.minRate"}},
		"a rate that starts with a dot":   {".1", nil, []string{"spec.minRate"}},
		"a rate with a newline":           {"10%\n", nil, []string{"spec.minRate"}},
		"no rate":                         {"", nil, []string{"spec.minRate"}},
		"a percentage without a sign":     {"10", nil, []string{"spec.minRate"}},
		"a fraction above 1":              {"1.5", nil, []string{"spec.minRate"}},
		"less than a resources.Millionth": {"0.00001%", nil, []string{"spec.minRate"}},
		"more than 200%":                  {"200.0001%", nil, []string{"minRate must be at most 200%"}},
		"100% of allocatable":             {"100%", []change{baseAllocatable}, []string{"minRate must be less than 100%"}},
		"1 of allocatable":                {"1", []change{baseAllocatable}, []string{"minRate must be less than 100%"}},
		"more than 100% of allocatable":   {"1000%", []change{baseAllocatable}, []string{"minRate must be less than 100%"}},
		"granularity 0":                   {"10%", []change{granularity(0)}, []string{"spec.granularity"}},
		"granularity 101":                 {"10%", []change{granularity(101)}, []string{"spec.granularity"}},
		"negative granularity":            {"10%", []change{granularity(-1)}, []string{"spec.granularity"}},
		"maxPlaceholders 0":               {"10%", []change{maxPlaceholders(0)}, []string{"spec.maxPlaceholders"}},
		"negative maxPlaceholders":        {"10%", []change{maxPlaceholders(-5)}, []string{"spec.maxPlaceholders"}},
		"an unknown base": {
			"10%", []change{func(s *v1alpha1.ResourceSlackSpec) { s.Base = "Used" }}, []string{"spec.base"},
		},
		"an unknown backend": {
			"10%",
			[]change{func(s *v1alpha1.ResourceSlackSpec) { s.Backend = "Job" }},
			[]string{"spec.backend"},
		},
		"several errors": {
			"10%",
			[]change{granularity(0), maxPlaceholders(0)},
			[]string{"spec.granularity", "spec.maxPlaceholders"},
		},
		"minimum values":                {"0", []change{granularity(1), maxPlaceholders(1)}, nil},
		"maximum values":                {"200%", []change{granularity(100)}, nil},
		"100% as a fraction":            {"1.0", nil, nil},
		"less than 100% of allocatable": {"99.9999%", []change{baseAllocatable}, nil},
		"more than 100% of requests":    {"200%", nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			policy := newPolicy(tc.rate, tc.changes...)
			_, computeErr := Compute(policy, nil, nil, nil, noon)
			_, loopErr := NewLoop(policy, "default")
			for caller, err := range map[string]error{"Compute": computeErr, "NewLoop": loopErr} {
				if (err != nil) != (tc.fields != nil) {
					t.Fatalf("%s: error %v, want fields %v", caller, err, tc.fields)
				}
				if err == nil {
					continue
				}
				for _, field := range tc.fields {
					if !strings.Contains(err.Error(), field) {
						t.Errorf("%s: %v, want %s", caller, err, field)
					}
				}
			}
		})
	}
}
