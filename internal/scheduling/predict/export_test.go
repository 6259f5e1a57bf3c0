package predict

import (
	"math"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// TestExportAndImport checks that a learner that imports the histories of another learner expects the same usage of the pods of
// each workload, without measurements of its own.
func TestExportAndImport(t *testing.T) {
	options := Options{HistoryWeight: 1, HalfLife: DefaultHalfLife}
	amounts := [Resources]Amount{CPU: {Request: 1000}, Memory: {}}
	pods := func(measured bool, states podStates) (all []PodReading) {
		for i, name := range []string{"half", "half", "tenth"} {
			key := resources.Workload{Namespace: "default", Kind: "Deployment", Name: name}.Key()
			fraction := map[string]float64{"half": 0.5, "tenth": 0.1}[name]
			all = append(all, PodReading{
				Declared: Declared{Workload: key, Amounts: amounts}, State: states.of(string(rune('a' + i))), Seen: 1,
				Used: [Resources]float64{1000 * fraction, fraction * (1 << 30)}, IsUsed: measured,
			})
		}
		return all
	}
	first, states := NewLearner(options), podStates{}
	var learned *Model
	for i := range 100 {
		learned = first.Observe(&Reading{Second: float64(60 * i), Nodes: []NodeReading{{Name: "n", Pods: pods(true, states)}}})
	}
	exported := first.Export()
	if len(exported) != 2 {
		t.Fatalf("%d workloads, want 2", len(exported))
	}
	for _, age := range []float64{0, DefaultHalfLife} {
		second := NewLearner(options)
		imported := second.Import(exported, 99*60, 99*60+age)
		restored := second.Observe(&Reading{Second: 101 * 60, Nodes: []NodeReading{{Name: "n", Pods: pods(false, podStates{})}}})
		// The older the history, the lower the number of pods, and the closer the expectation to the mean of all workloads.
		tolerance := 0.03 + 0.12*age/DefaultHalfLife
		for _, name := range []string{"half", "tenth"} {
			key := resources.Workload{Namespace: "default", Kind: "Deployment", Name: name}.Key()
			want := learned.Estimate(key, CPU, amounts[CPU].Request)
			for when, model := range map[string]*Model{"before": imported, "after": restored} {
				if got := model.Estimate(key, CPU, amounts[CPU].Request); got.Pods == 0 || math.Abs(want.Mean-got.Mean) > 1000*tolerance {
					t.Errorf("%s, %.0f s old, %s the first reading: %+v, want about %+v", name, age, when, got, want)
				}
			}
			if again := second.Export(); len(again) != 2 {
				t.Errorf("after %.0f s: %d workloads exported again, want 2", age, len(again))
			}
		}
	}
	// Half as many pods count after the half-life.
	second := NewLearner(options)
	second.Import(exported, 0, DefaultHalfLife)
	for _, e := range second.Export() {
		for _, before := range exported {
			if e.Name == before.Name && math.Abs(e.CPU.Pods-before.CPU.Pods/2) > 1e-9 {
				t.Errorf("%s: %v pods, want half of %v", e.Name, e.CPU.Pods, before.CPU.Pods)
			}
		}
	}
}

// TestImportIgnoresImpossibleValues checks that histories with impossible values are ignored, and that existing histories are kept.
func TestImportIgnoresImpossibleValues(t *testing.T) {
	l := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600})
	pastOf := func(u PastUsage) []Past { return []Past{{Namespace: "default", Kind: "Job", Name: "a", CPU: u}} }
	for _, u := range []PastUsage{
		{Seconds: 60, Mean: 1, Request: 1},
		{Pods: 1, Mean: 1, Request: 1},
		{Pods: 1, Seconds: 60, Mean: -1, Request: 1},
		{Pods: math.NaN(), Seconds: 60, Mean: 1, Request: 1},
		{Pods: 1, Seconds: 60, Mean: math.NaN(), Request: 1},
		{Pods: 1, Seconds: 60, Mean: 1, Request: math.Inf(1)},
	} {
		l.Import(pastOf(u), 0, 0)
		if got := l.Export(); len(got) != 0 {
			t.Errorf("%+v: exported %+v", u, got)
		}
	}
	for _, mean := range []float64{0.5, 0.9} {
		l.Import(pastOf(PastUsage{Pods: 1, Seconds: 60, Mean: mean, Request: 1}), 3600, 0)
	}
	if got := l.Export(); len(got) != 1 || got[0].CPU != (PastUsage{Pods: 1, Seconds: 60, Mean: 0.5, Request: 1}) {
		t.Errorf("exported %+v, want what was imported first", got)
	}
}
