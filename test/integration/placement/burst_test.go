package placement

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// Many placements are created at once; PLIMSOLL_PLACEMENTS sets their number. The controller
// decides each with two writes, the PlacementDecision with its decisions and the status of the
// placement, decides changed placements at once meanwhile, and then stops writing.
func TestPlacementBurst(t *testing.T) {
	n, limit := 300, 2*time.Minute
	if text, ok := os.LookupEnv("PLIMSOLL_PLACEMENTS"); ok {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		limit = 20 * time.Minute
	}
	h, _ := startBigFleet(t, 50)
	for i := range 50 {
		h.Apply(t, testcluster.ManagedCluster(fmt.Sprintf("cluster-%04d", i), strconv.Itoa(1+i)))
	}
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false", "--metrics-bind-address="+metrics)
	h.Apply(t, testcluster.PlacementIn(testcluster.Team, "first", map[string]any{"numberOfClusters": int64(1)}))
	h.AwaitPlacement(t, controller, "first", clusterv1beta1.PlacementConditionSatisfied, "AllDecisionsScheduled")
	before := writes(t, metrics)

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	var creators errgroup.Group
	creators.SetLimit(16)
	created := make(chan time.Duration, 1)
	go func() {
		for i := range n {
			// Specs differ, so that placements prefer different clusters. With a limit of 1h
			// scores that change because of Balance are not written during the test.
			spec := map[string]any{
				"numberOfClusters": int64(1 + i%5), "scoreRateLimit": "1h",
				"prioritizerPolicy": map[string]any{"configurations": []any{
					map[string]any{"name": "ResourceAllocatableCPU", "weight": int64(i % 3)},
				}},
			}
			creators.Go(func() error {
				return h.Client.Create(ctx, testcluster.PlacementIn(testcluster.Team, fmt.Sprint("burst-", i), spec))
			})
		}
		if err := creators.Wait(); err != nil {
			t.Error(err)
			cancel()
		}
		created <- time.Since(began)
	}()
	latencies := make(chan []time.Duration, 1)
	go func() { latencies <- changeMeanwhile(ctx, h, t, n) }()
	decided := map[string]bool{}
	for len(decided) < n && ctx.Err() == nil {
		// The API server ends a watch that is too slow; a new watch begins with all
		// existing objects.
		changes, err := h.Client.Watch(ctx, &v1beta1.PlacementList{}, client.InNamespace(testcluster.Team))
		must.Succeed(t, err)
		for event := range changes.ResultChan() {
			object, ok := event.Object.(*v1beta1.Placement)
			if !ok {
				break
			}
			if meta.IsStatusConditionTrue(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied) && object.Name != "first" {
				decided[object.Name] = true
			}
			if len(decided) == n {
				break
			}
		}
		changes.Stop()
	}
	took := time.Since(began)
	if len(decided) < n {
		t.Fatalf("%d of %d placements are decided after %s\n%s", len(decided), n, took, controller)
	}
	t.Logf("%d placements were created in %.1f s and decided after %.1f s", n, (<-created).Seconds(), took.Seconds())
	changes := <-latencies
	t.Logf("%d placements changed meanwhile were decided after %v", len(changes), changes)
	// Both times are longer on a machine that is many times as slow as usual. A change that waited for its turn would take half
	// of the time or more.
	if slowest, most := slices.Max(changes), max(time.Second, took/4); slowest > most {
		t.Errorf("a change was decided after %s, want at most %s", slowest, most)
	}
	report := func(when string) map[string]float64 {
		now := writes(t, metrics)
		total := 0.0
		for verb, count := range now {
			now[verb] = count - before[verb]
			total += now[verb]
		}
		t.Logf("%s: writes by verb %v, %.2f for each placement; peak memory of the controller %d MiB", when, now, total/float64(n),
			controller.PeakMemory()>>20)
		return now
	}
	report("after all decisions")
	// The controller stops writing: decisions do not cause each other.
	last := ""
	eventually.True(t, "the controller does not stop writing", controller, func(context.Context) (bool, error) {
		wait := time.NewTimer(2 * time.Second)
		defer wait.Stop()
		<-wait.C
		previous := last
		last = fmt.Sprint(writes(t, metrics))
		return previous == last, nil
	})
	final := report("after the last write")
	// Further writes are caused by changes, and by placements whose decisions depend on later decisions.
	more := 0.1*float64(n) + float64(2*len(changes))
	// The controller can observe the status of a placement before its PlacementDecision: it then tries to create it again.
	if final["create"] < float64(n) || final["create"] > float64(n)+more {
		t.Errorf("%v PlacementDecisions were created, want %d", final["create"], n)
	}
	if final["update"] > more || final["status"] > float64(n)+more {
		t.Errorf(
			"decisions were updated %v times, the status of placements was written %v times, want at most %.0f and %.0f for %d placements",
			final["update"], final["status"], more, float64(n)+more, n,
		)
	}
}

