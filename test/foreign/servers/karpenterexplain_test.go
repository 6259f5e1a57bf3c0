//go:build foreign

package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// heldNode is a node with a pod that keeps it, or that is kept.
type heldNode struct {
	// pod changes the pod of the node, node the node, and budgets has how many disruptions each budget of the pod allows.
	pod     func(pod *v1.Pod, node string)
	node    func(node *v1.Node)
	budgets []int32
	// constraint is the kind that plimsoll explain node names, and event a part of the text of Karpenter's event. Without room, Karpenter
	// would need a new node, and says why it adds none.
	constraint, event string
	// zone of the node.
	zone string

	name string
}

// heldNodes returns twelve nodes, each held by another reason.
func heldNodes() map[string]*heldNode {
	const key = "karpenter.sh/do-not-disrupt"
	budgets := func(allowed ...int32) *heldNode {
		return &heldNode{budgets: allowed, constraint: "budget", event: "pdb prevents pod evictions"}
	}
	room := func(change func(pod *v1.Pod, node string)) *heldNode {
		return &heldNode{pod: change, constraint: "no room"}
	}
	zoned := room(func(pod *v1.Pod, _ string) {
		source := v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: source}}
	})
	zoned.zone = "test-zone-b"
	disk := room(func(pod *v1.Pod, _ string) { pod.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
	disk.node = func(node *v1.Node) { node.Labels["disk"] = "ssd" }
	device := room(func(pod *v1.Pod, _ string) {
		resources := &pod.Spec.Containers[0].Resources
		resources.Limits = v1.ResourceList{"example.com/device": resource.MustParse("1")}
		resources.Requests["example.com/device"] = resource.MustParse("1")
	})
	device.node = func(node *v1.Node) { node.Status.Allocatable["example.com/device"] = resource.MustParse("1") }
	daemon := budgets(0)
	daemon.pod = func(pod *v1.Pod, _ string) {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: new(true)},
		}
	}
	return map[string]*heldNode{
		"budget":      budgets(0),
		"two-budgets": {budgets: []int32{1, 1}, constraint: "budget", event: "eviction does not support multiple PDBs"},
		"daemon":      daemon,
		"annotated-pod": {
			pod:        func(pod *v1.Pod, _ string) { pod.Annotations = map[string]string{key: "true"} },
			constraint: "annotation", event: `pod has "karpenter.sh/do-not-disrupt" annotation`,
		},
		"annotated-for-a-time": {
			pod:        func(pod *v1.Pod, _ string) { pod.Annotations = map[string]string{key: "10h"} },
			constraint: "annotation", event: `pod has "karpenter.sh/do-not-disrupt" annotation`,
		},
		"annotated-node": {
			node:       func(node *v1.Node) { node.Annotations[key] = "true" },
			constraint: "annotation", event: `disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation`,
		},
		"cpu": room(func(pod *v1.Pod, _ string) {
			pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("3850m") // of 3.9
		}),
		"hostname": room(func(pod *v1.Pod, node string) { pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: node} }),
		"anti-affinity": room(func(pod *v1.Pod, _ string) {
			others := v1.PodAffinityTerm{
				TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"held": "true"}},
			}
			delete(pod.Labels, "held")
			pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{others},
			}}
		}),
		"label":  disk,
		"volume": zoned,
		"device": device,
	}
}

// explainedNodes returns what plimsoll explain node says of each node.
func explainedNodes(t *testing.T, c *testcluster.Cluster) map[string]*scaling.ExplainedNode {
	t.Helper()
	stdout, _ := testcluster.MustPlimsoll(t, "explain", "node", "-o", "json", "--kubeconfig", c.Kubeconfig)
	var explained scaling.NodesExplanation
	must.Succeed(t, json.Unmarshal([]byte(stdout), &explained))
	byName := map[string]*scaling.ExplainedNode{}
	for _, n := range explained.Nodes {
		byName[n.Name] = n
	}
	return byName
}

