package predict

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestTrialIsRarelyWrong has errors of the model that are no larger than those of requests: equal in distribution, with any
// distribution. On average there is at most one alarm in 1,000 windows: 100 trials of 200 windows, 20,000 windows, may have 20 alarms.
// With 300 other seeds each, they had at most 6.
func TestTrialIsRarelyWrong(t *testing.T) {
	for name, draw := range map[string]func(r *rand.Rand) float64{
		"similar errors": func(r *rand.Rand) float64 { return 0.9 + 0.2*r.Float64() },
		"one or none":    func(r *rand.Rand) float64 { return float64(r.IntN(2)) },
		"heavy tails":    func(r *rand.Rand) float64 { return 1 / (1e-6 + r.Float64()) },
	} {
		r := rand.New(rand.NewPCG(9, 10))
		wrong := 0
		for range 100 {
			var trial trial
			for range 200 {
				trial.bet(draw(r), draw(r))
				if trial.worse {
					wrong++
					break
				}
			}
		}
		if wrong > 20 {
			t.Errorf("%s: an alarm in %d of 100 trials of 200 windows", name, wrong)
		}
	}
}

// TestTrialDecides has one side with errors that are never smaller and at least three times as large: |d| is at least 0.5, the evidence
// grows by 1.375 a window and reaches 1,000 after 22 windows, or falls by 0.625 and reaches 1 after 15.
func TestTrialDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trial trial
		for i := range rapid.IntRange(1, 5).Draw(t, "changes") {
			for window := 0; trial.worse == (i%2 == 1); window++ {
				large, small := rapid.Float64Range(3, 1e9).Draw(t, "large"), rapid.Float64Range(0, 1).Draw(t, "small")
				if i%2 == 1 {
					large, small = small, large
				}
				if trial.bet(large, small); window > 22 {
					t.Fatalf("change %d: not decided after %d windows", i, window)
				}
			}
		}
	})
}

// TestComparisonsAreIndependent has readings every 15 seconds with a window of a minute: one comparison in 15 minutes.
func TestComparisonsAreIndependent(t *testing.T) {
	var trial trial
	for second := 0.0; second <= 1800; second += 15 {
		trial.compare(&Reading{Second: 1e6 + second, Window: 60}, 3, 1)
	}
	if want := 1.375 * 1.375 * 1.375; trial.evidence != want {
		t.Errorf("evidence %v, want %v after three comparisons", trial.evidence, want)
	}
}

// TestWorse has exporters that report the same usage for all pods, of 500, while the pods use what they request, 200 or
// 1,800: by the model all nodes are equal, by requests they are as they are measured. The alarm
// begins, and ends when the exporters are right and all pods use 500.
func TestWorse(t *testing.T) {
	isBroken := true
	l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: DefaultHalfLife}), podStates{}
	second := 0.0
	observe := func() *Model {
		second += 60
		nodes := make([]NodeReading, 10)
		for i := range nodes {
			n := &nodes[i]
			n.Name = string(rune('a' + i))
			for j := range 10 {
				p := PodReading{State: states.of(n.Name + string(rune('a'+j))), Seen: 1, IsUsed: true}
				workload, request := "small", 200.0
				if i%2 == 0 {
					workload, request = "large", 1800
				}
				p.Workload = newTenants().key(workload)
				p.Amounts[CPU].Request, p.Used[CPU] = request, 500
				if isBroken {
					n.Measured[CPU].Mean += request
				} else {
					n.Measured[CPU].Mean += 500
				}
				n.Pods = append(n.Pods, p)
			}
			n.Measured[CPU].Known = true
		}
		return l.Observe(&Reading{Second: second, Window: 60, Nodes: nodes})
	}
	wait := func(want bool) {
		for range 24 * 60 {
			if model := observe(); model.IsWorse() == want {
				return
			}
		}
		t.Fatalf("is worse: %t after a day, want %t", !want, want)
	}
	wait(true)
	isBroken = false
	wait(false)
}
