package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/tcpproxy"
)

// TestPlacementByFit checks the way from the nodes of two member clusters to a decision: a workload of 30 CPUs on one node is decided
// onto the cluster that it fits, although the other one has more CPUs in sum, and another placement does not get the same room.
func TestPlacementByFit(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	config, err := h.Config("test", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	agents := &fleetHub{config, h.client, kube, tcpproxy.Start(t, strings.TrimPrefix(config.Host, "https://"))}
	for _, object := range example(t, "fleet.yaml") {
		if object.GetKind() != "ManagedCluster" {
			h.apply(t, object)
		}
	}
	controller := h.startController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	for cluster, nodes := range map[string][]string{"cluster1": {"16", "16", "16"}, "cluster2": {"40"}} {
		agents.accept(t, cluster)
		h.patch(t, &clusterv1.ManagedCluster{ObjectMeta: runningPod(cluster, "", "0", "0").ObjectMeta}, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1beta2.ClusterSetLabel: "fleet"}},
		})
		kubeconfig := filepath.Join(t.TempDir(), "hub")
		agents.credentials(t, cluster, kubeconfig)
		member, flags := startMember(t)
		for i, cores := range nodes {
			member.create(t, readyNode(fmt.Sprint("node-", i), cores, "64Gi", nil))
		}
		agent := member.startController(t, append(flags, "--cluster-name="+cluster, "--hub-kubeconfig="+kubeconfig)...)
		defer agent.Stop(t)
	}
	h.apply(t, example(t, "fit/placement.yaml")...)
	h.awaitChosen(t, controller, "solver", "cluster2")
	var decisions clusterv1beta1.PlacementDecisionList
	if err := h.client.List(t.Context(), &decisions, client.InNamespace("team")); err != nil {
		t.Fatal(err)
	}
	if got := decisions.Items[0].Annotations[v1beta1.AnnotationReplicas]; !strings.HasPrefix(got, `{"cluster2":{"replicas":1,"since":`) {
		t.Errorf("annotation %q", got)
	}
	second := example(t, "fit/placement.yaml")
	second[0].SetName("second")
	h.apply(t, second...)
	eventually.True(t, "the second placement got the same room", controller, func(ctx context.Context) (bool, error) {
		var p v1beta1.Placement
		if err := h.client.Get(ctx, client.ObjectKey{Namespace: "team", Name: "second"}, &p); err != nil {
			return false, err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
		return c != nil && strings.Contains(c.Message, "the workload does not fit 2 clusters") &&
			strings.Contains(
				c.Message,
				"cluster1: 0 replicas fit of 1: needs 30 CPU on one node; the largest free node of cluster1 has 16",
			), nil
	})
	table, _ := mustPlimsoll(t, "placement", "fit", "-f", "../../examples/placement/fit/workload.yaml", "--kubeconfig", h.Kubeconfig)
	if !strings.Contains(table, "cluster1") || !strings.Contains(table, "cluster2") {
		t.Errorf("fit of the clusters of the hub:\n%s", table)
	}
	if changes, _ := mustPlimsoll(t, "placement", "rebalance", "--dry-run", "--kubeconfig", h.Kubeconfig); changes == "" {
		t.Error("rebalance prints nothing")
	}
}
