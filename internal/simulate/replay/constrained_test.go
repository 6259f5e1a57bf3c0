package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/input"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// poolNode is a node of 4 cores of the pool web.
func poolNode(name string) string {
	const amounts = `{cpu: "4", memory: 16Gi, pods: "110"}`
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {pool: web, kubernetes.io/hostname: %s}}\nstatus: {allocatable: %s, capacity: %s}\n---\n", name, name, amounts, amounts)
}

// Specs of pods of 1 core: that must be apart from each other, and that takes a port
// of its node.
const (
	apartSpec = `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: apart}}}]}}, ` +
		`containers: [{name: main, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]`
	portSpec = `containers: [{name: main, image: web, ports: [{containerPort: 80, hostPort: 80}], resources: {requests: {cpu: "1", memory: 1Gi}}}]`
)

// podOn is a pod with labels that runs on a node, or on none yet.
func podOn(name, node, app, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {app: %s}}\nspec: {nodeName: %q, %s}\n---\n", name, app, node, spec)
}

func runManifests(t *testing.T, a *autoscaler.Config, text string) (result.Run, map[string]string) {
	t.Helper()
	objects, err := manifest.Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Tail, o.Autoscaler = 3600, a
	r := &recorder{nodes: map[string]string{}}
	o.Placed = r.placed
	return outcomeOf(t, input.FromManifests(objects), o), r.nodes
}

// Three nodes of a group, a quarter of each in use. a and b must be apart; the port of
// the third pod is free on all others. Each node has one pod to move. The first goes:
// a is not taken by web-1, which has b, but by web-2. Then b has nowhere to go, as web-2
// is to have a; and web-2 is needed. Of two nodes with pods that must be apart none goes.
func TestConstrainedPodsMove(t *testing.T) {
	got, on := runManifests(t, autoscalerConfig(t, "label=pool=web"),
		poolNode("web-0")+poolNode("web-1")+poolNode("web-2")+
			podOn("a", "web-0", "apart", apartSpec)+podOn("b", "web-1", "apart", apartSpec)+podOn("port", "web-2", "port", portSpec))
	if got.Scaling.NodesRemoved != 1 || got.Churn != 1 || got.Unschedulable != 0 {
		t.Errorf("%+v, %d had to move, %v", got.Scaling, got.Churn, got.Reasons)
	}
	if diff := cmp.Diff(map[string]string{"a": "web-2"}, on); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, _ = runManifests(t, autoscalerConfig(t, "label=pool=web"),
		poolNode("web-0")+poolNode("web-1")+podOn("a", "web-0", "apart", apartSpec)+podOn("b", "web-1", "apart", apartSpec))
	if got.Scaling.NodesRemoved != 0 || got.Churn != 0 {
		t.Errorf("two that must be apart: %+v, %d had to move", got.Scaling, got.Churn)
	}
}

// A workload that wants two placeholders like its pods gets them, on nodes of their
// own, as its pods must be apart.
func TestPlaceholdersOfAWorkload(t *testing.T) {
	deployment := fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: apart, annotations: {plimsoll.dev/slack: \"2\"}}\n"+
		"spec: {replicas: 1, selector: {matchLabels: {app: apart}}, template: {metadata: {labels: {app: apart}}, spec: {%s}}}\n", apartSpec)
	got, _ := runManifests(t, withSlack(autoscalerConfig(t, "label=pool=web,boot=60"), "0"), poolNode("web-0")+podOn("a", "web-0", "apart", apartSpec)+deployment)
	if got.Scaling.NodesAdded != 2 || got.Scaling.NodesRemoved != 0 || got.Scaling.ScaleUps != 1 {
		t.Errorf("%+v", got.Scaling)
	}
}
