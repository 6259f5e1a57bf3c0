package placement

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// startBigFleet starts a hub with n clusters and returns their names.
func startBigFleet(t *testing.T, n int) (h *testcluster.Cluster, names []string) {
	t.Helper()
	h = testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")[:3]...)
	for i := range n {
		names = append(names, fmt.Sprintf("cluster-%04d", i))
		h.Apply(t, testcluster.ManagedCluster(names[i], "50"))
	}
	return h, names
}

// killAtFirst watches PlacementDecisions from now on. The returned function waits for the
// first change and then calls kill.
func killAtFirst(t *testing.T, c *testcluster.Cluster, kill func()) (wait func()) {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	must.Succeed(t, c.Client.List(t.Context(), &list))
	changes, err := c.Client.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{}, testcluster.WatchFrom(list.ResourceVersion))
	must.Succeed(t, err)
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

// A leader is paused until another controller has taken over and has changed decisions.
// When it continues, it writes nothing before it notices that it is not the leader and exits.
func TestPlacementLeaderPaused(t *testing.T) {
	h := testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	flags := []string{"--controllers=placement", "--adopt=all"}
	paused := h.StartController(t, flags...)
	var placements []string
	for i := range 30 {
		placements = append(placements, fmt.Sprint("follow-", i))
		h.Apply(t,
			testcluster.PlacementIn(testcluster.Team, placements[i], testcluster.Exactly(2, map[string]int{"ResourceAllocatableCPU": 1})))
	}
	for _, name := range placements {
		h.AwaitChosen(t, paused, name, "cluster1", "cluster4")
	}
	other := h.StartController(t, flags...)
	holder := leader(t, h)
	paused.Pause(t)
	eventually.True(
		t, "the other controller does not take over", other, func(context.Context) (bool, error) { return leader(t, h) != holder, nil },
	)
	// The paused controller will see these decisions before or after the changed cluster.
	h.Apply(t, testcluster.Example(t, "changes/cluster2-grows.yaml")...)
	for _, name := range placements {
		h.AwaitChosen(t, other, name, "cluster2", "cluster4")
	}
	decisions := h.RecordChanges(t, testcluster.DecisionKind)
	paused.Resume(t)
	select {
	case <-paused.Exited():
	case <-time.After(time.Minute):
		t.Errorf("the former leader is still running:\n%s", paused)
	}
	for _, name := range placements {
		if history := decisions.History(t, name); len(history) > 0 {
			t.Errorf("decisions of %s changed: %v", name, history)
		}
		h.AwaitChosen(t, other, name, "cluster2", "cluster4")
	}
	if written := decisions.Changes(); len(written) > 0 {
		t.Errorf("the former leader, or the new one because of it, wrote %v", written)
	}
	other.Stop(t)
}

// leader returns the holder of the lease of the controllers.
func leader(t *testing.T, c *testcluster.Cluster) string {
	t.Helper()
	var lease coordinationv1.Lease
	must.Succeed(
		t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: testcluster.SystemNamespace, Name: "plimsoll-controller"}, &lease),
	)
	return *lease.Spec.HolderIdentity
}

// Heartbeats of clusters cause no reconciliation and no write. The clock causes a few reconciliations on a slow machine: a heartbeat that
// caused one would cause more than a tenth of a reconciliation for each.
func TestPlacementHeartbeats(t *testing.T) {
	h := testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false", "--metrics-bind-address="+metrics)
	expression := map[string]any{
		"predicates": []any{
			map[string]any{
				"requiredClusterSelector": map[string]any{
					"celSelector": map[string]any{"celExpressions": []any{"managedCluster.metadata.name != 'cluster1'"}},
				},
			},
		},
	}
	h.Apply(t, testcluster.PlacementIn(testcluster.Team, "ratio", testcluster.Exactly(2, map[string]int{"ResourceRatioCPU": 1})),
		testcluster.PlacementIn(testcluster.Team, "plain", map[string]any{}),
		testcluster.PlacementIn(testcluster.Team, "expression", expression),
		testcluster.PlacementIn(testcluster.Team, "follow", testcluster.Exactly(1, map[string]int{"ResourceAllocatableCPU": 1})))
	h.AwaitChosen(t, controller, "follow", "cluster4")
	h.AwaitChosen(t, controller, "ratio", "cluster1", "cluster6")
	h.AwaitChosen(t, controller, "plain", "cluster1", "cluster2", "cluster3", "cluster4", "cluster5", "cluster6")
	h.AwaitChosen(t, controller, "expression", "cluster2", "cluster3", "cluster4", "cluster5", "cluster6")
	beat := func(i int) {
		cluster := testcluster.ManagedCluster(fmt.Sprint("cluster", 1+i%6), "0")
		h.Patch(t, cluster, map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
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
		before = testcluster.Scrape(t, metrics, "controller_runtime_reconcile_total", "plimsoll_placement_writes_total")
		wait := time.NewTimer(3 * testcluster.Settled)
		defer wait.Stop()
		<-wait.C
		return before == last, nil
	})
	decisions, placements := h.RecordChanges(t, testcluster.DecisionKind), h.RecordChanges(t, v1beta1.GroupVersion.WithKind("Placement"))
	sum := func(name string) (total float64) {
		for line := range strings.Lines(testcluster.Scrape(t, metrics, name)) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			must.Succeed(t, err)
			total += value
		}
		return total
	}
	const heartbeats, reconciliations, writes = 1000, "controller_runtime_reconcile_total", "plimsoll_placement_writes_total"
	began, reconciled, written := time.Now(), sum(reconciliations), sum(writes)
	for i := range heartbeats {
		beat(6 + i)
	}
	took := time.Since(began)
	if more := sum(reconciliations) - reconciled; more > heartbeats/10 || sum(writes) != written {
		t.Errorf("%d heartbeats caused %g reconciliations and %g writes", heartbeats, more, sum(writes)-written)
	}
	// A relevant change after the heartbeats is processed.
	h.Apply(t, testcluster.Example(t, "changes/cluster2-grows.yaml")...)
	h.AwaitChosen(t, controller, "follow", "cluster2")
	for _, change := range append(decisions.Changes(), placements.Changes()...) {
		if !slices.Contains([]string{"follow", "follow-decision-1"}, strings.Fields(change)[1]) {
			t.Errorf("unexpected write: %s", change)
		}
	}
	// The metrics count the relevant change, not the heartbeats: four placements and a change. A latency is observed after the last write.
	served := ""
	eventually.True(t, "want 5 latencies", controller, func(context.Context) (bool, error) {
		served = testcluster.Scrape(t, metrics, "plimsoll_", "# ", "workqueue_depth")
		return strings.Contains(served, "\nplimsoll_placement_latency_seconds_count 5\n"), nil
	})
	testcluster.ExpectMetrics(t, served, "placement")
	if !strings.Contains(served, `workqueue_depth{controller="placement"`) {
		t.Errorf("want the queue depth in\n%s", served)
	}
	t.Logf("1000 heartbeats in %.1f s", took.Seconds())
	controller.Stop(t)
}
