package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/test/support/tcpproxy"
)

// The agents of three member clusters, each with a control plane of its own, report free
// cores to the hub. A placement in either version selects by that score, also after it
// changes.
func TestPlacementByAgents(t *testing.T) {
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
	members := map[string]*testCluster{}
	for i, cores := range []string{"4", "8", "16"} {
		cluster := fmt.Sprint("cluster", i+1)
		agents.accept(t, cluster)
		h.patch(t, &clusterv1.ManagedCluster{ObjectMeta: runningPod(cluster, "", "0", "0").ObjectMeta}, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1beta2.ClusterSetLabel: "fleet"}},
		})
		kubeconfig := filepath.Join(t.TempDir(), "hub")
		agents.credentials(t, cluster, kubeconfig)
		member, flags := startMember(t)
		member.create(t, readyNode("node", cores, "64Gi", nil))
		agent := member.startController(t, append(flags, "--cluster-name="+cluster, "--hub-kubeconfig="+kubeconfig)...)
		defer agent.Stop(t)
		members[cluster] = member
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		placement := example(t, filepath.Join("6-addon-scores", "placement."+version+".yaml"))
		h.apply(t, placement...)
		h.awaitChosen(t, controller, "free-cores", "cluster3")
		// 15 of the 16 cores of cluster3 are requested.
		members["cluster3"].create(t, runningPod("busy", "node", "15", "1Gi"))
		began := time.Now()
		h.awaitChosen(t, controller, "free-cores", "cluster2")
		t.Logf(
			"%s: the decision changed %.1f s after the pod was created; agents report every second", version, time.Since(began).Seconds(),
		)
		if err := members["cluster3"].client.Delete(
			t.Context(), &v1.Pod{ObjectMeta: runningPod("busy", "", "0", "0").ObjectMeta}, client.GracePeriodSeconds(0),
		); err != nil {
			t.Fatal(err)
		}
		h.awaitChosen(t, controller, "free-cores", "cluster3")
		h.deletePlacements(t, controller, placement...)
	}
	controller.Stop(t)
}
