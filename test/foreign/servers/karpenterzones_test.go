//go:build foreign

package servers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// runController runs the slack controller in this process, with a clock, until the test ends.
func runController(t *testing.T, c *testcluster.Cluster, now func() time.Time) {
	t.Helper()
	access, err := c.Config("plimsoll-controller", "system:masters")
	must.Succeed(t, err)
	manager, err := setup.New(access, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	must.Succeed(t, err)
	recorder := manager.GetEventRecorder("plimsoll-controller")
	controller := slack.New(manager.GetClient(), recorder, prometheus.NewRegistry(), testcluster.SystemNamespace, "")
	controller.SetClock(now)
	must.Succeed(t, controller.Register(manager))
	ctx, cancel := context.WithCancel(context.Background())
	exited := make(chan error)
	go func() { exited <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-exited; err != nil {
			t.Error(err)
		}
	})
}

// nodesByZone returns the numbers of nodes of pool general by zone.
func nodesByZone(ctx context.Context, c *testcluster.Cluster) (map[string]int, error) {
	var list v1.NodeList
	err := c.Client.List(ctx, &list, client.MatchingLabels{"pool": "general"})
	zones := map[string]int{}
	for _, node := range list.Items {
		zones[node.Labels[v1.LabelTopologyZone]]++
	}
	return zones, err
}

// TestSlackZonesWithKarpenter checks a schedule of a policy that is spread over three zones with Karpenter. Each zone has a node of
// 4 CPUs with a pod of 3. The policy holds a placeholder of 3 CPUs in each, and another one while the schedule applies.
func TestSlackZonesWithKarpenter(t *testing.T) {
	c, log, pool := startKarpenterCluster(t)
	zones := []any{"test-zone-a", "test-zone-b", "test-zone-c"}
	for _, object := range pool {
		if requirements, ok, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "requirements"); ok {
			zone := map[string]any{"key": v1.LabelTopologyZone, "operator": "In", "values": zones}
			requirements = append(requirements, zone)
			must.Succeed(t, unstructured.SetNestedSlice(object.Object, requirements, "spec", "template", "spec", "requirements"))
		}
		c.Create(t, object)
	}
	for _, zone := range zones {
		pod := testcluster.RunningPod(fmt.Sprint(zone), "", "3", "1Gi")
		pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: fmt.Sprint(zone)}
		pod.Labels = map[string]string{"app": "web"}
		c.Create(t, pod)
	}
	eventually.True(t, "the pods are not running", log, func(ctx context.Context) (bool, error) {
		nodes, err := runningNodes(ctx, c, "web")
		return len(nodes) == len(zones), err
	})
	start := time.Now()
	awaitZones := func(each int) {
		t.Helper()
		var got map[string]int
		message := fmt.Sprintf("want %d nodes in each of %v", each, zones)
		eventually.TrueWithin(t, 3*time.Minute, 100*time.Millisecond, message, log, func(ctx context.Context) (bool, error) {
			var err error
			got, err = nodesByZone(ctx, c)
			return fmt.Sprint(got) == fmt.Sprintf("map[test-zone-a:%[1]d test-zone-b:%[1]d test-zone-c:%[1]d]", each), err
		})
		t.Logf("%.1f s: nodes by zone %v", time.Since(start).Seconds(), got)
	}
	awaitZones(1)

	// The clock of the controller stands still, except for its steps.
	const begin, end = "2026-11-25T19:00:00Z", "2026-11-25T20:00:00Z"
	var clock atomic.Pointer[time.Time]
	setClock := func(text string) {
		t.Helper()
		instant, err := time.Parse(time.RFC3339, text)
		must.Succeed(t, err)
		clock.Store(&instant)
	}
	setClock("2026-11-25T18:59:00Z")
	runController(t, c, func() time.Time { return *clock.Load() })
	policy := testcluster.PolicyOf("general", "0", func(s *v1alpha1.ResourceSlackSpec) {
		s.Pool.NodeSelector = map[string]string{"pool": "general"}
		s.CoverBiggestPod, s.Granularity = new(false), new(int32(1))
		s.Schedules = []v1alpha1.Schedule{{From: "19:00", To: "20:00", Minimum: testcluster.AmountOf("", "", 6)}}
		s.Spread = &v1alpha1.Spread{TopologyKey: v1.LabelTopologyZone}
	})
	c.Create(t, policy)
	// awaitPlan waits until each zone has placeholders and their nodes, and the policy has this next change and is ready.
	awaitPlan := func(each int64, next string) {
		t.Helper()
		buffers := map[string]string{}
		for _, zone := range zones {
			buffers[fmt.Sprint("general-rate-", zone)] = fmt.Sprintf("%d x 3 1Gi", each)
		}
		c.AwaitBuffers(t, log, buffers)
		message := fmt.Sprintf("want the next change at %s, %d placeholders in each of 3 domains, and Ready", next, each)
		eventually.TrueWithin(t, 3*time.Minute, 100*time.Millisecond, message, log, func(ctx context.Context) (bool, error) {
			err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, policy)
			status := &policy.Status
			return err == nil && status.Schedule != nil && status.Schedule.NextChange.UTC().Format(time.RFC3339) == next &&
				status.PerDomain == each && len(status.Domains) == 3 && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady), err
		})
		awaitZones(1 + int(each))
	}
	// change sets the clock, and an annotation so that the controller reads it.
	change := func(text string) {
		t.Helper()
		setClock(text)
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {"clock": %q}}}`, text))
		must.Succeed(t, c.Client.Patch(t.Context(), policy, patch))
	}
	awaitPlan(1, begin)
	change(begin)
	awaitPlan(2, end)
	change(end)
	awaitPlan(1, "2026-11-26T19:00:00Z")
}
