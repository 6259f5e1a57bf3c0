package slackpolicy

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// largeNode is a smallNode of 16 CPUs and 64 GiB.
var largeNode = func() NodeType {
	node := smallNode
	node.Allocatable.CPU, node.Allocatable.Memory = 16_000, 64<<30
	return node
}()

// mirrorOf returns a workload of namespace shop with pods of 1 CPU and 4 GiB per unit, which requests a number of placeholders.
func mirrorOf(name, placeholders string, units int64) slack.Workload {
	requests := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(units, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(units*4<<30, resource.BinarySI),
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "shop",
			Name:        name,
			Annotations: map[string]string{v1alpha1.AnnotationSlack: placeholders},
		},
		Spec: appsv1.DeploymentSpec{Template: v1.PodTemplateSpec{
			Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}},
		}},
	}
	w, _ := slack.WorkloadOf(deployment)
	return w
}

// burst returns four pods of 12 CPUs and 48 GiB of workload 1, which run for 300 s.
func burst(at int64) []Pod {
	return slices.Repeat([]Pod{{Arrival: at, Duration: 300, Requests: requestsOf(12_000, 48<<30), Workload: 1}}, 4)
}

// amountOf returns an amount of CPU and memory.
func amountOf(cpu, memory string) *v1alpha1.Amount {
	return &v1alpha1.Amount{CPU: new(resource.MustParse(cpu)), Memory: new(resource.MustParse(memory))}
}

// onlyMirrors is a policy without placeholders of its own.
func onlyMirrors(spec *v1alpha1.ResourceSlackSpec) {
	spec.CoverBiggestPod, spec.Mirrors.NamespaceSelector = new(false), &metav1.LabelSelector{}
}

// TestSimulateMirrors checks a burst of four pods of 12 CPUs on nodes of 16 CPUs, beside 48 CPUs of slack.
func TestSimulateMirrors(t *testing.T) {
	h := &History{Seconds: 3600, Pods: burst(5), Workloads: []slack.Workload{{Kind: "Deployment", Namespace: "shop", Name: "web"}}}
	for name, tc := range map[string]struct {
		minimum string
		mirrors []slack.Workload
		waits   result.Waits
		waited  map[int32]int64
		cost    float64
	}{
		// Granularity 5 divides 48 CPUs into 15 placeholders of 3.2 CPUs, five on each of three nodes. Three pods have a node at once; the
		// node of the fourth is added at 10 and ready at 130.
		"a minimum": {minimum: "48", waits: result.Waits{0: 3, 125: 1}, waited: map[int32]int64{1: 1}},
		// A placeholder of 12 CPUs is on each of four nodes. The pass at 10 adds four nodes for the placeholders. They are empty from 305
		// on, unneeded from the pass at 310, and removed 600 s later: 4 + 4 x 900 / 3600.
		"four mirrors": {mirrors: []slack.Workload{mirrorOf("web", "4", 12)}, waits: result.Waits{0: 4}, waited: map[int32]int64{}, cost: 5},
		"two workloads with pods of this size": {
			mirrors: []slack.Workload{mirrorOf("api", "1", 12), mirrorOf("web", "3", 12)},
			waits:   result.Waits{0: 4}, waited: map[int32]int64{}, cost: 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := newPolicy("0%", onlyMirrors)
			if tc.minimum != "" {
				policy.Spec.Minimum = amountOf(tc.minimum, "180Gi")
			}
			got, err := Simulate(h, largeNode, policy, tc.mirrors...)
			if err != nil || !reflect.DeepEqual(got.Waits, tc.waits) || !reflect.DeepEqual(got.Waited, tc.waited) ||
				tc.cost > 0 && math.Abs(got.Cost-tc.cost) > 1e-9 {
				t.Errorf(
					"waits %v, waited %v, cost %v, error %v; want %v, %v, %v", got.Waits, got.Waited, got.Cost, err, tc.waits, tc.waited,
					tc.cost,
				)
			}
		})
	}
}

// TestScheduleLevels checks that schedules have no levels with equal amounts: of needs of 1 to 100 units, a maximum permits 10.
func TestScheduleLevels(t *testing.T) {
	s := &search{
		unit: resources.Amounts{CPU: 1000, Memory: 4 << 30},
		goal: Goal{Policy: newPolicy("0%", func(spec *v1alpha1.ResourceSlackSpec) {
			spec.Maximum = amountOf("10", "40Gi")
		})},
	}
	for units := range 100 {
		s.needs = append(s.needs, need{units: float64(units + 1)})
	}
	costs, amounts := s.newScheduleCosts(), map[string]bool{}
	for _, units := range costs.units[1:] {
		text := amountText(s.amount(units))
		if amounts[text] {
			t.Errorf("several levels of %s: %v", text, costs.units)
		}
		amounts[text] = true
	}
	if !amounts[amountText(s.amount(10))] {
		t.Errorf("levels %v, want one of the maximum", costs.units)
	}
}

// TestMirrorNeed checks the number of placeholders for five pods. Nodes are ready after 100 s: the pods at 0, 10 and 20 are one, two and
// three at a time, the pods at 200 and 205 one and two.
func TestMirrorNeed(t *testing.T) {
	var n mirrorNeed
	for _, at := range []int64{0, 10, 20, 200, 205} {
		n.add(&Pod{Arrival: at, Requests: requestsOf(at, 205-at)}, at-100)
	}
	if want := []int64{1, 2, 3, 1, 2}; !slices.Equal(n.counts, want) || n.requests != (resources.Amounts{CPU: 205, Memory: 205}) {
		t.Errorf("counts %v, requests %v; want %v, the largest of each", n.counts, n.requests, want)
	}
	// With 0, 1, 2 and 3 placeholders, 5, 3, 1 and 0 pods wait.
	for wait, want := range map[float64]int64{
		0.4: 0, // 2, 1 + 1.2, 2 + 0.4, 3
		0.6: 2, // 3, 1 + 1.8, 2 + 0.6, 3
		1.1: 3, // 5.5, 1 + 3.3, 2 + 1.1, 3
	} {
		if got := n.best(1, wait); got != want {
			t.Errorf("%d placeholders at a price of %v for each wait, want %d", got, wait, want)
		}
	}
}

