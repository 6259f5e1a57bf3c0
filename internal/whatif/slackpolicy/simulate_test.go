package slackpolicy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const never = math.MaxInt64

// smallNode is a node of 4 CPUs and 16 GiB that boots in 120 s; the autoscaler looks every 10 s.
var smallNode = NodeType{
	Allocatable: resources.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 110}, Boot: 120, Cost: 1, Max: 1000,
	Loop: autoscaler.DefaultLoop,
}

// arrive returns n pods of 1 CPU and 4 GiB that arrive at a second.
func arrive(n int, at, duration int64) (pods []Pod) {
	for range n {
		pods = append(pods, Pod{Arrival: at, Duration: duration, Requests: requestsOf(1000, 4<<30)})
	}
	return pods
}

func TestSimulate(t *testing.T) {
	for name, tc := range map[string]struct {
		pods  []Pod
		rate  string
		waits result.Waits
		cost  float64
		large int
	}{
		// 4 pods fill a node. 2 pods arrive at 5: a node is added at the pass at 10 and ready at 130, after 125 s.
		// Node 1 for 3600 s, node 2 from 10 on: 7190 s.
		"without slack": {pods: append(arrive(4, -1, never), arrive(2, 5, never)...), waits: result.Waits{125: 2}, cost: 7190.0 / 3600},
		// 50% of 4 pods is 2 pods, one of them the head: a second node from the start, with capacity for 4.
		// With 6 pods, 3 are required: 2 + 1 on a third node, from 10 on.
		"with slack": {pods: append(arrive(4, -1, never), arrive(2, 5, never)...), rate: "50%", waits: result.Waits{0: 2}, cost: 3*1 - 10.0/3600},
		"a pod that is larger than a node": {
			pods: append(arrive(1, -1, never), Pod{Arrival: 5, Duration: never, Requests: requestsOf(5000, 1)}), waits: result.Waits{}, cost: 1, large: 1,
		},
		// Node 2 is added at 10 and ready at 130, with a pod on a quarter of it, which fits on no other node, until 295: it is unneeded
		// from the pass at 300 on, and removed 600 s later, at 900.
		"a node is removed": {
			pods: append(arrive(4, -1, never), arrive(1, 5, 165)...), waits: result.Waits{125: 1}, cost: 1 + 890.0/3600,
		},
		// Pods that never get a node wait until the end.
		"the end": {pods: append(arrive(4, -1, never), arrive(1, 3550, 10)...), waits: result.Waits{50: 1}, cost: 1 + 50.0/3600},
	} {
		t.Run(name, func(t *testing.T) {
			var policy *v1alpha1.ResourceSlack
			if tc.rate != "" {
				policy = newPolicy(tc.rate)
			}
			got, err := Simulate(&History{Seconds: 3600, Pods: tc.pods}, smallNode, policy)
			must.Succeed(t, err)
			if fmt.Sprint(got.Waits) != fmt.Sprint(tc.waits) || math.Abs(got.Cost-tc.cost) > 1e-9 || got.TooLarge != tc.large {
				t.Errorf("waits %v, cost %v, %d too large; want %v, %v, %d", got.Waits, got.Cost, got.TooLarge, tc.waits, tc.cost, tc.large)
			}
		})
	}
}

// TestSimulateSlots checks that as many nodes are added as the slots of pods require: four pods without requests, two on each node, wait
// for two nodes at the same time. A node type without slots is invalid.
func TestSimulateSlots(t *testing.T) {
	node := smallNode
	node.Allocatable.Pods = 2
	h := &History{Seconds: 3600, Pods: slices.Repeat([]Pod{{Arrival: 5, Duration: never, Requests: requestsOf(0, 0)}}, 4)}
	got, err := Simulate(h, node, nil)
	if want := (result.Waits{125: 4}); err != nil || fmt.Sprint(got.Waits) != fmt.Sprint(want) {
		t.Errorf("waits %v, error %v; want %v", got.Waits, err, want)
	}
	node.Allocatable.Pods = 0
	if _, err := Simulate(h, node, nil); err == nil || !strings.Contains(err.Error(), "pod slots") {
		t.Errorf("no slots: error %v", err)
	}
}