// provisionNodes makes Karpenter add a node for each pod of 3 CPUs, and removes these pods.
func provisionNodes(t *testing.T, c *testcluster.Cluster, log fmt.Stringer, all map[string]*heldNode) {
	t.Helper()
	for name, n := range all {
		filler := testcluster.RunningPod("filler-"+name, "", "3", "1Gi")
		filler.Labels = map[string]string{"app": "filler"}
		if n.zone == "" {
			n.zone = "test-zone-a"
		}
		filler.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: n.zone}
		c.Create(t, filler)
	}
	eventually.TrueWithin(t, 3*time.Minute, 100*time.Millisecond, "no node for each", log, func(ctx context.Context) (bool, error) {
		running, err := runningNodes(ctx, c, "filler")
		return len(running) == len(all), err
	})
	for name, n := range all {
		filler := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "filler-" + name, Namespace: "default"}}
		must.Succeed(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(filler), filler))
		n.name = filler.Spec.NodeName
		must.Succeed(t, c.Client.Delete(t.Context(), filler, client.GracePeriodSeconds(0)))
	}
}

// hold creates the pod of a node with what keeps it, or nothing that keeps it if it is free.
func hold(t *testing.T, c *testcluster.Cluster, name string, n *heldNode, isFree bool) {
	t.Helper()
	pod := testcluster.RunningPod(name, "", "100m", "64Mi")
	pod.Spec.SchedulerName = "none" // bound below
	pod.Labels = map[string]string{"app": name, "held": "true"}
	if n.pod != nil && !isFree {
		n.pod(pod, n.name)
	}
	if isFree {
		old := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		must.Succeed(t, c.Client.Delete(t.Context(), old, client.GracePeriodSeconds(0)))
	}
	c.Create(t, pod)
	binding := &v1.Binding{Target: v1.ObjectReference{Kind: "Node", Name: n.name}}
	must.Succeed(t, c.Client.SubResource("binding").Create(t.Context(), pod, binding))
	for i, allowed := range n.budgets {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name, i), Namespace: "default"}}
		if isFree && i > 0 {
			must.Succeed(t, c.Client.Delete(t.Context(), budget))
			continue
		}
		if isFree {
			must.Succeed(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
			allowed = 1
		} else {
			budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
			budget.Spec.MinAvailable = new(intstr.FromInt32(1))
			c.Create(t, budget)
		}
		budget.Status = policyv1.PodDisruptionBudgetStatus{ // as the disruption controller, which does not run, would set it
			ObservedGeneration: 1, CurrentHealthy: 1 + allowed, DesiredHealthy: 1, ExpectedPods: 1, DisruptionsAllowed: allowed,
		}
		must.Succeed(t, c.Client.Status().Update(t.Context(), budget))
	}
	if n.node == nil {
		return
	}
	node := &v1.Node{}
	must.Succeed(t, c.Client.Get(t.Context(), client.ObjectKey{Name: n.name}, node))
	before := node.DeepCopy()
	if n.node(node); isFree {
		delete(node.Annotations, "karpenter.sh/do-not-disrupt")
		delete(node.Labels, "disk")
	}
	status := node.DeepCopy()
	must.Succeed(t, c.Client.Patch(t.Context(), node, client.MergeFrom(before)))
	must.Succeed(t, c.Client.Status().Patch(t.Context(), status, client.MergeFrom(before)))
}

