package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
		// Base = 8 x (1, 4) + (12, 48) = (20, 80), target 10% = (2, 8), head (1, 4),
		// missing (1, 4), the maximum size: 1 placeholder.
		"a database that opted out": {
			policy: newPolicy("10%"), nodes: large,
			pods: append(podsOf(4, large, "p", "1", "4Gi"), newPod("db", "web-0", "12", "48Gi",
				annotated(v1alpha1.AnnotationBiggest, v1alpha1.BiggestIgnore))),
			base: list("20", "80Gi"), target: list("2", "8Gi"), total: list("2", "8Gi"),
			groups: []Group{head("1", "4Gi"), rest(1, "1", "4Gi")},
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

// TestBadPolicies checks what the CRD refuses, and Validate of the type; TestParseRate checks texts that are no rates.
func TestBadPolicies(t *testing.T) {
	type spec = v1alpha1.ResourceSlackSpec
	amount := func(cpu, memory string) *v1alpha1.Amount {
		out := &v1alpha1.Amount{}
		if cpu != "" {
			out.CPU = new(resource.MustParse(cpu))
		}
		if memory != "" {
			out.Memory = new(resource.MustParse(memory))
		}
		return out
	}
	between := func(minimum, maximum *v1alpha1.Amount) func(*spec) {
		return func(s *spec) { s.Minimum, s.Maximum = minimum, maximum }
	}
	scheduled := func(days, from, to, rate string) func(*spec) {
		return func(s *spec) { s.Schedules = []v1alpha1.Schedule{{Days: days, From: from, To: to, MinRate: rate}} }
	}
	devices := func(names ...string) func(*spec) {
		return func(s *spec) { s.Pool.Devices = names }
	}
	unchanged := func(*spec) {}
	const noDevice = "must be the name of an extended resource such as nvidia.com/gpu"
	for name, tc := range map[string]struct {
		rate   string
		change func(*spec)
		want   string // part of the error, empty if the policy is valid
	}{
		"no rate":                      {"", unchanged, "spec.minRate"},
		"negative rate":                {"-10%", unchanged, "spec.minRate"},
		"a percentage without a sign":  {"10", unchanged, "must be a percentage such as 10%, or a fraction of at most 1"},
		"more than 200%":               {"200.0001%", unchanged, "minRate must be at most 200%"},
		"100% of allocatable":          {"100%", baseAllocatable, "minRate must be less than 100%"},
		"1 of allocatable":             {"1", baseAllocatable, "minRate must be less than 100%"},
		"granularity 0":                {"10%", granularity(0), "spec.granularity"},
		"granularity 101":              {"10%", granularity(101), "spec.granularity"},
		"maxPlaceholders 0":            {"10%", maxPlaceholders(0), "spec.maxPlaceholders"},
		"an unknown base":              {"10%", func(s *spec) { s.Base = "Used" }, "spec.base"},
		"an unknown backend":           {"10%", func(s *spec) { s.Backend = "Job" }, "spec.backend"},
		"minimum of 0":                 {"10%", between(amount("0", ""), nil), "spec.minimum.cpu"},
		"minimum above the maximum":    {"10%", between(amount("10", ""), amount("9500m", "")), "minimum.cpu must be at most maximum.cpu"},
		"more memory than the maximum": {"10%", between(amount("", "1025Mi"), amount("", "1Gi")), "minimum.memory must be at most"},
		"schedule that never applies":  {"10%", scheduled("", "07:00", "07:00", "1%"), "spec.schedules[0].to"},
		"days of a schedule":           {"10%", scheduled("Monday", "07:00", "08:00", "1%"), "spec.schedules[0].days"},
		"time of a schedule":           {"10%", scheduled("", "7:00", "08:00", "1%"), "spec.schedules[0].from"},
		"schedule without effect":      {"10%", scheduled("", "07:00", "08:00", ""), "minRate or minimum must be set"},
		"rate of a schedule":           {"10%", scheduled("", "07:00", "08:00", "10"), "spec.schedules[0].minRate"},
		"high rate of a schedule":      {"10%", scheduled("", "07:00", "08:00", "201%"), "minRate must be at most 200%"},
		"lead time": {"10%", func(s *spec) {
			s.Schedules = []v1alpha1.Schedule{{From: "07:00", To: "08:00", MinRate: "1%", LeadSeconds: new(int32(3601))}}
		}, "leadSeconds"},
		"shape without memory": {
			"10%", func(s *spec) { s.Pool.NodeShape = amount("4", "") },
			"must have cpu and memory, and nothing else",
		},
		"native resource as a device": {"10%", devices(gpuName, "pods"), "spec.pool.devices[1]: Invalid value"},
		"huge pages as a device":      {"10%", devices("hugepages-2Mi"), noDevice},
		"device of Kubernetes":        {"10%", devices("kubernetes.io/x"), noDevice},
		"quota of a device":           {"10%", devices("requests.nvidia.com/gpu"), noDevice},
		"device without a name":       {"10%", devices(""), noDevice},
		"devices twice":               {"10%", devices(gpuName, gpuName), "spec.pool.devices[1]: Duplicate value"},
		"too many devices":            {"10%", devices(strings.Fields("a/1 a/2 a/3 a/4 a/5 a/6 a/7 a/8 a/9")...), "Too many: 9"},
		"devices of allocatable": {
			"10%", func(s *spec) { s.Base, s.Pool.Devices = "Allocatable", []string{gpuName} },
			"must be Requested if pool.devices is set",
		},
		"minimum values":                {"0", granularity(1), ""},
		"maximum values":                {"200%", granularity(100), ""},
		"less than 100% of allocatable": {"99.9999%", baseAllocatable, ""},
		"devices":                       {"10%", devices(gpuName, nicName), ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy := newPolicy(tc.rate, tc.change)
			_, computeErr := Compute(policy, nil, nil, nil, noon)
			_, loopErr := NewLoop(policy, "default")
			for caller, err := range map[string]error{"Compute": computeErr, "NewLoop": loopErr} {
				if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: error %v, want %q", caller, err, tc.want)
				}
			}
		})
	}
}

// FuzzSchedule evaluates schedules of any text at any time: they are refused, or the next change is later, and nothing takes long.
func FuzzSchedule(f *testing.F) {
	f.Add("Mon-Fri", "07:30", "18:00", "Europe/Berlin", "30%", int64(1_795_239_886))
	f.Add("Sat,Sun", "22:00", "06:00", "", "1", int64(0))
	f.Add("Fri-Mon", "00:00", "24:00", "America/New_York", "1e2147483647", int64(-1))
	f.Add("", "07:30", "07:30", "../../etc/passwd", "-1%", int64(1)<<62)
	f.Fuzz(func(t *testing.T, days, from, to, zone, rate string, second int64) {
		policy := newPolicy("10%", func(s *v1alpha1.ResourceSlackSpec) {
			s.Schedules = []v1alpha1.Schedule{{Days: days, From: from, To: to, TimeZone: zone, MinRate: rate}}
		})
		policy.Spec.Default()
		s, err := newSchedule(policy)
		if err != nil {
			return
		}
		now := time.Unix(second%(1<<35), 0)
		if s.advance(now); !s.until.IsZero() && !s.until.After(now) {
			t.Errorf("the next change is at %s, not after %s", s.until, now)
		}
	})
}
