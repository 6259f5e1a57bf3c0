package demo_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
)

// testFleet expects the decisions of the stories in both API versions.
func testFleet(t *testing.T, env *demo.Environment) {
	d := fleet.New(env)
	t.Cleanup(d.Stop)
	results, err := d.Run(t.Context(), func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Check(results); err != nil {
		t.Error(err)
	}
	moved := map[string]int{}
	var times []float64
	for _, r := range results {
		if r.Fleet.Seconds > 0 {
			times = append(times, r.Fleet.Seconds)
		}
		if r.Fleet.Seconds > 0 && r.Fleet.Step != "created" {
			moved[r.Profile+" "+r.Fleet.Placement]++
		}
	}
	// follow moves once, where-most-is moves away and back, the others stay.
	want := map[string]int{"v1alpha1 follow": 1, "v1beta1 follow": 1, "v1alpha1 where-most-is": 2, "v1beta1 where-most-is": 2}
	if len(results) != 2*14 || !maps.Equal(moved, want) {
		t.Errorf("%d results, moved %v, want %v", len(results), moved, want)
	}
	slices.Sort(times)
	// The median: single decisions may be delayed by a short overload of the machine.
	if median := times[len(times)/2]; median > fleet.FollowsWithin.Seconds() {
		t.Errorf("decisions took %v s", times)
	}
	if err := d.Play(t.Context()); err != nil {
		t.Fatal(err)
	}
}
