package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// hostilePlacements are the predicates of placements that would stop the controller, or take
// all memory, if expressions were not bounded.
func hostilePlacements() map[string]string {
	thousand := strings.Repeat("a", 1000)
	labels := "managedCluster.metadata.labels"
	loops := strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(a, ", 10) + labels + ".size() > 0" + strings.Repeat(")", 10)
	return map[string]string{
		"replace": `"` + thousand + `"` + strings.Repeat(`.replace("a", "`+thousand+`")`, 4) + `.size() > 0`,
		"loops":   loops,
		"lists":   "[" + labels + "]" + strings.Repeat(".map(a, [a, a, a, a, a, a, a, a])", 11) + ".all(x, x == x)",
		"types":   "[[1]]" + strings.Repeat(".map(a, {a: a})", 40) + ".size() > 0",
		"pattern": `"` + thousand + `".matches("^((.{30}){30}){30}$")`,
		"number":  `quantity("1e2147483647").isGreaterThan(quantity("1"))`,
	}
}

// A tenant creates placements with hostile expressions, and the agent of a cluster writes
// absurd quantities. The placements of another tenant are decided as before, and the
// controller takes little more memory.
func TestHostilePlacements(t *testing.T) {
	h, names := startBigFleet(t, 50)
	const attacker = "attacker"
	h.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: attacker}})
	binding := testcluster.Example(t, "fleet.yaml")[2].DeepCopy()
	binding.SetNamespace(attacker)
	h.Apply(t, binding)
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false",
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", program.FreePort(t)))
	decide := func(name string) time.Duration {
		began := time.Now()
		h.Apply(
			t,
			testcluster.PlacementIn(
				testcluster.Team,
				name,
				map[string]any{"numberOfClusters": int64(3), "prioritizerPolicy": map[string]any{
					"configurations": []any{map[string]any{"name": "ResourceAllocatableCPU", "weight": int64(1)}},
				}},
			),
		)
		h.AwaitPlacement(t, controller, name, clusterv1beta1.PlacementConditionSatisfied, "AllDecisionsScheduled")
		return time.Since(began)
	}
	slowest := func(prefix string) (longest time.Duration) {
		for i := range 10 {
			longest = max(longest, decide(fmt.Sprint(prefix, i)))
		}
		return longest
	}
	decide("first")
	before, memory := slowest("before"), controller.PeakMemory()>>20

	for i, quantity := range []string{"1e2147483647", "1e-2147483647", "0e2147483647"} {
		h.Apply(t, testcluster.ManagedCluster(names[i], quantity))
	}
	for i := range 3 {
		for name, text := range hostilePlacements() {
			h.Apply(t, testcluster.PlacementIn(attacker, fmt.Sprint(name, i), map[string]any{"predicates": []any{map[string]any{
				"requiredClusterSelector": map[string]any{"celSelector": map[string]any{"celExpressions": []any{text}}},
			}}}))
		}
	}
	during := slowest("during")
	// Set-up and reading of results are in these times; a busy machine needs a margin.
	if during > 2*before+5*time.Second {
		t.Errorf("decisions take up to %s, and %s during the attack\n%s", before, during, controller)
	}
	if grown := controller.PeakMemory()>>20 - memory; grown > 200 {
		t.Errorf("memory grows by %d MiB", grown)
	}
	t.Logf(
		"slowest decision %s, during the attack %s; peak memory %d MiB, then %d MiB", before, during, memory, controller.PeakMemory()>>20,
	)

	// All hostile placements get a result. The absurd quantity is only a value that is not valid.
	for name := range hostilePlacements() {
		if name != "number" {
			awaitMisconfigured(t, h, controller, attacker, name+"2")
		}
	}
}

// awaitMisconfigured waits until a placement is misconfigured.
func awaitMisconfigured(t *testing.T, c *testcluster.Cluster, controller *program.Process, namespace, name string) {
	t.Helper()
	failed := []string{"Misconfigured", "ExpressionFails"}
	eventually.TrueWithin(
		t,
		3*time.Minute,
		100*time.Millisecond,
		name+" is not misconfigured",
		controller,
		func(ctx context.Context) (bool, error) {
			var object v1beta1.Placement
			if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &object); err != nil {
				return false, err
			}
			got := meta.FindStatusCondition(object.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
			return got != nil && got.Status == metav1.ConditionTrue && slices.Contains(failed, got.Reason), nil
		},
	)
}
