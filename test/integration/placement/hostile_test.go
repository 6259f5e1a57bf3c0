package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
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

// TestDecisionsDuringAttacks checks that a tenant's next placement is decided in time, and gets the cluster that it fits, during each
// attack of another tenant and of a member cluster, and after all of them. It prints the times: the goal is 1 s on a machine that is
// not busy, and the writes until then, which do not depend on the machine.
func TestDecisionsDuringAttacks(t *testing.T) {
	const attacker, goal, limit = "attacker", time.Second, 10 * time.Second
	h, names := startBigFleet(t, 20)
	h.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: attacker}})
	binding := testcluster.Example(t, "fleet.yaml")[2].DeepCopy()
	binding.SetNamespace(attacker)
	h.Apply(t, binding)
	report := func(ctx context.Context, cluster, rest string) error {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "plimsoll.dev/v1alpha1", "kind": "ClusterCapacity"}}
		object.SetNamespace(cluster)
		object.SetName("plimsoll")
		text := fmt.Sprintf(`{"apiVersion":"plimsoll.dev/v1alpha1","kind":"ClusterCapacity","metadata":{"name":"plimsoll","namespace":%q},
			"status":{"cluster":%q,"observedAt":%q,"classes":[{"labels":{"zone":"a"}}],%s}}`, cluster, cluster,
			time.Now().UTC().Format(time.RFC3339), rest)
		patch := client.RawPatch(types.ApplyYAMLPatchType, []byte(text))
		return h.Client.Patch(ctx, object, patch, client.FieldOwner("agent"), client.ForceOwnership)
	}
	groups := func(n int, free string) string {
		one := `{"class":0,"nodes":10,"free":{"cpu":"` + free + `","memory":"64Gi","pods":"100"}}`
		return `"groups":[` + strings.Repeat(one+",", n-1) + one + "]"
	}
	for i, name := range names {
		h.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		must.Succeed(t, report(t.Context(), name, groups(1, "100")))
		if i%2 == 0 {
			h.Patch(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"plimsoll.dev/capacity-limit": `{"cpu": "400"}`}},
			})
		}
	}
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false",
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", program.FreePort(t)))
	place := func(namespace, name, workload string, spec map[string]any) (client.Object, error) {
		placement := testcluster.PlacementIn(namespace, name, spec)
		placement.SetAnnotations(map[string]string{v1beta1.AnnotationWorkload: workload})
		return placement, h.Client.Create(t.Context(), placement)
	}
	const pod = `{"containers":[{"resources":{"requests":{"cpu":"1"}}}]%s}`
	workload := func(head, name, podSpec string) string {
		return `{` + head + `,"template":{"kind":"Deployment","metadata":{"namespace":"` + testcluster.Team + `","name":"` + name +
			`"},"spec":{"template":{"metadata":{"labels":{"app":"solver"}},"spec":` + podSpec + `}}}}`
	}
	count := 0
	decide := func() (took time.Duration, writes uint64) {
		count++
		name := fmt.Sprint("solver-", count)
		placed, err := place(testcluster.Team, name, workload(`"replicas":1,"requireFit":true`, "solver", fmt.Sprintf(pod, "")),
			map[string]any{"numberOfClusters": int64(1)})
		must.Succeed(t, err)
		began := time.Now()
		var object v1beta1.Placement
		eventually.TrueWithin(
			t,
			time.Minute,
			5*time.Millisecond,
			name+" is not decided",
			controller,
			func(ctx context.Context) (bool, error) {
				object = v1beta1.Placement{}
				err := h.Client.Get(ctx, client.ObjectKeyFromObject(placed), &object)
				return meta.IsStatusConditionTrue(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied), err
			},
		)
		return time.Since(began), revision(t, &object) - revision(t, placed)
	}
	apart := `,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` +
		`{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"solver"}}}%s]}}`
	terms := strings.Repeat(`,{"topologyKey":"zone","labelSelector":{}}`, 1000)
	spread := `,"topologySpreadConstraints":[` + strings.TrimPrefix(strings.Repeat(
		`,{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}`, 800), ",") + "]"
	texts := map[string]string{
		"a billion replicas":             workload(`"replicas":1000000000`, "greedy", fmt.Sprintf(pod, "")),
		"a billion replicas, divided":    workload(`"replicas":1000000000,"divide":true`, "greedy", fmt.Sprintf(pod, "")),
		"the workload of another tenant": workload(`"replicas":1000000000`, "solver", fmt.Sprintf(pod, fmt.Sprintf(apart, ""))),
		"1,000 terms of anti-affinity":   workload(`"replicas":1000000000`, "terms", fmt.Sprintf(pod, fmt.Sprintf(apart, terms))),
		"800 spread constraints":         workload(`"replicas":1000000000`, "spread", fmt.Sprintf(pod, spread)),
		"4,500 containers":               workload(`"replicas":9`, "wide", `{"containers":[{}`+strings.Repeat(`,{"name":"c"}`, 4500)+`]}`),
		"an absurd amount": workload(
			`"replicas":9`,
			"huge",
			strings.Replace(fmt.Sprintf(pod, ""), `"1"`, `"1e2147483647"`, 1),
		),
		"replicas out of range": workload(`"replicas":9223372036854775808`, "huge", fmt.Sprintf(pod, "")),
		"deep JSON":             `{"template":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 49_000) + `}`,
		"a Secret":              `{"ref":{"kind":"Secret","name":"token"}}`,
	}
	for name, text := range hostilePlacements() {
		texts["CEL "+name] = text
	}
	for name, text := range map[string]string{
		"findAll": `"aaaaaaaaaa".findAll("(a*)*b").size() > 0`, "indexOf": `"aaaa".indexOf("b") > 0`,
		"split": `[1,2,3].map(a, "a,b,c,d".split(",")).size() > 0`,
	} {
		texts["CEL "+name] = text
	}
	attacks := map[string]func(ctx context.Context, i int){
		"100 placements in the same second": func(_ context.Context, i int) {
			var creators errgroup.Group
			creators.SetLimit(16)
			for k := range 100 {
				creators.Go(func() error {
					_, err := place(attacker, fmt.Sprintf("flood-%d-%d", i, k), texts["a billion replicas"],
						map[string]any{"numberOfClusters": int64(2)})
					return err
				})
			}
			must.Succeed(t, creators.Wait())
		},
		"the same name again": func(_ context.Context, i int) {
			_ = h.Client.Delete(t.Context(), testcluster.PlacementIn(attacker, "again", nil))
			_, _ = place(attacker, "again", texts["a billion replicas"], map[string]any{}) // it may still exist
		},
		"a member reports absurd amounts": func(ctx context.Context, i int) {
			for _, amount := range []string{"1e2147483647", "-5", "9E", "1e-2147483647"} {
				_ = report(ctx, names[i], groups(300, amount)) // the API server may refuse it
				h.Apply(t, testcluster.ManagedCluster(names[i], amount))
			}
		},
		"a member reports without end": func(ctx context.Context, i int) {
			for k := 0; ctx.Err() == nil; k++ {
				_ = report(ctx, names[3], groups(300, fmt.Sprint(100+k%100)))
			}
		},
	}
	for name, text := range texts {
		attacks[name] = func(_ context.Context, i int) {
			id := fmt.Sprintf("%x-%d", len(name)*1000+int(name[0])*100+int(name[len(name)-1]), i)
			if strings.HasPrefix(name, "CEL") {
				h.Apply(t, testcluster.PlacementIn(attacker, "cel-"+id, map[string]any{"predicates": []any{map[string]any{
					"requiredClusterSelector": map[string]any{"celSelector": map[string]any{"celExpressions": []any{text}}},
				}}}))
				return
			}
			_, err := place(attacker, id, text, map[string]any{})
			must.Succeed(t, err)
		}
	}
	decide()
	slow := 0
	for _, name := range append([]string{"none"}, slices.Sorted(maps.Keys(attacks))...) {
		var longest time.Duration
		var most uint64
		used := controller.CPUTime(t)
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			var background sync.WaitGroup
			attack := attacks[name]
			switch {
			case attack == nil:
			case strings.HasSuffix(name, "without end"):
				background.Go(func() { attack(ctx, i) })
			default:
				attack(ctx, i)
			}
			took, writes := decide()
			longest, most = max(longest, took), max(most, writes)
			cancel()
			background.Wait()
		}
		t.Logf("%-34s next decision of the other tenant after at most %.2f s and %d writes of all; CPU time of the controller %.2f s",
			name+":", longest.Seconds(), most, (controller.CPUTime(t) - used).Seconds())
		if longest > limit {
			t.Errorf("%s: %s", name, longest)
		}
		if longest > goal {
			slow++
		}
	}
	t.Logf("%d of %d attacks above %s; peak memory of the controller %d MiB", slow, len(attacks), goal, controller.PeakMemory()>>20)
}
