package whatif

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// nasty is what somebody may call a profile, a file or a reason.
const nasty = `<script>alert("1")</script>&'`

// sample is a result of made-up runs.
func sample(t *testing.T, scenarios, profiles, seeds, nodes int) *result.Result {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	r := &result.Result{
		APIVersion: result.APIVersion, Kind: result.Kind,
		Source:   result.Source{Name: "generated: " + nasty, Nodes: nodes, Pods: 8 * nodes},
		Assumed:  []string{"the limits are generated", nasty},
		Settings: result.Settings{StepSeconds: 60, TailSeconds: 3600, Metrics: result.Metrics{IntervalSeconds: 60, DelaySeconds: 60, WindowSeconds: 900}, Level: result.Level},
	}
	for i := range profiles {
		r.Profiles = append(r.Profiles, fmt.Sprintf("profile %d %s", i, nasty))
	}
	for i := range seeds {
		r.Seeds = append(r.Seeds, uint64(i+1))
	}
	for i := range scenarios {
		s := result.Scenario{Limits: fmt.Sprintf("ratio=%d", i+1), Usage: "cpu=bursts:mean=0.4;memory=beta:mean=0.5"}
		for j, name := range r.Profiles {
			p := result.Profile{Name: name}
			for _, seed := range r.Seeds {
				p.Runs = append(p.Runs, sampleRun(random, seed, j, nodes))
			}
			p.Runs[0].Course = sampleCourse(random, j, nodes)
			s.Profiles = append(s.Profiles, p)
		}
		if err := s.Compare(); err != nil {
			t.Fatal(err)
		}
		r.Scenarios = append(r.Scenarios, s)
	}
	return r
}

func sampleRun(random *rand.Rand, seed uint64, profile, nodes int) result.Run {
	shift := 1 + 0.03*float64(profile%3) - 0.02*float64(profile%2)
	some := func(scale float64) float64 { return scale * shift * (0.95 + 0.1*random.Float64()) }
	return result.Run{
		Seed: seed, Seconds: 7200, Scheduled: 8*nodes - 40, Unschedulable: 40,
		Reasons:         map[string]int{"Insufficient cpu": 30, nasty: 10},
		OverloadMinutes: some(1234), CPUOverloadMinutes: some(900), MemoryOverloadMinutes: some(334),
		ThrottledCoreSeconds: some(123456), LimitedCoreSeconds: 5e6,
		MemoryOverruns: int(some(200)), Victims: int(some(420)), NodesUsed: some(float64(nodes) / 2), NodesUsedPeak: nodes,
		CPULimitRatio:    result.Distribution{Mean: 1, P50: some(1.1), P95: some(1.6), Max: some(2.3)},
		MemoryLimitRatio: result.Distribution{Mean: 1, P50: some(0.7), P95: some(0.9), Max: some(1.2)},
		PendingSeconds:   result.Distribution{Mean: some(3), P95: some(40), Max: some(900)},
	}
}

func sampleCourse(random *rand.Rand, profile, nodes int) *result.Course {
	c := &result.Course{EverySeconds: 60}
	for i := range 240 {
		at := float64(i) / 240
		wave := 1 + math.Sin(12*at+float64(profile)/3)
		c.OverloadedNodes = append(c.OverloadedNodes, math.Round(wave*float64(nodes)/20+4*random.Float64()))
		c.OvercommittedNodes = append(c.OvercommittedNodes, math.Round(at*float64(nodes)*(0.7+0.04*float64(profile))))
		c.PendingPods = append(c.PendingPods, math.Round(40*at*wave))
		c.NodesUsed = append(c.NodesUsed, math.Round(min(4*at, 1)*float64(nodes)))
	}
	for range nodes - nodes/20 {
		spread := 0.2 + 0.1*float64(profile%4)
		c.CPULimitRatios = append(c.CPULimitRatios, math.Round(1000*(1+spread*random.NormFloat64()))/1000)
		c.MemoryLimitRatios = append(c.MemoryLimitRatios, math.Round(1000*(0.7+spread*random.Float64()))/1000)
	}
	slices.Sort(c.CPULimitRatios)
	slices.Reverse(c.CPULimitRatios)
	return c
}
