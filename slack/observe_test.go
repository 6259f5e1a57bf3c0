package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const gib = 1 << 30

// noon is the time of all tests.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// list returns a list of CPU and memory, such as 500m and 1Gi.
func list(cpu, memory string) v1.ResourceList {
	return clustertest.Amounts("cpu", cpu, "memory", memory)
}

// newNode returns a ready node that supports 110 pods.
func newNode(name, cpu, memory string, changes ...func(*v1.Node)) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "web"}},
		Status: v1.NodeStatus{
			Allocatable: list(cpu, memory),
			Conditions: []v1.NodeCondition{{
				Type: v1.NodeReady, Status: v1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
			}},
		},
	}
	node.Status.Allocatable[v1.ResourcePods] = resource.MustParse("110")
	for _, change := range changes {
		change(node)
	}
	return node
}

// newPod returns a running pod with one container on a node.
func newPod(name, node, cpu, memory string, changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: list(cpu,
			memory)}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// newTracker returns a tracker with nodes and pods at noon.
func newTracker(t must.TB, policy *v1alpha1.ResourceSlack, nodes []*v1.Node, pods ...*v1.Pod) *Tracker {
	t.Helper()
	tracker, err := NewTracker(policy)
	must.Succeed(t, err)
	for _, node := range nodes {
		tracker.SetNode(node, noon)
	}
	for _, pod := range pods {
		tracker.SetPod(pod)
	}
	return tracker
}

func label(key, value string) func(*v1.Node) {
	return func(n *v1.Node) { n.Labels[key] = value }
}

func taint(key, value string, effect v1.TaintEffect) func(*v1.Node) {
	return func(n *v1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func cordoned(n *v1.Node) {
	n.Spec.Unschedulable = true
	taint(v1.TaintNodeUnschedulable, "", v1.TaintEffectNoSchedule)(n)
}

func deleting(n *v1.Node) { n.DeletionTimestamp = new(metav1.NewTime(noon)) }

// readySince sets condition Ready with the time since its last transition.
func readySince(status v1.ConditionStatus, since time.Duration) func(*v1.Node) {
	return conditions(v1.NodeCondition{Type: v1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-since))})
}

func conditions(all ...v1.NodeCondition) func(*v1.Node) {
	return func(n *v1.Node) { n.Status.Conditions = all }
}

func ownedBy(kind string, controller bool) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: "owner", Controller: &controller},
		}
	}
}

func annotated(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Annotations = map[string]string{key: value} }
}

func phase(phase v1.PodPhase) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Status.Phase = phase }
}

func placeholderOf(policy string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Labels = map[string]string{PlaceholderLabel: policy} }
}

func TestObserveNode(t *testing.T) {
	const (
		noSchedule = v1.TaintEffectNoSchedule
		noExecute  = v1.TaintEffectNoExecute
		prefer     = v1.TaintEffectPreferNoSchedule
	)
	web := v1alpha1.Pool{NodeSelector: map[string]string{"pool": "web"}}
	dedicated := web
	dedicated.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpEqual, Value: "web", Effect: noSchedule}}
	anything := web
	anything.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	all := v1alpha1.Pool{}
	type change = func(*v1.Node)
	tests := map[string]struct {
		pool           v1alpha1.Pool
		changes        []change
		inPool, usable bool
	}{
		"the labels of the pool":           {web, nil, true, true},
		"another value of the label":       {web, []change{label("pool", "db")}, false, true},
		"without the label":                {web, []change{func(n *v1.Node) { n.Labels = nil }}, false, true},
		"any node without a node selector": {all, []change{label("pool", "db")}, true, true},
		"control plane of k3s":             {all, []change{label(resources.ControlPlaneLabel, "true")}, true, true},
		"control plane of kubeadm":         {all, []change{taint(resources.ControlPlaneLabel, "", noSchedule)}, false, true},
		"tolerated control plane":          {anything, []change{taint(resources.ControlPlaneLabel, "", noSchedule)}, true, true},
		"NoSchedule taint":                 {web, []change{taint("dedicated", "web", noSchedule)}, false, true},
		"NoExecute taint":                  {web, []change{taint("dedicated", "web", noExecute)}, false, true},
		"removed by Karpenter":             {web, []change{taint("karpenter.sh/disrupted", "", noSchedule)}, true, false},
		"removed by Cluster Autoscaler":    {web, []change{taint("ToBeDeletedByClusterAutoscaler", "1", noSchedule)}, true, false},
		"PreferNoSchedule taint":           {web, []change{taint("dedicated", "web", prefer)}, true, true},
		"tolerated taint":                  {dedicated, []change{taint("dedicated", "web", noSchedule)}, true, true},
		"all taints tolerated": {
			anything, []change{taint("gpu", "", noSchedule), taint("dedicated", "db", noExecute)}, true, true,
		},
		"cordoned":               {web, []change{cordoned}, true, false},
		"deleting":               {web, []change{deleting}, true, false},
		"not ready for 59 s":     {web, []change{readySince(v1.ConditionFalse, 59*time.Second)}, true, true},
		"not ready for a minute": {web, []change{readySince(v1.ConditionFalse, time.Minute)}, true, false},
		// The clock was set back.
		"not ready in half a minute":       {web, []change{readySince(v1.ConditionFalse, -30*time.Second)}, true, true},
		"not ready in an hour":             {web, []change{readySince(v1.ConditionUnknown, -time.Hour)}, true, false},
		"cordoned, not ready for a second": {web, []change{cordoned, readySince(v1.ConditionFalse, time.Second)}, true, false},
		"no conditions, as in a manifest":  {web, []change{conditions()}, true, true},
		"cordoned while it boots": {
			web, []change{createdAgo(time.Minute), readySince(v1.ConditionFalse, time.Minute), cordoned}, true, false,
		},
		"conditions without Ready": {
			web, []change{conditions(v1.NodeCondition{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse})}, true, false,
		},
	}
	// Taints that describe the state of a node do not remove it from its pool, with any effect.
	for _, key := range []string{
		v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, v1.TaintNodeMemoryPressure,
		v1.TaintNodeDiskPressure, v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable, v1.TaintNodeOutOfService,
	} {
		tests[key] = struct {
			pool           v1alpha1.Pool
			changes        []change
			inPool, usable bool
		}{web, []change{taint(key, "", noSchedule), taint(key, "", noExecute)}, true, true}
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			node := newNode("a", "3500m", "14Gi", tc.changes...)
			want := ledgerNode{Usable: tc.usable, Allocatable: resources.Amounts{CPU: 3500, Memory: 14 * gib}, Slots: 110}
			if diff := cmp.Diff(want, observeNode(node, tc.pool.Devices, noon)); diff != "" || InPool(node, tc.pool) != tc.inPool {
				t.Errorf("in pool %t, want %t; -want +got:\n%s", InPool(node, tc.pool), tc.inPool, diff)
			}
		})
	}
}

