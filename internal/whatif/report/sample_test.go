package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// markup is a name of a profile, a file or a reason that must be escaped.
const markup = `<script>alert("1")</script>&'`

// sample returns a result with generated runs.
func sample(t *testing.T, profiles, seeds, nodes int) *result.Result {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	r := &result.Result{
		APIVersion: result.APIVersion, Kind: result.Kind,
		Source:  result.Source{Name: "generated: " + markup, Nodes: nodes, Pods: 8 * nodes},
		Assumed: []string{"the limits are generated", markup},
		Settings: result.Settings{
			StepSeconds: 60, TailSeconds: 3600, Level: result.Level,
			Metrics: result.Metrics{IntervalSeconds: 60, DelaySeconds: 60, WindowSeconds: 900},
		},
	}
	for i := range profiles {
		r.Profiles = append(r.Profiles, fmt.Sprintf("profile %d %s", i, markup))
	}
	for i := range seeds {
		r.Seeds = append(r.Seeds, uint64(i+1))
	}
	r.Scenario.Limits, r.Scenario.Usage = "ratio=4", "cpu=bursts:mean=0.4;memory=beta:mean=0.5"
	for i, name := range r.Profiles {
		p := result.Profile{Name: name}
		for _, seed := range r.Seeds {
			p.Runs = append(p.Runs, sampleRun(random, seed, i, nodes))
		}
		p.Runs[0].TimeSeries = sampleTimeSeries(random, i, nodes)
		r.Scenario.Profiles = append(r.Scenario.Profiles, p)
	}
	r.Scenario.Compare()
	r.Conclude()
	return r
}

func sampleRun(random *rand.Rand, seed uint64, profile, nodes int) result.Run {
	shift := 1 + 0.03*float64(profile%3) - 0.02*float64(profile%2)
	jitter := func(scale float64) float64 { return scale * shift * (0.95 + 0.1*random.Float64()) }
	return result.Run{
		Seed: seed, Seconds: 7200, Scheduled: 8*nodes - 40,
		Reasons: map[string]int{"Insufficient cpu": 30, markup: 10},
		Outcome: result.Outcome{
			Unschedulable: 40, OverloadMinutes: jitter(1234), CPUOverloadMinutes: jitter(900), MemoryOverloadMinutes: jitter(334),
			ThrottledCoreSeconds: jitter(123456), LimitedCoreSeconds: 5e6, MemoryOverruns: int(jitter(200)), Victims: int(jitter(420)),
			NodesUsed: jitter(float64(nodes) / 2), NodesUsedPeak: nodes,
			CPULimitRatio:    result.Distribution{Mean: 1, P50: jitter(1.1), P95: jitter(1.6), Max: jitter(2.3)},
			MemoryLimitRatio: result.Distribution{Mean: 1, P50: jitter(0.7), P95: jitter(0.9), Max: jitter(1.2)},
			PendingSeconds:   result.Distribution{Mean: jitter(3), P95: jitter(40), Max: jitter(900)},
		},
	}
}

func sampleTimeSeries(random *rand.Rand, profile, nodes int) *result.TimeSeries {
	c := &result.TimeSeries{EverySeconds: 60}
	for i := range 240 {
		at := float64(i) / 240
		wave := 1 + math.Sin(12*at+float64(profile)/3)
		c.OverloadedNodes = append(c.OverloadedNodes, math.Round(wave*float64(nodes)/20+4*random.Float64()))
		c.OvercommittedNodes = append(c.OvercommittedNodes, math.Round(at*float64(nodes)*(0.7+0.04*float64(profile))))
		c.PendingPods = append(c.PendingPods, math.Round(40*at*wave))
		c.NodesUsed = append(c.NodesUsed, math.Round(min(4*at, 1)*float64(nodes)))
	}
	return c
}
