//go:build foreign

package servers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/karpenter"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestSlackChurnWithKarpenter counts the pods that Karpenter evicts beside placeholders, with two profiles and two settings of
// consolidationPolicy. With WhenEmpty it must evict none. A node of 8 CPUs has room for 7 pods of 1 CPU. 20 pods of a batch
// arrive, then 4 web pods, and the batch ends. With a slack of 50%, this requires these nodes, because slack decreases after ten
// minutes only:
//
//	with batch     (4 + 20 + 4 + 14) / 7 = 6
//	after it       (8 + 14) / 7, rounded up = 4
func TestSlackChurnWithKarpenter(t *testing.T) {
	for _, profile := range []string{"default", "most-allocated"} {
		for _, consolidation := range []string{"WhenEmptyOrUnderutilized", "WhenEmpty"} {
			t.Run(profile+" "+consolidation, func(t *testing.T) {
				evicted := countEvicted(t, profile, consolidation)
				if consolidation == "WhenEmpty" && evicted != 0 {
					t.Errorf("%d pods evicted, want 0: only empty nodes may be removed", evicted)
				}
			})
		}
	}
}

// startChurnCluster starts Karpenter with a pool of nodes of 8 CPUs and a scheduler with a profile, and returns Karpenter's log.
func startChurnCluster(t *testing.T, profile, consolidation string) (*testcluster.Cluster, *program.Output) {
	t.Helper()
	crds, err := testcluster.KarpenterSource(t).CRDs()
	must.Succeed(t, err)
	c := testcluster.Start(t, crds...)
	log := startKarpenter(t, c)
	config, err := engine.ReadConfig(profile)
	must.Succeed(t, err)
	const access = "%s\nleaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %q}\n"
	program.Start(t, program.Path(t, "plimsoll-scheduler"),
		"--config="+testcluster.WriteFile(t, fmt.Sprintf(access, config.Text, c.Kubeconfig)), "--secure-port=0")
	pool, err := karpenter.Pool("8", 0)
	must.Succeed(t, err)
	for _, object := range pool {
		if object.GetKind() == "NodePool" {
			must.Succeed(t, unstructured.SetNestedField(object.Object, consolidation, "spec", "disruption", "consolidationPolicy"))
		}
		c.Create(t, object)
	}
	return c, log
}

// countEvicted runs the pods of TestSlackChurnWithKarpenter and returns how many were evicted: the pods that were created in addition to
// those that the Deployments requested.
func countEvicted(t *testing.T, profile, consolidation string) int {
	t.Helper()
	c, log := startChurnCluster(t, profile, consolidation)
	pods := c.RecordChanges(t, v1.SchemeGroupVersion.WithKind("Pod"))
	c.StartController(t)
	c.Scale(t, log, "web", 4)
	c.Create(t, testcluster.PolicyOf("general", "50%", testcluster.InPool("general")))
	c.Scale(t, log, "batch", 20)
	c.Scale(t, log, "web", 8)
	var before, after []string
	eventually.True(t, "fewer than 6 nodes", log, func(ctx context.Context) (bool, error) {
		var err error
		before, err = nodes(ctx, c)
		return len(before) >= 6, err
	})
	start := time.Now()
	c.Scale(t, log, "batch", 0)
	// Nodes with few pods may remain.
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 100*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		after, err = nodes(ctx, c)
		return len(after) <= 4, err
	})
	if err != nil && !wait.Interrupted(err) {
		t.Fatal(err)
	}
	evicted := -(4 + 20 + 4)
	for _, change := range pods.Changes() {
		if strings.HasPrefix(change, "ADDED web-") || strings.HasPrefix(change, "ADDED batch-") {
			evicted++
		}
	}
	t.Logf("nodes with the batch %d, %.0f s after it %d; %d pods evicted", len(before), time.Since(start).Seconds(), len(after), evicted)
	return evicted
}
