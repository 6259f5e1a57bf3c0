package compare

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestContinuous verifies that a comparison over a recording, without options, finds the difference between two replays of it in one piece:
// of pods that arrive at the start and stay, of pods that run for an hour, and of pods that run for a third of the time.
func TestContinuous(t *testing.T) {
	for name, generated := range map[string]string{
		"stay": "churn=43200,life=2592000", "churn": "churn=43200,life=3600", "roll": "churn=43200,life=14400",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name+recording.Extension)
			source := generate.Source{
				Generate: "nodes=8,shapes=8x32,pods=240,fill=0.95,best-effort=0.2," + generated,
				Usage:    "bursts:mean=0.7",
			}
			must.Succeed(t, generate.Record(file, source, 1))
			runs := map[string]*result.Run{}
			for _, profile := range []string{"default", "predicted"} {
				run, err := jobOver(t, file, profile).Run(t.Context(), nil)
				must.Succeed(t, err)
				runs[profile] = &run
			}
			plan, err := NewPlan(t.Context(), Options{
				Profiles: []string{"default", "predicted"}, Seed: 1, Seeds: 1, Metrics: replay.DefaultMetrics, Warn: ignore,
				Source: generate.Source{Source: recording.Source{Recording: file}, Usage: "bursts:mean=0.7"},
			})
			must.Succeed(t, err)
			compared, err := plan.Run(t.Context(), pool.Run)
			must.Succeed(t, err)
			before, after := runs["default"].OverloadMinutes, runs["predicted"].OverloadMinutes
			d := compared.Scenario.Profiles[1].Figures["overloadMinutes"].Difference
			if math.Abs(d.Mean-(after-before)) > 1e-6 || after >= before || d.Interval == nil || d.Less+d.Equal+d.More != maxParts {
				t.Errorf("difference %+v, interval %+v, want %v - %v", d, d.Interval, after, before)
			}
			sum := 0.0
			for _, part := range compared.Scenario.Profiles[1].Runs[0].Parts {
				sum += part.OverloadMinutes
			}
			if math.Abs(sum-after) > 1e-6 {
				t.Errorf("the parts have %v, want %v", sum, after)
			}
		})
	}
}

// TestHistoryBeforePart verifies that the scheduler of a part of a recording knows the workloads that ran before it: with the recorded
// placements until the part, it has learned the same as a scheduler that ran from the start of the recording, within 5 %: means over pods
// weigh pods that run at the start of the part as those that ended before.
func TestHistoryBeforePart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r"+recording.Extension)
	must.Succeed(t, generate.Record(file, generate.Source{
		Generate: "nodes=4,shapes=8x32,pods=80,fill=0.7,best-effort=0.3,churn=14400,life=3600", Usage: "bursts:mean=0.7",
	}, 1))
	learned := func(span string) map[string]float64 {
		job := jobOver(t, file+span, "predicted")
		job.Source.Measured, job.Continued = true, true
		run, err := job.Run(t.Context(), nil)
		must.Succeed(t, err)
		means := map[string]float64{}
		for _, past := range run.Recorded.Left.History {
			means[past.Namespace+" "+past.Kind+" "+past.Name] = past.CPU.Mean
		}
		return means
	}
	whole, late := learned(""), learned(",from=3h")
	if len(whole) == 0 || len(late) != len(whole) {
		t.Fatalf("%d workloads are known after the part, %d after the whole", len(late), len(whole))
	}
	for key, mean := range whole {
		if math.Abs(late[key]-mean) > 0.05*mean {
			t.Errorf("%v: mean %v, want %v", key, late[key], mean)
		}
	}
}
