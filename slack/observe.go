// Package slack keeps room to spare for the next pods, as placeholders that an
// autoscaler treats like pods that wait. It turns nodes, pods and policies of
// Kubernetes into what the planner reckons with, and its plans into objects;
// Loop is all of that for autoscalers that are built from source.
package slack

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	algo "github.com/plimsoll-k8s/plimsoll/internal/algo/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
)

// PlaceholderLabel is on placeholder pods; its value is the policy's name.
const PlaceholderLabel = "plimsoll.dev/placeholder"

// unreadyGrace is how long a node that is not ready is still reckoned with, so
// that one which comes and goes does not make placeholders come and go.
const unreadyGrace = time.Minute

// observeNode returns a node as the planner sees it at a time.
func observeNode(node *v1.Node, pool v1alpha1.Pool, now time.Time) algo.Node {
	allocatable := amountsOf(node.Status.Allocatable)
	return algo.Node{
		InPool: InPool(node, pool),
		// A node that has nothing, as before its kubelet has said what it has, would
		// make the average node smaller, and placeholders many.
		Usable:      usable(node, now) && !allocatable.IsZero(),
		Allocatable: allocatable,
		Slots:       node.Status.Allocatable.Pods().Value(),
	}
}

// InPool reports whether pods of the pool may run on a node: it has the labels,
// and no taint that they do not tolerate. Taints that say how the node is doing
// do not count.
func InPool(node *v1.Node, pool v1alpha1.Pool) bool {
	if facts.IsControlPlane(node) || !labels.SelectorFromSet(pool.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pool.Tolerations, func(taint *v1.Taint) bool {
		return taint.Effect != v1.TaintEffectPreferNoSchedule && !isCondition(taint.Key)
	}, true)
	return !untolerated
}

// isCondition reports whether a taint says how a node is doing, and not what it
// is for.
func isCondition(key string) bool {
	switch key {
	case v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, v1.TaintNodeMemoryPressure,
		v1.TaintNodeDiskPressure, v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable, v1.TaintNodeOutOfService:
		return true
	}
	return isDrain(key)
}

// isDrain reports whether an autoscaler puts a taint on nodes that it is about
// to take away: Cluster Autoscaler, Karpenter.
func isDrain(key string) bool {
	return key == "ToBeDeletedByClusterAutoscaler" || key == "karpenter.sh/disrupted"
}

// usable reports whether placeholders can be put on a node. A node that tells
// nothing of itself is one of a manifest.
func usable(node *v1.Node, now time.Time) bool {
	drained := slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return isDrain(taint.Key) })
	if !facts.IsSchedulable(node) || drained {
		return false
	}
	if ready := facts.ReadyCondition(node); ready != nil {
		return ready.Status == v1.ConditionTrue || now.Sub(ready.LastTransitionTime.Time) < unreadyGrace
	}
	return len(node.Status.Conditions) == 0
}

// observePod returns a pod as the planner sees it. Pods that have ended, and
// placeholders, are on no node to it.
func observePod(pod *v1.Pod) algo.Pod {
	if facts.IsFinished(pod) || pod.Labels[PlaceholderLabel] != "" {
		return algo.Pod{}
	}
	return algo.Pod{
		Node: pod.Spec.NodeName, Requests: requestsOf(pod), Daemon: facts.IsNodeBound(pod),
		OptedOut: pod.Annotations[v1alpha1.AnnotationBiggest] == v1alpha1.BiggestIgnore,
	}
}

// requestsOf returns what a pod requests, as the scheduler counts it.
func requestsOf(pod *v1.Pod) algo.Amounts {
	return amountsOf(noderes.Requests(pod))
}

// amountsOf returns what a list has.
func amountsOf(list v1.ResourceList) algo.Amounts {
	return algo.Amounts{algo.CPU: max(0, noderes.CPU.Amount(list[v1.ResourceCPU])), algo.Memory: max(0, noderes.Memory.Amount(list[v1.ResourceMemory]))}
}
