package demo

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
)

// The stories go as their files tell, in both forms; then the page shows for each
// placement how the fleet stands.
func testFleet(t *testing.T, d *Demo) {
	if view, err := d.viewFleet(t.Context()); view != nil || err != nil {
		t.Errorf("before the scenario the page shows %v, %v", view, err)
	}
	results, err := d.RunFleet(t.Context(), func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(results); err != nil {
		t.Error(err)
	}
	moved := map[string]int{}
	var times []float64
	for _, r := range results {
		if r.Fleet.Seconds > 0 {
			times = append(times, r.Fleet.Seconds)
		}
		if r.Fleet.Seconds > 0 && r.Fleet.Step != made {
			moved[r.Profile+" "+r.Fleet.Placement]++
		}
	}
	// follow moves once, where-most-is there and back, the others stay.
	want := map[string]int{"v1alpha1 follow": 1, "v1beta1 follow": 1, "v1alpha1 where-most-is": 2, "v1beta1 where-most-is": 2}
	if len(results) != 2*14 || !maps.Equal(moved, want) {
		t.Errorf("%d results, moved %v, want %v", len(results), moved, want)
	}
	slices.Sort(times)
	// One of them may have met a busy moment of the machine.
	if median := times[len(times)/2]; median > followsWithin.Seconds() {
		t.Errorf("decisions took %v s", times)
	}
	testFleetProbe(t, d.hub.Load())
	stackOfOne(t, d)
	if err := d.leaveFleet(t.Context()); err != nil {
		t.Fatal(err)
	}
	view, err := d.view(t.Context())
	if err != nil || view.Fleet == nil || len(view.Fleet.Placements) != 6 {
		t.Errorf("the page shows %+v, %v; want 6 placements", view.Fleet, err)
	}
}

// The arithmetic of examples/placement/1-largest-ratios, with 100 of Steady for
// those chosen. The fleet is as it was in the beginning.
func stackOfOne(t *testing.T, d *Demo) {
	h := d.hub.Load()
	if err := h.apply(t.Context(), placementFile("1-largest-ratios", "v1beta1")); err != nil {
		t.Fatal(err)
	}
	want := []string{"cluster2", "cluster4", "cluster6"}
	err := h.await(t.Context(), "the placement to be decided", func(ctx context.Context) (bool, error) {
		chosen, err := h.chosen(ctx, "largest-ratios")
		return slices.Equal(chosen, want), err
	})
	if err != nil {
		t.Fatal(err)
	}
	view, err := d.viewFleet(t.Context())
	if err != nil || len(view.Placements) != 1 {
		t.Fatal(view, err)
	}
	totals := map[string]int64{}
	for _, cluster := range view.Placements[0].Clusters {
		totals[cluster.Name] = cluster.Total
		if cluster.Chosen != slices.Contains(want, cluster.Name) {
			t.Errorf("%s is marked as chosen: %t", cluster.Name, cluster.Chosen)
		}
	}
	wantTotals := map[string]int64{"cluster6": 370, "cluster2": 320, "cluster4": 280, "cluster1": 170, "cluster3": 140, "cluster5": 20}
	if !maps.Equal(totals, wantTotals) {
		t.Errorf("totals %v, want %v", totals, wantTotals)
	}
	best := view.Placements[0].Clusters[0]
	parts := []page.LivePart{
		{Prioritizer: "Balance", Weight: 1, Score: 100},
		{Prioritizer: "Steady", Weight: 1, Score: 100},
		{Prioritizer: "ResourceRatioCPU", Weight: 1, Score: 80},
		{Prioritizer: "ResourceRatioMemory", Weight: 1, Score: 90},
	}
	if best.Name != "cluster6" || !slices.Equal(best.Parts, parts) {
		t.Errorf("the best is %+v, want cluster6 with %v", best, parts)
	}
}
