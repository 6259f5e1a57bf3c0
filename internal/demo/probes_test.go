package demo

import (
	"fmt"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// When a probe is back the scheduler knows of every node and pod that there is and
// of none that has gone, and nothing is left of the probe.
func testProbe(t *testing.T, d *Demo) {
	ctx, c := t.Context(), d.cluster
	if err := c.clear(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		name := fmt.Sprintf("node-%d", i)
		if err := c.createNode(ctx, Node{Name: name, CPU: "8"}); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := c.deletePod(ctx, fmt.Sprintf("pod-%d-0", i-1)); err != nil {
				t.Fatal(err)
			}
		}
		for j := range 3 {
			if _, err := c.createPod(ctx, Pod{Name: fmt.Sprintf("pod-%d-%d", i, j), Node: name, Request: "1"}, DefaultProfile); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.probe(ctx); err != nil {
			t.Fatal(err)
		}
		known := c.scheduler.Cache.Dump() // at once: what comes later does not count
		nodes, pods, err := c.state(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// One pod of each node before this one is gone: 2 x i + 3.
		if len(nodes) != i+1 || len(pods) != 2*i+3 {
			t.Fatalf("%d nodes and %d pods after %s", len(nodes), len(pods), name)
		}
		have := map[string]int{}
		for _, pod := range pods {
			have[pod.Spec.NodeName]++
		}
		for _, node := range nodes {
			if info := known.Nodes[node.Name]; info == nil || info.Node() == nil || len(info.Pods) != have[node.Name] {
				t.Errorf("after %s the scheduler does not know %s with %d pods", name, node.Name, have[node.Name])
			}
		}
	}
	if err := c.clear(ctx); err != nil {
		t.Fatal(err)
	}
}

// When a probe is back the placement controller knows of what has changed of each
// cluster, and nothing is decided but what was before.
func testFleetProbe(t *testing.T, h *hub) {
	var clusters clusterv1.ManagedClusterList
	if err := h.api.List(t.Context(), &clusters); err != nil || len(clusters.Items) == 0 {
		t.Fatal(clusters, err)
	}
	for i := range 20 {
		cluster := &clusters.Items[i%len(clusters.Items)]
		before := cluster.DeepCopy()
		cluster.Annotations = map[string]string{"round": fmt.Sprint(i)}
		if err := h.api.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		if err := h.probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		known := &clusterv1.ManagedCluster{} // at once, as above
		if err := h.known.Get(t.Context(), client.ObjectKeyFromObject(cluster), known); err != nil || known.Annotations["round"] != fmt.Sprint(i) {
			t.Errorf("round %d: the controller knows %s with the annotations %v (%v)", i, cluster.Name, known.Annotations, err)
		}
		if left, err := h.decisions(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("round %d: %v is decided, %v", i, left, err)
		}
	}
}
