package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// tenants is a cluster of 10 nodes of 64 cores, with a learner. Each of 20 workloads has 10 pods that request 1000 and use about 500.
type tenants struct {
	learner *Learner
	states  podStates
	random  *rand.Rand
	second  float64
	// request and used are the request and usage of the pods of each workload.
	request func(workload string) float64
	used    func(workload string, pod int) float64
	// more are further workloads, of 12 pods each.
	more []string
}

func newTenants() *tenants {
	return &tenants{
		learner: NewLearner(Options{HistoryWeight: 1, HalfLife: DefaultHalfLife}), states: podStates{},
		random:  rand.New(rand.NewPCG(7, 8)),
		request: func(string) float64 { return 1000 },
		used:    func(string, int) float64 { return 500 },
	}
}

func (c *tenants) key(workload string) resources.WorkloadKey {
	return resources.Workload{Namespace: "default", Kind: "ReplicaSet", Name: workload}.Key()
}

// observe returns the model after some readings, one a minute.
func (c *tenants) observe(readings int) *Model {
	var model *Model
	for range readings {
		c.second += 60
		nodes := make([]NodeReading, 10)
		for i := range nodes {
			nodes[i] = NodeReading{Name: fmt.Sprint(i), Capacity: [Resources]float64{64_000, 1 << 40}}
			nodes[i].Measured[CPU].Known = true
		}
		pods := 0
		add := func(workload string, count int) {
			for i := range count {
				name := fmt.Sprint(workload, " ", i)
				p := PodReading{State: c.states.of(name), Seen: 1, IsUsed: true, Created: 1}
				p.Workload, p.Amounts[CPU].Request = c.key(workload), c.request(workload)
				p.Used[CPU] = c.used(workload, i) * (0.9 + 0.2*c.random.Float64())
				node := &nodes[pods%len(nodes)]
				node.Measured[CPU].Mean += min(p.Used[CPU], 64_000)
				node.Pods = append(node.Pods, p)
				pods++
			}
		}
		for i := range 20 {
			add(fmt.Sprint("app-", i), 10)
		}
		for _, workload := range c.more {
			add(workload, 12)
		}
		model = c.learner.Observe(&Reading{Second: c.second, Window: 60, Nodes: nodes})
	}
	return model
}

// TestNoPodSteersTheOthers has pods that use far more than they can or than they request. What is expected of the pods of other
// workloads, known and unknown, remains within a tenth.
func TestNoPodSteersTheOthers(t *testing.T) {
	for name, disturb := range map[string]func(c *tenants){
		"a pod reports 1,000,000 cores in three readings": func(c *tenants) {
			c.used = func(workload string, pod int) float64 {
				if workload == "app-0" && pod == 0 && c.second > 60*60 && c.second <= 63*60 {
					return 1e9
				}
				return 500
			}
		},
		"a pod reports 60 cores, which its node has": func(c *tenants) {
			c.used = func(workload string, pod int) float64 {
				if workload == "app-0" && pod == 0 {
					return 60_000
				}
				return 500
			}
		},
		"a tenant requests 1m and uses 1 core": func(c *tenants) {
			c.more = []string{"tenant"}
			c.request = func(workload string) float64 {
				if workload == "tenant" {
					return 1
				}
				return 1000
			}
			c.used = func(workload string, _ int) float64 {
				if workload == "tenant" {
					return 1000
				}
				return 500
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			quiet, disturbed := newTenants(), newTenants()
			disturb(disturbed)
			want, got := quiet.observe(70), disturbed.observe(70)
			for _, workload := range []string{"app-5", "never seen"} {
				a, b := want.Estimate(quiet.key(workload), CPU, 1000), got.Estimate(disturbed.key(workload), CPU, 1000)
				if math.Abs(b.Mean/a.Mean-1) > 0.1 {
					t.Errorf("pods of %s are expected to use %.0f, undisturbed %.0f", workload, b.Mean, a.Mean)
				}
				if ratio := math.Sqrt((b.Unknown + b.Pod + b.Time) / (a.Unknown + a.Pod + a.Time)); ratio > 2 {
					t.Errorf("the deviation of pods of %s is %.1f times what it is undisturbed", workload, ratio)
				}
			}
			if pod := got.Estimate(disturbed.key("tenant"), CPU, 1); len(disturbed.more) > 0 && math.Abs(pod.Mean-1000) > 200 {
				t.Errorf("pods of the tenant are expected to use %.0f, want about 1000", pod.Mean)
			}
		})
	}
}

// TestHistorySurvivesRequests halves the requests of all pods, at first of running ones, then of new ones: what they are expected
// to use remains.
func TestHistorySurvivesRequests(t *testing.T) {
	c := newTenants()
	before := c.observe(60).Estimate(c.key("app-3"), CPU, 1000).Mean
	c.request = func(string) float64 { return 500 }
	if resized := c.observe(1).Estimate(c.key("app-3"), CPU, 500).Mean; math.Abs(resized/before-1) > 0.1 {
		t.Errorf("after a resize in place %.0f, before %.0f", resized, before)
	}
	c.states = podStates{}
	if rolled := c.observe(1).Estimate(c.key("app-3"), CPU, 500).Mean; math.Abs(rolled/before-1) > 0.1 {
		t.Errorf("after a rollout %.0f, before %.0f", rolled, before)
	}
	c.request = func(string) float64 { return 0 }
	c.states = podStates{}
	if without := c.observe(1).Estimate(c.key("app-3"), CPU, 0).Mean; math.Abs(without/before-1) > 0.1 {
		t.Errorf("after the requests were removed %.0f, before %.0f", without, before)
	}
}

// TestEachPodCountsOnce restarts the learner ten times, with the same pods and after different times: each workload has as many pods
// as before, and what it is expected to use remains.
func TestEachPodCountsOnce(t *testing.T) {
	c := newTenants()
	before := c.observe(60).Estimate(c.key("app-3"), CPU, 1000)
	for restart := range 10 {
		exported, saved := c.learner.Export(), c.second
		c.second += 600 * float64(restart)
		c.learner, c.states = NewLearner(c.learner.options), podStates{}
		c.learner.Import(exported, saved, c.second)
		after := c.observe(30).Estimate(c.key("app-3"), CPU, 1000)
		if math.Abs(after.Pods-before.Pods) > 0.01*before.Pods || math.Abs(after.Mean/before.Mean-1) > 0.05 {
			t.Fatalf(
				"restart %d: %.2f pods that use %.0f, before %.2f and %.0f", restart+1, after.Pods, after.Mean, before.Pods, before.Mean,
			)
		}
	}
}