// TestExplainNodeWithKarpenter compares plimsoll explain node with Karpenter, which consolidates twelve nodes that are held, each by another
// reason, one that is free, and one that has room for all pods and must stay: the free one goes, and Karpenter has the same reason for each
// of the others. After the changes, all twelve can go and do.
func TestExplainNodeWithKarpenter(t *testing.T) {
	t.Parallel()
	c, log, pool := startKarpenterCluster(t)
	for _, object := range pool {
		if object.GetKind() == "NodePool" {
			disruption := map[string]any{"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never"}
			disruption["budgets"] = []any{map[string]any{"nodes": "100%"}}
			must.Succeed(t, unstructured.SetNestedMap(object.Object, disruption, "spec", "disruption"))
		}
		c.Create(t, object)
	}
	c.Create(t, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
		Capacity: v1.ResourceList{
			v1.ResourceStorage: resource.MustParse("1Gi"),
		},
		AccessModes:            []v1.PersistentVolumeAccessMode{"ReadWriteOnce"},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "csi.test", VolumeHandle: "1"}},
		ClaimRef:               &v1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "default", Name: "data"},
		NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: "In", Values: []string{"test-zone-b"}}},
		}}}},
	}})
	c.Create(t, &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "data", Namespace: "default", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
		},
		Spec: v1.PersistentVolumeClaimSpec{
			VolumeName: "pv", StorageClassName: new(""), AccessModes: []v1.PersistentVolumeAccessMode{"ReadWriteOnce"},
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	held := heldNodes()
	all := maps.Clone(held)
	all["free"], all["room"] = &heldNode{}, heldNodes()["annotated-node"]
	provisionNodes(t, c, log, all)
	for name, n := range all {
		hold(t, c, name, n, false)
	}
	explained := explainedNodes(t, c)
	for name, n := range all {
		got := explained[n.name]
		switch {
		case n.constraint == "" && got.Result != scaling.CanGo:
			t.Errorf("%s: %+v, want it to go", name, got)
		case n.constraint != "" && (len(got.Constraints) == 0 || got.Constraints[0].Kind != n.constraint):
			t.Errorf("%s: %+v, want %s", name, got, n.constraint)
		}
	}
	general := &unstructured.Unstructured{}
	general.SetGroupVersionKind(pool[1].GroupVersionKind())
	general.SetName("general")
	polls := 0
	// consolidate enables consolidation, and changes the pool each 20 polls: Karpenter skips nodes that are nominated for a pod, and
	// considers nodes again when something has changed, or after five minutes.
	consolidate := func() {
		if polls++; polls%20 == 1 {
			after := fmt.Sprintf("%ds", 1+polls/20%2)
			c.Patch(t, general, map[string]any{"spec": map[string]any{"disruption": map[string]any{"consolidateAfter": after}}})
		}
	}
	var missing []string
	state := testcluster.TextOf{Text: new(string)}
	eventually.TrueWithin(t, 5*time.Minute, time.Second, "Karpenter does not agree", state, func(ctx context.Context) (bool, error) {
		consolidate()
		remaining, err := nodes(ctx, c)
		if err != nil {
			return false, err
		}
		var events v1.EventList
		if err := c.Client.List(ctx, &events); err != nil {
			return false, err
		}
		missing = nil
		for name, n := range all {
			if slices.Contains(remaining, n.name) == (n.constraint == "") {
				missing = append(missing, name)
			}
			isReason := func(e v1.Event) bool {
				isKind := e.Reason == "DisruptionBlocked" || n.constraint == "no room" && e.Reason == "Unconsolidatable"
				return e.InvolvedObject.Name == n.name && isKind && strings.Contains(strings.ToLower(e.Message), strings.ToLower(n.event))
			}
			if n.constraint != "" && !slices.ContainsFunc(events.Items, isReason) {
				missing = append(missing, name)
			}
		}
		*state.Text = ""
		for _, name := range missing {
			*state.Text += "\n" + name + " on " + all[name].name + ":"
			for _, e := range events.Items {
				if e.InvolvedObject.Name == all[name].name {
					*state.Text += "\n  " + e.Reason + ": " + e.Message
				}
			}
		}
		return len(missing) == 0, nil
	})
	for name, n := range held {
		hold(t, c, name, n, true)
	}
	eventually.TrueWithin(t, 5*time.Minute, time.Second, "nodes remain after the changes", log, func(ctx context.Context) (bool, error) {
		consolidate()
		remaining, err := nodes(ctx, c)
		return len(remaining) == 1 && remaining[0] == all["room"].name, err
	})
}
