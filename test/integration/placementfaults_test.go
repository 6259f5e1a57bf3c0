package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// managedCluster returns a cluster in the cluster set of the examples.
func managedCluster(name, cpu string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"cluster.open-cluster-management.io/clusterset": "fleet"}},
		"spec":     map[string]any{"hubAcceptsClient": true},
		"status": map[string]any{
			"allocatable": map[string]any{"cpu": cpu, "memory": "64Gi"}, "capacity": map[string]any{"cpu": "100", "memory": "64Gi"},
		},
	}}
}

// startBigFleet starts a hub with n clusters and returns their names.
func startBigFleet(t *testing.T, n int) (h *testCluster, names []string) {
	t.Helper()
	h = startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")[:3]...)
	for i := range n {
		names = append(names, fmt.Sprintf("cluster-%04d", i))
		h.apply(t, managedCluster(names[i], "50"))
	}
	return h, names
}

// expectNoGaps fails if a cluster that a placement selects now was missing after it was
// selected for the first time.
func (r *changeRecorder) expectNoGaps(t *testing.T, placement string) {
	t.Helper()
	history := r.history(t, placement)
	last := setOf(map[string][]string{"": history[len(history)-1].clusters})
	had := map[string]bool{}
	for i, moment := range history {
		now := setOf(map[string][]string{"": moment.clusters})
		for name := range had {
			if last[name] && !now[name] {
				t.Fatalf("%s was missing after change %d of %d, but selected before and after", name, i, len(history))
			}
		}
		maps.Copy(had, now)
	}
}

// killAtFirst watches PlacementDecisions from now on. The returned function waits for the
// first change and then calls kill.
func (c *testCluster) killAtFirst(t *testing.T, kill func()) (wait func()) {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	if err := c.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	changes, err := c.client.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{}, watchFrom(list.ResourceVersion))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		defer changes.Stop()
		for event := range changes.ResultChan() {
			if event.Type == watch.Bookmark {
				continue
			}
			kill()
			return
		}
		t.Fatal("no PlacementDecision was written")
	}
}

// The controller is killed between two writes, first of the initial decisions for 250
// clusters, then of their division into groups. After a restart it completes the writes, and
// no cluster is missing in between.
func TestPlacementControllerKilled(t *testing.T) {
	t.Parallel()
	h, names := startBigFleet(t, 250)
	decisions := h.recordChanges(t, decisionKind)
	flags := []string{"--controllers=placement", "--adopt=all", "--leader-elect=false"}
	controller := h.startController(t, flags...)
	wait := h.killAtFirst(t, controller.Kill)
	h.apply(t, placementIn(team, "everywhere", map[string]any{}))
	wait()
	t.Logf("killed after %v", decisions.changes())
	controller = h.startController(t, flags...)
	h.awaitChosen(t, controller, "everywhere", names...)
	before := len(decisions.changes())

	wait = h.killAtFirst(t, controller.Kill)
	h.patch(
		t,
		placementIn(team, "everywhere", nil),
		map[string]any{
			"spec": map[string]any{
				"decisionStrategy": map[string]any{"groupStrategy": map[string]any{"clustersPerDecisionGroup": int64(60)}},
			},
		},
	)
	wait()
	t.Logf("killed after %v", decisions.changes()[before:])
	controller = h.startController(t, flags...)
	h.awaitChosen(t, controller, "everywhere", names...)
	eventually.True(t, "decisions are not in five groups", controller, func(ctx context.Context) (bool, error) {
		existing, err := h.slicesOf(ctx, "everywhere")
		sizes := map[string]int{}
		for _, slice := range existing {
			sizes[slice.Labels[clusterv1beta1.DecisionGroupIndexLabel]] += len(slice.Status.Decisions)
		}
		return len(existing) == 5 && maps.Equal(sizes, map[string]int{"0": 60, "1": 60, "2": 60, "3": 60, "4": 10}), err
	})
	t.Logf("changes of PlacementDecisions: %d for the first layout, %d for the groups", before, len(decisions.changes())-before)
	decisions.expectNoGaps(t, "everywhere")
	if got := clustersOfStatus(t, h, "everywhere"); got != 250 {
		t.Errorf("numberOfSelectedClusters %d, want 250", got)
	}
}

