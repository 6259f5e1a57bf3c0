package demo_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// testFleet expects the decisions of the stories in both API versions, and then the ranking of each
// placement on the live page.
func testFleet(t *testing.T, env *demo.Environment, nodes *node.Demo) {
	d := fleet.New(env)
	t.Cleanup(d.Stop)
	if view, err := d.View(t.Context()); view != nil || err != nil {
		t.Errorf("before the scenario the page shows %v, %v", view, err)
	}
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
	testHubSettle(t, env, d)
	testRanking(t, d)
	if err := d.Play(t.Context()); err != nil {
		t.Fatal(err)
	}
	var live page.Live
	if err := nodes.AddTo(t.Context(), &live); err != nil {
		t.Error(err)
	}
	view, err := d.View(t.Context())
	if err != nil || view == nil || len(view.Placements) != 6 {
		t.Errorf("the page shows %+v, %v; want 6 placements", view, err)
	}
}

// testHubSettle expects that when Settle of a hub with an external controller returns, the controller
// has observed the change of each cluster, and that no decision is left.
func testHubSettle(t *testing.T, env *demo.Environment, d *fleet.Demo) {
	api, err := client.New(env.Access, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	external := fleet.NewHub(api, nil)
	var clusters clusterv1.ManagedClusterList
	if err := api.List(t.Context(), &clusters); err != nil || len(clusters.Items) == 0 {
		t.Fatal(clusters, err)
	}
	for i := range 20 {
		cluster := &clusters.Items[i%len(clusters.Items)]
		before := cluster.DeepCopy()
		cluster.Annotations = map[string]string{"round": fmt.Sprint(i)}
		if err := api.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		if err := external.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		// At once: what is observed later does not count.
		if isObserved, err := d.Hub().IsObserved(t.Context()); err != nil || !isObserved {
			t.Errorf("round %d: the controller has not observed the change of %s (%v)", i, cluster.Name, err)
		}
		if left, err := d.Hub().Decisions(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("round %d: decisions %v, %v", i, left, err)
		}
	}
}

// testRanking expects the arithmetic of examples/placement/1-largest-ratios, with 100 of Steady for the
// selected clusters.
func testRanking(t *testing.T, d *fleet.Demo) {
	hub := d.Hub()
	if err := hub.Apply(t.Context(), fleet.PlacementFile("1-largest-ratios", "v1beta1")); err != nil {
		t.Fatal(err)
	}
	want := []string{"cluster2", "cluster4", "cluster6"}
	err := hub.Await(t.Context(), "the placement to be decided", func(ctx context.Context) (bool, error) {
		chosen, err := hub.Chosen(ctx, "largest-ratios")
		return slices.Equal(chosen, want), err
	})
	if err != nil {
		t.Fatal(err)
	}
	view, err := d.View(t.Context())
	if err != nil || len(view.Placements) != 1 {
		t.Fatal(view, err)
	}
	totals := map[string]int64{}
	for _, cluster := range view.Placements[0].Clusters {
		totals[cluster.Name] = cluster.Total
		if cluster.Chosen != slices.Contains(want, cluster.Name) {
			t.Errorf("%s is marked as selected: %t", cluster.Name, cluster.Chosen)
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