// TestSimulateConserves checks random histories: each pod that fits a node is counted once, nodes are never
// overcommitted, and equal input gives equal output.
func TestSimulateConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &History{Seconds: 7200, Start: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
		for range rapid.IntRange(0, 60).Draw(t, "pods") {
			h.Pods = append(h.Pods, Pod{
				Arrival:  rapid.Int64Range(-1, 7199).Draw(t, "arrival"),
				Duration: rapid.SampledFrom([]int64{0, 60, 900, 5000, never}).Draw(t, "duration"),
				Requests: requestsOf(
					rapid.SampledFrom([]int64{0, 500, 1000, 4000, 5000}).Draw(t, "cpu"), rapid.Int64Range(0, 17).Draw(t, "memory")<<30,
				),
			})
		}
		slices.SortStableFunc(h.Pods, func(a, b Pod) int { return int(a.Arrival - b.Arrival) })
		policy := newPolicy(rapid.SampledFrom([]string{"0%", "30%", "200%"}).Draw(t, "rate"), func(s *v1alpha1.ResourceSlackSpec) {
			s.Schedules = []v1alpha1.Schedule{{From: "08:30", To: "09:00", MinRate: "100%"}}
		})
		got, err := Simulate(h, smallNode, policy)
		again, _ := Simulate(h, smallNode, policy)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(again) {
			t.Fatalf("error %v, %v and then %v", err, got, again)
		}
		running, fitting := int64(0), int64(0)
		for _, p := range h.Pods {
			switch {
			case !p.Requests.FitsIn(smallNode.Allocatable):
			case p.Arrival < 0:
				running++
			default:
				fitting++
			}
		}
		if got.Waits.Pods() != fitting || int64(got.TooLarge) != int64(len(h.Pods))-fitting-running {
			t.Fatalf("%d pods, %d too large; want %d pods", got.Waits.Pods(), got.TooLarge, fitting)
		}
	})
}

// week returns a week of a cluster of about a number of nodes of (16, 64 GiB): pods that stay, and on working days from 8 to 9 h,
// every ten minutes, bursts of a tenth of the pods that live ten minutes, and few pods otherwise.
func week(nodes int) (*History, NodeType) {
	random := rand.New(rand.NewPCG(1, 1))
	h := &History{Seconds: 7 * 86400, Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)}
	stay := nodes * 14
	h.Pods = arrive(stay, -1, never)
	for minute := range int64(7 * 24 * 60) {
		n := random.IntN(3) * nodes / 100
		if day, hour := minute/1440, minute/60%24; day < 5 && hour == 8 && minute%10 == 0 {
			n = stay/10 + random.IntN(stay/20)
		}
		h.Pods = append(h.Pods, arrive(n, minute*60+random.Int64N(60), 600)...)
	}
	node := smallNode
	node.Allocatable.CPU, node.Allocatable.Memory = 16_000, 64<<30
	return h, node
}