// changeMeanwhile changes some placements while n are decided, among them the placement that
// was created last. It returns how long each change took until it was decided.
func changeMeanwhile(ctx context.Context, c *testcluster.Cluster, t *testing.T, n int) (latencies []time.Duration) {
	t.Helper()
	for _, i := range []int{n - 1, n / 2, 0, n - 2, n / 3} {
		object := &v1beta1.Placement{}
		key := client.ObjectKey{Namespace: testcluster.Team, Name: fmt.Sprint("burst-", i)}
		for c.Client.Get(ctx, key, object) != nil { // it is being created
			if ctx.Err() != nil {
				return latencies
			}
		}
		began := time.Now()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"numberOfClusters":7}}`))
		if err := c.Client.Patch(ctx, object, patch); err != nil {
			t.Error(err)
			return latencies
		}
		for object.Status.NumberOfSelectedClusters != 7 {
			if err := c.Client.Get(ctx, key, object); err != nil {
				t.Error(err)
				return latencies
			}
		}
		latencies = append(latencies, time.Since(began).Round(time.Millisecond))
	}
	return latencies
}

// While the controller decides many placements of one namespace, a placement of another
// namespace is decided before most of them.
func TestPlacementFairness(t *testing.T) {
	const n = 600
	h, _ := startBigFleet(t, 20)
	h.Apply(t,
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "other"},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
			"metadata": map[string]any{"name": "fleet", "namespace": "other"}, "spec": map[string]any{"clusterSet": "fleet"},
		}})
	var creators errgroup.Group
	creators.SetLimit(16)
	for i := range n {
		creators.Go(func() error {
			return h.Client.Create(t.Context(),
				testcluster.PlacementIn(testcluster.Team, fmt.Sprint("flood-", i), map[string]any{"numberOfClusters": int64(2)}))
		})
	}
	must.Succeed(t, creators.Wait())
	// The first decision of the flood shows that all its placements are in the queue.
	late := testcluster.PlacementIn("other", "late", map[string]any{"numberOfClusters": int64(2)})
	first := killAtFirst(t, h, func() {
		must.Succeed(t, h.Client.Create(t.Context(), late))
	})
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	first()
	decisions := func(ctx context.Context, namespace string) ([]clusterv1beta1.PlacementDecision, error) {
		var list clusterv1beta1.PlacementDecisionList
		err := h.Client.List(ctx, &list, client.InNamespace(namespace))
		return list.Items, err
	}
	var own []clusterv1beta1.PlacementDecision
	eventually.True(t, "the placement of the other namespace is not decided", controller, func(ctx context.Context) (_ bool, err error) {
		own, err = decisions(ctx, "other")
		return len(own) > 0, err
	})
	flood, err := decisions(t.Context(), testcluster.Team)
	must.Succeed(t, err)
	// Revisions of etcd have the order of the writes, however late this test sees them.
	before := 0
	for i := range flood {
		if at := revision(t, &flood[i]); at > revision(t, late) && at < revision(t, &own[0]) {
			before++
		}
	}
	t.Logf("%d of %d others were decided between its creation and its decision", before, n)
	if before > n/2 {
		t.Errorf("%d of %d placements of another namespace were decided before", before, n)
	}
	controller.Stop(t)
}

// revision returns the revision of etcd in which an object was last written.
func revision(t *testing.T, object client.Object) uint64 {
	t.Helper()
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	must.Succeed(t, err)
	return revision
}

// writes returns the number of writes of the controller by verb.
func writes(t *testing.T, metrics string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(testcluster.Scrape(t, metrics, "plimsoll_placement_writes_total{")) {
		verb, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, `plimsoll_placement_writes_total{verb="`)), `"} `)
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(line, err)
		}
		out[verb] = count
	}
	return out
}
