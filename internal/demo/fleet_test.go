package demo_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
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
	testHubSettle(t, env, d)
	if err := d.Play(t.Context()); err != nil {
		t.Fatal(err)
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