// createdAgo sets the age of a node.
func createdAgo(age time.Duration) func(*v1.Node) {
	return func(n *v1.Node) { n.CreationTimestamp = metav1.NewTime(noon.Add(-age)) }
}

// TestBootingNode checks that a node that was never ready counts in the plan, and that no placeholder fits it until it is
// ready: slack is not available before a machine has booted.
func TestBootingNode(t *testing.T) {
	pressure := v1.NodeCondition{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse}
	for name, tc := range map[string]struct {
		age     time.Duration
		change  func(*v1.Node)
		booting bool
		usable  bool
	}{
		"boots for 5 minutes":            {5 * time.Minute, readySince(v1.ConditionFalse, 5*time.Minute-2*time.Second), true, true},
		"without Ready":                  {time.Minute, conditions(pressure), true, true},
		"ready":                          {time.Minute, readySince(v1.ConditionTrue, time.Second), false, true},
		"not ready after it was ready":   {time.Minute, readySince(v1.ConditionFalse, 30*time.Second), false, true},
		"never ready for 15 minutes":     {bootTime, readySince(v1.ConditionFalse, bootTime), false, false},
		"not ready again, for 2 minutes": {5 * time.Minute, readySince(v1.ConditionUnknown, 2*time.Minute), false, false},
	} {
		nodes := []*v1.Node{newNode("old", "4", "16Gi"), newNode("new", "4", "16Gi", createdAgo(tc.age), tc.change)}
		tracker := newTracker(t, newPolicy("50%"), nodes, newPod("pod", "old", "4", "16Gi"))
		plan := tracker.Next(noon)
		fit, freeCPU := tracker.Capacity().Placeable(plan, nil), tracker.ledger.Pool().Free.CPU
		if pool := tracker.ledger.Pool(); (pool.Nodes == 2) != tc.usable {
			t.Errorf("%s: %d nodes count, want the node to count: %t", name, pool.Nodes, tc.usable)
		}
		if available := tc.usable && !tc.booting; (fit > 0) != available || (freeCPU == 4000) != available {
			t.Errorf("%s: %d placeholders fit, %dm CPU free, want available %t", name, fit, freeCPU, available)
		}
		tracker.SetPod(newPod("early", "new", "1", "1Gi"))
		tracker.SetNode(newNode("new", "4", "16Gi"), noon)
		if got := tracker.ledger.Pool().Free.CPU; got != 3000 {
			t.Errorf("%s: free CPU of the ready node is %dm, want 3000m", name, got)
		}
	}
}

// TestObserveNodeWithoutAllocatable checks that missing and negative amounts count as 0.
func TestObserveNodeWithoutAllocatable(t *testing.T) {
	unreported := newNode("a", "1", "1Gi", func(n *v1.Node) { n.Status.Allocatable = nil })
	for _, node := range []*v1.Node{unreported, newNode("b", "-1", "-1Gi")} {
		if got := observeNode(node, nil, noon).Allocatable; !got.IsZero() {
			t.Errorf("node %s has %v, want 0", node.Name, got)
		}
	}
}