// TestRecommend checks that the schedule of the bursts is found, reaches the goal in a simulation of its own, and costs less than
// the cheapest rate.
func TestRecommend(t *testing.T) {
	h, node := week(20)
	node.Interval = 60
	goal := Goal{Percent: 99, Wait: 5 * time.Second, Policy: newPolicy("10%")}
	got, err := Search(t.Context(), h, node, goal)
	must.Succeed(t, err)
	if got.Best == nil || len(got.Best.Policy.Spec.Schedules) == 0 {
		t.Fatalf("best %+v", got.Best)
	}
	if schedule := got.Best.Policy.Spec.Schedules[0]; schedule.Days != "Mon-Fri" || schedule.From > "08:00" || schedule.To < "09:00" {
		t.Errorf("schedule %s does not include the bursts", schedule)
	}
	cheapest := math.Inf(1) // of the rates
	for rate := range 200 {
		c, err := Simulate(h, node, newPolicy(fmt.Sprint(rate, "%")))
		must.Succeed(t, err)
		if c.Waits.Percentile(99) <= goal.Wait {
			cheapest = c.Cost
			break
		}
	}
	if ratio := got.Best.Cost / cheapest; ratio > 0.95 {
		t.Errorf("%s costs %.3f of the cheapest rate, want less than 0.95", got.Best.Name, ratio)
	}
	alone, err := Simulate(h, node, got.Best.Policy)
	if wait := alone.Waits.Percentile(99); err != nil || wait > goal.Wait || alone.Cost > got.Best.Cost+1e-6 ||
		got.None.Waits.Percentile(99) <= goal.Wait {
		t.Errorf("wait %s, cost %v, error %v; without slack %s", wait, alone.Cost, err, got.None.Waits.Percentile(99))
	}
	for i := 1; i < len(got.Frontier); i++ {
		before, after := &got.Frontier[i-1], &got.Frontier[i]
		if after.Cost < before.Cost || after.Waits.Percentile(99) >= before.Waits.Percentile(99) {
			t.Errorf("%s is on the frontier after %s", after.Name, before.Name)
		}
	}
	got.Best.Policy.Spec.Default()
	if err := got.Best.Policy.Spec.Validate(); err != nil {
		t.Error(err)
	}
}

// TestRecommendWithoutNeed checks histories without waiting pods, and waits that no slack reaches.
func TestRecommendWithoutNeed(t *testing.T) {
	goal := Goal{Percent: 99, Wait: 5 * time.Second, Policy: newPolicy("10%")}
	quiet := &History{Seconds: 3600, Pods: append(arrive(2, -1, never), arrive(1, 60, never)...)}
	got, err := Search(t.Context(), quiet, smallNode, goal)
	if err != nil || got.Best == nil || got.Best.Policy != nil || len(got.Candidates) != 1 {
		t.Errorf("best %+v, error %v; want no slack", got.Best, err)
	}
	limited := smallNode
	limited.Max = 1
	full := &History{Seconds: 3600, Pods: append(arrive(4, -1, never), arrive(2, 60, never)...)}
	if got, err = Search(t.Context(), full, limited, goal); err != nil || got.Best != nil || got.Nearest == nil {
		t.Fatalf("best %+v, nearest %+v, error %v; want the nearest only", got.Best, got.Nearest, err)
	}
}

// BenchmarkRecommend searches a policy for a week of 200 nodes.
func BenchmarkRecommend(b *testing.B) {
	h, node := week(200)
	b.ReportMetric(float64(len(h.Pods)), "pods")
	for b.Loop() {
		if _, err := Search(b.Context(), h, node, Goal{Percent: 99, Wait: 5 * time.Second, Policy: newPolicy("10%")}); err != nil {
			b.Fatal(err)
		}
	}
}

// newPolicy returns a policy with changes.
func newPolicy(rate string, changes ...func(*v1alpha1.ResourceSlackSpec)) *v1alpha1.ResourceSlack {
	policy := &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ResourceSlackSpec{MinRate: rate, Pool: v1alpha1.Pool{NodeSelector: map[string]string{"pool": "web"}}},
	}
	policy.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{}
	for _, change := range changes {
		change(&policy.Spec)
	}
	return policy
}

// requestsOf returns the requests of a pod for CPU and memory, in bytes.
func requestsOf(milliCPU, memory int64) resources.Amounts {
	return resources.Amounts{CPU: milliCPU, Memory: memory, Pods: 1}
}

// amountOf returns an amount of CPU and memory.
func amountOf(cpu, memory string) *v1alpha1.Amount {
	return &v1alpha1.Amount{CPU: new(resource.MustParse(cpu)), Memory: new(resource.MustParse(memory))}
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