// The controller cannot reach the API server for 10 s while the fleet changes. Afterwards it
// processes all changes.
func TestPlacementOutage(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	decisions := h.recordChanges(t, decisionKind)
	proxy, kubeconfig := h.startProxy(t)
	log, restarts := h.superviseController(t, "--kubeconfig="+kubeconfig, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	h.apply(
		t,
		placementIn(team, "everywhere", map[string]any{}),
		placementIn(team, "follow", exactly(2, map[string]int{"ResourceAllocatableCPU": 1})),
		placementIn(team, "doomed", map[string]any{}),
	)
	all := []string{"cluster1", "cluster2", "cluster3", "cluster4", "cluster5", "cluster6"}
	h.awaitChosen(t, log, "everywhere", all...)
	h.awaitChosen(t, log, "doomed", all...)
	h.awaitChosen(t, log, "follow", "cluster1", "cluster4")
	before := len(decisions.changes())
	proxy.Disconnect()
	h.apply(t, example(t, "changes/cluster2-grows.yaml")...)
	h.apply(t, managedCluster("cluster7", "90"), placementIn(team, "new", map[string]any{"numberOfClusters": int64(1)}))
	for _, gone := range []client.Object{managedCluster("cluster5", "0"), placementIn(team, "doomed", nil)} {
		if err := h.client.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-t.Context().Done():
	case <-time.After(10 * time.Second):
	}
	if seen := decisions.changes()[before:]; len(seen) > 0 {
		t.Errorf("written while the API server was unreachable: %v", seen)
	}
	proxy.Reconnect(t)
	back := time.Now()
	h.awaitChosen(t, log, "follow", "cluster2", "cluster7")
	h.awaitChosen(t, log, "everywhere", "cluster1", "cluster2", "cluster3", "cluster4", "cluster6", "cluster7")
	eventually.True(t, "new is not decided or decisions of doomed are not deleted", log, func(ctx context.Context) (bool, error) {
		existing, err := h.slicesOf(ctx, "new")
		left, err2 := h.slicesOf(ctx, "doomed")
		return err == nil && len(clustersIn(existing...)) == 1 && len(left) == 0, err2
	})
	t.Logf("up to date %d ms after an outage of 10 s; changes: %v", time.Since(back).Milliseconds(), decisions.changes()[before:])
	decisions.expectNoGaps(t, "everywhere")
	decisions.expectNoGaps(t, "follow")
	if restarts.Load() > 0 {
		t.Errorf("the controller exited:\n%s", log)
	}
}

// Only one of two controllers is the leader. When it is killed, the other takes over and
// keeps the decisions.
func TestPlacementLeaderKilled(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	flags := []string{"--controllers=placement", "--adopt=all"}
	controller := h.startController(t, flags...)
	// With Balance and Steady, the order of decisions after a restart affects the results.
	var placements []string
	for i := range 5 {
		placements = append(placements, fmt.Sprint("balanced-", i))
		h.apply(t, placementIn(team, placements[i], map[string]any{"numberOfClusters": int64(2)}))
	}
	h.apply(t, placementIn(team, "follow", exactly(2, map[string]int{"ResourceAllocatableCPU": 1})))
	h.awaitChosen(t, controller, "follow", "cluster1", "cluster4")
	for _, name := range placements {
		h.awaitPlacement(t, controller, name, clusterv1beta1.PlacementConditionSatisfied, "AllDecisionsScheduled")
	}
	other := h.startController(t, flags...)
	// Only scores remain to be written, after a minute.
	holder := h.leader(t)
	decisions := h.recordChanges(t, decisionKind)
	controller.Kill()
	killed := time.Now()
	eventually.True(
		t, "the other controller does not take over", other, func(context.Context) (bool, error) { return h.leader(t) != holder, nil },
	)
	h.apply(t, example(t, "changes/cluster2-grows.yaml")...)
	h.awaitChosen(t, other, "follow", "cluster2", "cluster4")
	t.Logf("the other controller had taken over %.1f s after the leader was killed", time.Since(killed).Seconds())
	for _, name := range placements {
		if history := decisions.history(t, name); len(history) > 1 {
			t.Errorf("decisions of %s changed: %v", name, history)
		}
	}
	other.Stop(t)
}

// A leader is paused until another controller has taken over and has changed decisions.
// When it continues, it writes nothing before it notices that it is not the leader and exits.
func TestPlacementLeaderPaused(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	flags := []string{"--controllers=placement", "--adopt=all"}
	paused := h.startController(t, flags...)
	var placements []string
	for i := range 30 {
		placements = append(placements, fmt.Sprint("follow-", i))
		h.apply(t, placementIn(team, placements[i], exactly(2, map[string]int{"ResourceAllocatableCPU": 1})))
	}
	for _, name := range placements {
		h.awaitChosen(t, paused, name, "cluster1", "cluster4")
	}
	other := h.startController(t, flags...)
	holder := h.leader(t)
	paused.Pause(t)
	eventually.True(
		t, "the other controller does not take over", other, func(context.Context) (bool, error) { return h.leader(t) != holder, nil },
	)
	// The paused controller will see these decisions before or after the changed cluster.
	h.apply(t, example(t, "changes/cluster2-grows.yaml")...)
	for _, name := range placements {
		h.awaitChosen(t, other, name, "cluster2", "cluster4")
	}
	decisions := h.recordChanges(t, decisionKind)
	paused.Resume(t)
	select {
	case <-paused.Exited():
	case <-time.After(time.Minute):
		t.Errorf("the former leader is still running:\n%s", paused)
	}
	for _, name := range placements {
		if history := decisions.history(t, name); len(history) > 0 {
			t.Errorf("decisions of %s changed: %v", name, history)
		}
		h.awaitChosen(t, other, name, "cluster2", "cluster4")
	}
	if written := decisions.changes(); len(written) > 0 {
		t.Errorf("the former leader, or the new one because of it, wrote %v", written)
	}
	other.Stop(t)
}

// leader returns the holder of the lease of the controllers.
func (c *testCluster) leader(t *testing.T) string {
	t.Helper()
	var lease coordinationv1.Lease
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "plimsoll-controller"}, &lease); err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// Heartbeats of clusters cause no reconciliation and no write.
func TestPlacementHeartbeats(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	controller := h.startController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false", "--metrics-bind-address="+metrics)
	expression := map[string]any{
		"predicates": []any{
			map[string]any{
				"requiredClusterSelector": map[string]any{
					"celSelector": map[string]any{"celExpressions": []any{"managedCluster.metadata.name != 'cluster1'"}},
				},
			},
		},
	}
	h.apply(
		t,
		placementIn(team, "ratio", exactly(2, map[string]int{"ResourceRatioCPU": 1})),
		placementIn(team, "plain", map[string]any{}),
		placementIn(team, "expression", expression),
		placementIn(team, "follow", exactly(1, map[string]int{"ResourceAllocatableCPU": 1})),
	)
	h.awaitChosen(t, controller, "follow", "cluster4")
	h.awaitChosen(t, controller, "ratio", "cluster1", "cluster6")
	h.awaitChosen(t, controller, "plain", "cluster1", "cluster2", "cluster3", "cluster4", "cluster5", "cluster6")
	h.awaitChosen(t, controller, "expression", "cluster2", "cluster3", "cluster4", "cluster5", "cluster6")
	beat := func(i int) {
		cluster := managedCluster(fmt.Sprint("cluster", 1+i%6), "0")
		h.patch(t, cluster, map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": "ManagedClusterConditionAvailable", "status": "True", "reason": "ManagedClusterAvailable",
			"message": fmt.Sprint("heartbeat ", i), "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}}, "status")
	}
	// The first heartbeats add the condition. Placements are reconciled once more after
	// their decisions are written.
	for i := range 6 {
		beat(i)
	}
	before := ""
	eventually.True(t, "the controller does not stop reconciling", controller, func(context.Context) (bool, error) {
		last := before
		before = scrape(t, metrics, "controller_runtime_reconcile_total", "plimsoll_placement_writes_total")
		wait := time.NewTimer(3 * settled)
		defer wait.Stop()
		<-wait.C
		return before == last, nil
	})
	decisions, placements := h.recordChanges(t, decisionKind), h.recordChanges(t, v1beta1.GroupVersion.WithKind("Placement"))
	began := time.Now()
	for i := range 1000 {
		beat(6 + i)
	}
	took := time.Since(began)
	if after := scrape(t, metrics, "controller_runtime_reconcile_total", "plimsoll_placement_writes_total"); after != before {
		t.Errorf("after 1000 heartbeats\n%s\nbefore\n%s", after, before)
	}
	// A relevant change after the heartbeats is processed.
	h.apply(t, example(t, "changes/cluster2-grows.yaml")...)
	h.awaitChosen(t, controller, "follow", "cluster2")
	for _, change := range append(decisions.changes(), placements.changes()...) {
		if !slices.Contains([]string{"follow", "follow-decision-1"}, strings.Fields(change)[1]) {
			t.Errorf("unexpected write: %s", change)
		}
	}
	// The metrics count the relevant change, not the heartbeats.
	served := scrape(t, metrics, "plimsoll_", "# ", "workqueue_depth")
	expectMetrics(t, served, "placement")
	if !strings.Contains(served, "\nplimsoll_placement_latency_seconds_count 5\n") ||
		!strings.Contains(served, `workqueue_depth{controller="placement"`) {
		t.Errorf("want 5 latencies (four placements and a change) and the queue depth in\n%s", served)
	}
	t.Logf("1000 heartbeats in %.1f s", took.Seconds())
	controller.Stop(t)
}