// TestMirrorsAsInPlan checks that a simulation holds the placeholders of a plan for workloads with the annotations, within all
// limits and beside all minimums.
func TestMirrorsAsInPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := newPolicy("0%", onlyMirrors, func(s *v1alpha1.ResourceSlackSpec) {
			s.Minimum = amountOf(fmt.Sprint(rapid.IntRange(1, 20).Draw(t, "minimum")), "1Gi")
			s.MaxPlaceholders = new(rapid.Int32Range(8, 40).Draw(t, "maximum"))
			s.Mirrors.MaxPerWorkload = new(rapid.Int32Range(1, 10).Draw(t, "per workload"))
			s.Mirrors.MaxPerNamespace = new(rapid.Int32Range(1, 20).Draw(t, "per namespace"))
		})
		policy.Spec.Default()
		var workloads []slack.Workload
		for i := range rapid.IntRange(0, 5).Draw(t, "workloads") {
			w := mirrorOf(
				fmt.Sprint("web-", i), fmt.Sprint(rapid.IntRange(0, 15).Draw(t, "placeholders")), rapid.Int64Range(1, 3).Draw(t, "size"),
			)
			w.Namespace = rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace")
			workloads = append(workloads, w)
		}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"pool": "web"}}}
		node.Status.Allocatable = v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi"),
			v1.ResourcePods: resource.MustParse("110"),
		}
		plan, err := slack.Compute(policy, []*v1.Node{node}, nil, workloads, time.Unix(0, 0))
		must.Succeed(t, err)
		want, others := map[resources.Amounts]int64{}, int64(0)
		for _, group := range plan.Groups {
			if group.Mirror == nil {
				others += group.Count
			} else {
				want[resources.CPUAndMemory(group.Requests)] += group.Count
			}
		}
		for _, beside := range []int64{0, others, others} {
			got := map[resources.Amounts]int64{}
			for _, group := range slack.MirrorGroups(policy, workloads, beside) {
				got[resources.CPUAndMemory(group.Requests)] += group.Count
			}
			if beside == others && !reflect.DeepEqual(got, want) {
				t.Fatalf("%v in the simulation, %v in the plan", got, want)
			}
		}
	})
}

// TestRecommendMirrors checks bursts of four pods of 12 CPUs every half hour. In the first two and a half hours, 20 pods of 12 CPUs
// leave 4 CPUs of their nodes free, which placeholders of a minimum, of 3.2 CPUs, fit and pods of the burst do not. A minimum that leaves
// four nodes for the burst is 20 x 3.2 + 3 x 16 + 3.2 = 115.2 CPUs, more than twice the burst, and keeps eight nodes later. Four mirrors
// are always on four nodes.
func TestRecommendMirrors(t *testing.T) {
	h := &History{Seconds: 6 * 3600, Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Workloads: []slack.Workload{
		{Kind: "Deployment", Namespace: "shop", Name: "web"}, {Kind: "Deployment", Namespace: "shop", Name: "base"},
	}}
	h.Pods = slices.Repeat([]Pod{{Arrival: -1, Duration: 9000, Requests: requestsOf(12_000, 48<<30), Workload: 2}}, 20)
	for at := int64(605); at < h.Seconds; at += 1800 {
		h.Pods = append(h.Pods, burst(at)...)
	}
	goal := Goal{Percent: 100, Wait: 5 * time.Second, Policy: newPolicy("10%")}
	goal.Policy.Spec.Default()
	got, err := Search(t.Context(), h, largeNode, goal)
	if err != nil || got.Best == nil || len(got.Candidates) > 80 {
		t.Fatalf("best %+v of %d, error %v", got.Best, len(got.Candidates), err)
	}
	want := v1alpha1.Mirrors{
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{"shop"}},
		}},
		MaxPerWorkload: new(int32(100)), MaxPerNamespace: new(int32(200)),
	}
	if spec := got.Best.Policy.Spec; got.Best.Name != "4 mirrors of 1 workload" || !reflect.DeepEqual(spec.Mirrors, want) ||
		*spec.CoverBiggestPod || spec.MinRate != "0%" || spec.Validate() != nil {
		t.Errorf("%s: %+v", got.Best.Name, spec)
	}
	if w := got.Best.Mirrors; len(w) != 1 || w[0].String() != "Deployment shop/web" || w[0].Slack != "4" {
		t.Errorf("mirrors %+v", w)
	}
	// With a limit, a node is missing for the fourth pod.
	goal.Policy.Spec.Mirrors.MaxPerWorkload = new(int32(3))
	limited, err := Search(t.Context(), h, largeNode, goal)
	if err != nil || limited.Best != nil || limited.Nearest == nil {
		t.Fatalf("best %+v, nearest %+v, error %v", limited.Best, limited.Nearest, err)
	}
	for _, c := range limited.Frontier {
		if len(c.Mirrors) > 0 && c.Mirrors[0].Slack > "3" {
			t.Errorf("%s with at most 3 for a workload", c.Name)
		}
	}
	// Pods of unknown workloads, as in the running controller, have no mirrors.
	for i := range h.Pods {
		h.Pods[i].Workload = 0
	}
	without, err := Search(t.Context(), h, largeNode, goal)
	if err != nil || without.Best != nil {
		t.Errorf("best %+v without mirrors, error %v", without.Best, err)
	}
}
