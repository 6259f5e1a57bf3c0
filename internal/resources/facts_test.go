package resources

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsFinished(t *testing.T) {
	for phase, want := range map[v1.PodPhase]bool{
		"": false, v1.PodPending: false, v1.PodRunning: false, v1.PodUnknown: false, v1.PodSucceeded: true, v1.PodFailed: true,
	} {
		pod := &v1.Pod{Status: v1.PodStatus{Phase: phase}, Spec: v1.PodSpec{NodeName: "n"}}
		if got := IsFinished(pod); got != want {
			t.Errorf("IsFinished(phase %q) = %t, want %t", phase, got, want)
		}
		if got := OccupiesNode(pod); got == want {
			t.Errorf("OccupiesNode(phase %q) = %t, want %t", phase, got, !want)
		}
	}
	if OccupiesNode(&v1.Pod{}) {
		t.Error("OccupiesNode() = true for a pod without a node")
	}
}

func TestIsNodeBound(t *testing.T) {
	owned := func(kind string, controller bool) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Controller: &controller}}}}
	}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want bool
	}{
		"bare":                     {&v1.Pod{}, false},
		"mirror":                   {&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.MirrorPodAnnotationKey: ""}}}, true},
		"DaemonSet":                {owned("DaemonSet", true), true},
		"Node":                     {owned("Node", true), true},
		"ReplicaSet":               {owned("ReplicaSet", true), false},
		"DaemonSet, no controller": {owned("DaemonSet", false), false},
	} {
		if got := IsNodeBound(tc.pod); got != tc.want {
			t.Errorf("%s: IsNodeBound() = %t, want %t", name, got, tc.want)
		}
	}
}

func TestNode(t *testing.T) {
	node := &v1.Node{}
	if !IsSchedulable(node) || ReadyCondition(node) != nil || ReadyStatus(node) != "" {
		t.Error("an empty node must be schedulable, without a Ready condition")
	}
	node.Spec.Unschedulable = true
	node.Status.Conditions = []v1.NodeCondition{
		{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse},
		{Type: v1.NodeReady, Status: v1.ConditionUnknown},
	}
	if IsSchedulable(node) || ReadyStatus(node) != v1.ConditionUnknown {
		t.Errorf("IsSchedulable() = %t, ReadyStatus() = %q", IsSchedulable(node), ReadyStatus(node))
	}
	node = &v1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
	if IsSchedulable(node) {
		t.Error("IsSchedulable() = true for a node that is being deleted")
	}
}
