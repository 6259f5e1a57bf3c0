package placement

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// startAgents starts a hub that is the member cluster1, the member cluster2, their agents and the controller of placements. The nodes of
// the members have these cores.
func startAgents(t *testing.T, cores ...[]string) (controller *program.Process, members []*testcluster.Cluster) {
	t.Helper()
	h := testcluster.StartFleetHub(t)
	for _, object := range testcluster.Example(t, "fleet.yaml") {
		if object.GetKind() != "ManagedCluster" {
			h.Apply(t, object)
		}
	}
	controller = h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	members = []*testcluster.Cluster{h.Cluster, testcluster.Start(t)}
	for i, member := range members {
		cluster, kubeconfig := fmt.Sprint("cluster", i+1), filepath.Join(t.TempDir(), "hub")
		h.Accept(t, cluster)
		h.Patch(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1beta2.ClusterSetLabel: "fleet"}},
		})
		h.Credentials(t, cluster, kubeconfig)
		for j, c := range cores[i] {
			member.Create(t, testcluster.ReadyNode(fmt.Sprint("node-", j), c, "64Gi", nil))
		}
		agent := member.StartController(t, append(member.AgentFlags(t), "--cluster-name="+cluster, "--hub-kubeconfig="+kubeconfig)...)
		t.Cleanup(func() { agent.Stop(t) })
	}
	return controller, members
}

// The agents of two member clusters report free cores to the hub. A placement in either version selects by that score, also after it
// changes.
func TestPlacementByAgents(t *testing.T) {
	controller, members := startAgents(t, []string{"8"}, []string{"16"})
	h := members[0]
	for _, file := range []string{"v1alpha1/6-addon-scores.yaml", "6-addon-scores/placement.yaml"} {
		placement := testcluster.Example(t, file)
		h.Apply(t, placement...)
		h.AwaitChosen(t, controller, "free-cores", "cluster2")
		// 15 of the 16 cores of cluster2 are requested.
		members[1].Create(t, testcluster.RunningPod("busy", "node-0", "15", "1Gi"))
		began := time.Now()
		h.AwaitChosen(t, controller, "free-cores", "cluster1")
		t.Logf("%s: the decision changed %.1f s after the pod was created; agents report every second", file, time.Since(began).Seconds())
		must.Succeed(t, members[1].Client.Delete(
			t.Context(), &v1.Pod{ObjectMeta: testcluster.RunningPod("busy", "", "0", "0").ObjectMeta}, client.GracePeriodSeconds(0),
		))
		h.AwaitChosen(t, controller, "free-cores", "cluster2")
		h.DeletePlacements(t, controller, placement...)
	}
	controller.Stop(t)
}
