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

// managedCluster is a cluster of the set of the examples.
func managedCluster(name, cpu string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"cluster.open-cluster-management.io/clusterset": "fleet"}},
		"spec":     map[string]any{"hubAcceptsClient": true},
		"status":   map[string]any{"allocatable": map[string]any{"cpu": cpu, "memory": "64Gi"}, "capacity": map[string]any{"cpu": "100", "memory": "64Gi"}},
	}}
}

// startBigFleet starts a hub with so many clusters, and returns their names.
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

// onceThere checks that clusters which a placement has had once, and has in the
// end, it had all the time in between.
func (w *changeRecorder) onceThere(t *testing.T, placement string) {
	t.Helper()
	history := w.history(t, placement)
	last := setOf(map[string][]string{"": history[len(history)-1].clusters})
	had := map[string]bool{}
	for i, moment := range history {
		now := setOf(map[string][]string{"": moment.clusters})
		for name := range had {
			if last[name] && !now[name] {
				t.Fatalf("%s was missing after change %d of %d, which was there before and after", name, i, len(history))
			}
		}
		maps.Copy(had, now)
	}
}

// killAtFirst returns what ends a process without warning as soon as a change of
// PlacementDecisions is seen.
func (h *testCluster) killAtFirst(t *testing.T, kill func()) (wait func()) {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	if err := h.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	changes, err := h.client.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{}, watchFrom(list.ResourceVersion))
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
		t.Fatal("nothing was written")
	}
}

// The controller is killed between two writes, when 250 clusters are laid out for
// the first time, and when they are divided into groups. Started again it goes
// on, and no cluster is missing in between.
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
	h.patch(t, placementIn(team, "everywhere", nil), map[string]any{"spec": map[string]any{"decisionStrategy": map[string]any{"groupStrategy": map[string]any{"clustersPerDecisionGroup": int64(60)}}}})
	wait()
	t.Logf("killed after %v", decisions.changes()[before:])
	controller = h.startController(t, flags...)
	h.awaitChosen(t, controller, "everywhere", names...)
	eventually.True(t, "there are not five groups", controller, func(ctx context.Context) (bool, error) {
		there, err := h.slicesOf(ctx, "everywhere")
		sizes := map[string]int{}
		for _, slice := range there {
			sizes[slice.Labels[clusterv1beta1.DecisionGroupIndexLabel]] += len(slice.Status.Decisions)
		}
		return len(there) == 5 && maps.Equal(sizes, map[string]int{"0": 60, "1": 60, "2": 60, "3": 60, "4": 10}), err
	})
	t.Logf("changes of PlacementDecisions: %d for the first layout, %d for the groups", before, len(decisions.changes())-before)
	decisions.onceThere(t, "everywhere")
	if got := clustersOfStatus(t, h, "everywhere"); got != 250 {
		t.Errorf("the status says that %d are chosen", got)
	}
}

// The API server is away for 10 s, in which the fleet changes. Nothing is lost,
// and afterwards it is as it should be.
func TestPlacementOutage(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	decisions := h.recordChanges(t, decisionKind)
	proxy, kubeconfig := h.startProxy(t)
	log, restarts := h.superviseController(t, "--kubeconfig="+kubeconfig, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	h.apply(t, placementIn(team, "everywhere", map[string]any{}), placementIn(team, "follow", exactly(2, map[string]int{"ResourceAllocatableCPU": 1})), placementIn(team, "doomed", map[string]any{}))
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
		t.Errorf("written while the API server was away: %v", seen)
	}
	proxy.Reconnect(t)
	back := time.Now()
	h.awaitChosen(t, log, "follow", "cluster2", "cluster7")
	h.awaitChosen(t, log, "everywhere", "cluster1", "cluster2", "cluster3", "cluster4", "cluster6", "cluster7")
	eventually.True(t, "new and doomed are not as they should be", log, func(ctx context.Context) (bool, error) {
		there, err := h.slicesOf(ctx, "new")
		left, err2 := h.slicesOf(ctx, "doomed")
		return err == nil && len(clustersIn(there...)) == 1 && len(left) == 0, err2
	})
	t.Logf("it took %d ms after 10 s away; changes: %v", time.Since(back).Milliseconds(), decisions.changes()[before:])
	decisions.onceThere(t, "everywhere")
	decisions.onceThere(t, "follow")
	if restarts.Load() > 0 {
		t.Errorf("the controller ended:\n%s", log)
	}
}

// Of two controllers one works. When it is killed the other one takes over, and
// changes nothing that was right.
func TestPlacementLeaderKilled(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	flags := []string{"--controllers=placement", "--adopt=all"}
	controller := h.startController(t, flags...)
	// Balance and Steady have a say: the order in which placements are decided would
	// show.
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
	// Settled, and so only scores are left to write, after a minute.
	holder := h.leader(t)
	decisions := h.recordChanges(t, decisionKind)
	controller.Kill()
	killed := time.Now()
	eventually.True(t, "nobody takes over", other, func(context.Context) (bool, error) { return h.leader(t) != holder, nil })
	h.apply(t, example(t, "changes/cluster2-grows.yaml")...)
	h.awaitChosen(t, other, "follow", "cluster2", "cluster4")
	t.Logf("the other one had taken over %.1f s after the first was killed", time.Since(killed).Seconds())
	for _, name := range placements {
		if history := decisions.history(t, name); len(history) > 1 {
			t.Errorf("%s moved: %v", name, history)
		}
	}
	controller.Stop(t)
}

// leader returns who holds the lease of the controllers.
func (h *testCluster) leader(t *testing.T) string {
	t.Helper()
	var lease coordinationv1.Lease
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "plimsoll-controller"}, &lease); err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// Heartbeats of clusters, of which there are many, write nothing and decide
// nothing.
func TestPlacementHeartbeats(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	controller := h.startController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false", "--metrics-bind-address="+metrics)
	expression := map[string]any{"predicates": []any{map[string]any{"requiredClusterSelector": map[string]any{"celSelector": map[string]any{"celExpressions": []any{"managedCluster.metadata.name != 'cluster1'"}}}}}}
	h.apply(t, placementIn(team, "ratio", exactly(2, map[string]int{"ResourceRatioCPU": 1})), placementIn(team, "plain", map[string]any{}), placementIn(team, "expression", expression), placementIn(team, "follow", exactly(1, map[string]int{"ResourceAllocatableCPU": 1})))
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
	// The first one adds the condition; and what has just been decided is looked at
	// once more when the decisions have been written.
	for i := range 6 {
		beat(i)
	}
	before := ""
	eventually.True(t, "the controller does not come to rest", controller, func(context.Context) (bool, error) {
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
	// What counts is heard behind them.
	h.apply(t, example(t, "changes/cluster2-grows.yaml")...)
	h.awaitChosen(t, controller, "follow", "cluster2")
	for _, change := range append(decisions.changes(), placements.changes()...) {
		if !slices.Contains([]string{"follow", "follow-decision-1"}, strings.Fields(change)[1]) {
			t.Errorf("written: %s", change)
		}
	}
	// The one change that counted was heard and written; the heartbeats were none.
	served := scrape(t, metrics, "plimsoll_", "# ", "workqueue_depth")
	expectMetrics(t, served, "placement")
	if !strings.Contains(served, "\nplimsoll_placement_latency_seconds_count 5\n") || !strings.Contains(served, `workqueue_depth{controller="placement"`) {
		t.Errorf("four placements and a change: want five delays, and the queue, in\n%s", served)
	}
	t.Logf("1000 heartbeats in %.1f s", took.Seconds())
	controller.Stop(t)
}