func TestObservePod(t *testing.T) {
	type change = func(*v1.Pod)
	plain := ledgerPod{Node: "a", Requests: resources.Amounts{CPU: 500, Memory: gib}}
	daemon, optedOut, pending := plain, plain, plain
	daemon.Daemon, optedOut.OptedOut, pending.Node = true, true, ""
	for name, tc := range map[string]struct {
		changes []change
		want    ledgerPod
	}{
		"running":  {nil, plain},
		"starting": {[]change{phase(v1.PodPending)}, plain},
		"pending":  {[]change{phase(v1.PodPending), func(p *v1.Pod) { p.Spec.NodeName = "" }}, pending},
		"nominated": {
			[]change{phase(v1.PodPending), func(p *v1.Pod) { p.Spec.NodeName, p.Status.NominatedNodeName = "", "a" }},
			plain,
		},
		"bound to another node than nominated": {[]change{func(p *v1.Pod) { p.Status.NominatedNodeName = "b" }}, plain},
		"terminating":                          {[]change{func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(noon)) }}, plain},
		"succeeded":                            {[]change{phase(v1.PodSucceeded)}, ledgerPod{}},
		"failed":                               {[]change{phase(v1.PodFailed)}, ledgerPod{}},
		"mirror pod":                           {[]change{annotated(v1.MirrorPodAnnotationKey, "")}, daemon},
		"of a DaemonSet":                       {[]change{ownedBy("DaemonSet", true)}, daemon},
		"owned, not controlled by DaemonSet":   {[]change{ownedBy("DaemonSet", false)}, plain},
		"of a ReplicaSet":                      {[]change{ownedBy("ReplicaSet", true)}, plain},
		"placeholder":                          {[]change{placeholderOf("web")}, ledgerPod{}},
		"opted out":                            {[]change{annotated("plimsoll.dev/slack-biggest", "ignore")}, optedOut},
		"opted out, in capitals":               {[]change{annotated("plimsoll.dev/slack-biggest", "Ignore")}, optedOut},
		"annotation with another value":        {[]change{annotated("plimsoll.dev/slack-biggest", "no")}, plain},
		// CPU: max(init 2, 0.5 + 0.5) + overhead 0.25 = 2.25; memory: max(1, 1 + 2) +
		// 0.5 = 3.5 GiB.
		"init containers and overhead": {
			[]change{func(p *v1.Pod) {
				p.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: list("2", "1Gi")}}}
				p.Spec.Containers = append(p.Spec.Containers,
					v1.Container{Resources: v1.ResourceRequirements{Requests: list("500m", "2Gi")}})
				p.Spec.Overhead = list("250m", "512Mi")
			}},
			ledgerPod{Node: "a", Requests: resources.Amounts{CPU: 2250, Memory: 7 * gib / 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := observePod(newPod("p", "a", "500m", "1Gi", tc.changes...), nil)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(tc.want.Requests)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSparePods checks that pods with a negative priority are neither load nor take capacity, and are counted in a reason, and that
// a DaemonSet pod with a negative priority is one.
func TestSparePods(t *testing.T) {
	nodes := nodesOf(4, "web-", "16", "64Gi")
	pods := podsOf(8, nodes, "p", "1", "2Gi")
	priority := func(value int32) func(*v1.Pod) { return func(pod *v1.Pod) { pod.Spec.Priority = &value } }
	for name, tc := range map[string]struct {
		pods   []*v1.Pod
		reason string
	}{
		"default priority": {podsOf(1, nodes[:1], "x", "0", "0", priority(0)), ""},
		"daemon":           {podsOf(1, nodes[:1], "x", "0", "0", priority(-1), ownedBy("DaemonSet", true)), ""},
		"negative priority": {
			podsOf(1, nodes, "x", "6", "20Gi", priority(-1000)), "free capacity includes 4 pods with a negative priority: 24 CPU and 80Gi memory",
		},
		"one": {
			podsOf(1, nodes[:1], "x", "9", "20Gi", priority(-1)), "free capacity includes 1 pod with a negative priority: 9 CPU and 20Gi memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := newTracker(t, newPolicy("50%"), nodes, slices.Concat(pods, tc.pods)...)
			plan := tracker.Next(noon)
			// 32 pods of (1, 2): 16 placeholders, and 32 of 64 cores are free.
			free := tracker.Free()
			got := fmt.Sprint(plan.Base.Cpu(), " ", plan.placeholders(), " ", tracker.Capacity().Placeable(plan, nil), " ", free.Cpu())
			if got != "32 16 16 32" {
				t.Errorf("base, placeholders, placed and free CPU %s, want 32 16 16 32", got)
			}
			if reasons := strings.Join(plan.Reasons, "; "); reasons != tc.reason {
				t.Errorf("reasons %q, want %q", reasons, tc.reason)
			}
			for _, pod := range tc.pods {
				tracker.DeletePod(pod)
			}
			if plan := tracker.Next(noon); len(plan.Reasons) > 0 {
				t.Errorf("reasons %q without the pods", plan.Reasons)
			}
		})
	}
}
