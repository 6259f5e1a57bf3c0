package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// poolNode returns the manifest of a node of the pool web with 4 cores and 16 GiB.
func poolNode(name string) string {
	const amounts = `{cpu: "4", memory: 16Gi, pods: "110"}`
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {pool: web, kubernetes.io/hostname: %s}}\nstatus: "+
		"{allocatable: %s, capacity: %s}\n---\n", name, name, amounts, amounts)
}

// Specs of pods with 1 core: one with required anti-affinity between its pods, one with a
// host port.
const (
	antiAffinitySpec = `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: ` +
		`kubernetes.io/hostname, labelSelector: {matchLabels: {app: spread}}}]}}, ` +
		`containers: [{name: main, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]`
	hostPortSpec = `containers: [{name: main, image: web, ports: [{containerPort: 80, hostPort: 80}], resources: {requests: {cpu: "1",` +
		` memory: 1Gi}}}]`
)

// podOn returns the manifest of a pod that runs on a node, or is pending if the name is empty.
func podOn(name, node, app, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {app: %s}}\nspec: {nodeName: %q, %s}\n---\n", name, app,
		node, spec)
}

func runManifests(t *testing.T, a *scaling.Config, text string) (result.Run, map[string]string) {
	t.Helper()
	objects, err := manifest.Read([]string{"-"}, strings.NewReader(text))
	must.Succeed(t, err)
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Tail, o.Autoscaler = 3600, a
	r := &recorder{nodes: map[string]string{}}
	o.Placed = r.placed
	return outcomeOf(t, recording.Source{}.FromManifests(objects), o), r.nodes
}

// TestConstrainedPodsMove has three nodes of a group with one pod each, which requests a quarter of
// the node. Pods a and b have anti-affinity; the host port of the third pod is free on the other
// nodes. web-0 is removed: pod a moves to web-2, as web-1 runs b. Then b fits on no other node, as
// web-2 runs a, and web-2 is needed. Neither of two nodes with pods with anti-affinity is removed.
func TestConstrainedPodsMove(t *testing.T) {
	got, on := runManifests(t, autoscalerConfig(t, "label=pool=web"),
		poolNode("web-0")+poolNode("web-1")+poolNode("web-2")+
			podOn("a", "web-0", "spread", antiAffinitySpec)+podOn("b", "web-1", "spread", antiAffinitySpec)+
			podOn("port", "web-2", "port", hostPortSpec))
	if got.Scaling.NodesRemoved != 1 || got.Churn != 1 || got.Unschedulable != 0 {
		t.Errorf("%+v, %d pods evicted, %v", got.Scaling, got.Churn, got.Reasons)
	}
	if diff := cmp.Diff(map[string]string{"a": "web-2"}, on); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, _ = runManifests(t, autoscalerConfig(t, "label=pool=web"),
		poolNode("web-0")+poolNode("web-1")+podOn("a", "web-0", "spread", antiAffinitySpec)+podOn("b", "web-1", "spread", antiAffinitySpec))
	if got.Scaling.NodesRemoved != 0 || got.Churn != 0 {
		t.Errorf("two pods with anti-affinity: %+v, %d pods evicted", got.Scaling, got.Churn)
	}
}

// TestWorkloadPlaceholders verifies that a workload with anti-affinity that requests two
// placeholders gets them on two additional nodes.
func TestWorkloadPlaceholders(t *testing.T) {
	deployment := fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: spread, annotations: {plimsoll.dev/slack: \"2\"}}\n"+
		"spec: {replicas: 1, selector: {matchLabels: {app: spread}}, template: {metadata: {labels: {app: spread}}, spec: {%s}}}\n",
		antiAffinitySpec)
	got, _ := runManifests(t, withSlack(autoscalerConfig(t, "label=pool=web,boot=60"), "0"),
		poolNode("web-0")+podOn("a", "web-0", "spread", antiAffinitySpec)+deployment)
	if got.Scaling.NodesAdded != 2 || got.Scaling.NodesRemoved != 0 || got.Scaling.ScaleUps != 1 {
		t.Errorf("%+v", got.Scaling)
	}
}
