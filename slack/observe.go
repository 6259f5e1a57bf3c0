package slack

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

const (
	// unreadyGrace is the time for which a node that became not ready remains usable, so that
	// placeholders do not change with a node whose readiness flaps.
	unreadyGrace = time.Minute
	// bootTime is the age up to which a node that was never ready counts as a node that boots: the default of
	// --max-node-provision-time of Cluster Autoscaler.
	bootTime = 15 * time.Minute
	// registrationTime is the time after the creation of a node in which its kubelet sets condition Ready to
	// false for the first time.
	registrationTime = 10 * time.Second
)

// observeNode returns the planner's view of a node at a time.
func observeNode(node *v1.Node, devices []string, now time.Time) ledgerNode {
	allocatable := amountsOf(node.Status.Allocatable, devices)
	// A node without allocatable resources, whose kubelet has not reported them yet, would reduce
	// the size of the average node and increase the number of placeholders.
	usable := isUsable(node, now) && !allocatable.IsZero()
	return ledgerNode{
		Usable:      usable,
		Booting:     usable && isBooting(node, now),
		Allocatable: allocatable,
		Slots:       node.Status.Allocatable.Pods().Value(),
	}
}

// InPool reports whether pods of the pool may run on a node: it has the labels of the node selector, and no taint that is not tolerated, as
// most control-plane nodes have. Taints that describe the state of the node are ignored.
func InPool(node *v1.Node, pool v1alpha1.Pool) bool {
	return includes(node.Labels, pool.NodeSelector) && toleratesTaints(node, pool.Tolerations)
}

// includes reports whether labels include the labels of a node selector. It is faster than a labels.Selector.
func includes(labels, selector map[string]string) bool {
	for key, value := range selector {
		if actual, ok := labels[key]; !ok || actual != value {
			return false
		}
	}
	return true
}

// toleratesTaints reports whether tolerations match the taints of a node. Taints that prefer no
// scheduling or describe the state of the node are ignored.
func toleratesTaints(node *v1.Node, tolerations []v1.Toleration) bool {
	matters := func(taint *v1.Taint) bool {
		return taint.Effect != v1.TaintEffectPreferNoSchedule && !isStateTaint(taint.Key)
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, tolerations, matters, true)
	return !untolerated
}

// isStateTaint reports whether a taint describes the state of a node rather than its purpose.
func isStateTaint(key string) bool {
	switch key {
	case v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, v1.TaintNodeMemoryPressure,
		v1.TaintNodeDiskPressure, v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable, v1.TaintNodeOutOfService:
		return true
	}
	return resources.IsScaleDownTaint(key)
}

// isBooting reports whether a node was created recently and has never been ready.
func isBooting(node *v1.Node, now time.Time) bool {
	created, ready := node.CreationTimestamp.Time, resources.ReadyCondition(node)
	if len(node.Status.Conditions) == 0 || now.Sub(created).Abs() >= bootTime {
		return false
	}
	return ready == nil || ready.Status != v1.ConditionTrue && ready.LastTransitionTime.Sub(created).Abs() < registrationTime
}

// isUsable reports whether placeholders can be put on a node. A node without conditions, such as one
// of a manifest, counts as ready.
func isUsable(node *v1.Node, now time.Time) bool {
	scaledDown := slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return resources.IsScaleDownTaint(taint.Key) })
	ready := resources.ReadyCondition(node)
	switch {
	case !resources.IsSchedulable(node) || scaledDown:
		return false
	case isBooting(node, now):
		return true
	case ready == nil:
		return len(node.Status.Conditions) == 0
	}
	// A transition in the future, after a jump of the clock, is as old as one in the past.
	return ready.Status == v1.ConditionTrue || now.Sub(ready.LastTransitionTime.Time).Abs() < unreadyGrace
}

// nodeOf returns the name of the node on which a pod takes capacity, "" if there is none: the node of the pod, or
// the node that is nominated for it, for example while pods with a lower priority are preempted.
func nodeOf(pod *v1.Pod) string { return cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName) }

// isCounted reports whether a pod takes capacity: it is not finished, not a placeholder, and does not only reserve capacity.
func isCounted(pod *v1.Pod) bool {
	return !resources.IsFinished(pod) && pod.Labels[PlaceholderLabel] == "" && !resources.IsSpare(pod)
}

// observePod returns the planner's view of a pod of a pool with devices. Pods that are not counted have no node.
func observePod(pod *v1.Pod, devices []string) ledgerPod {
	requests := resources.Requests(pod)
	switch {
	case resources.IsFinished(pod) || pod.Labels[PlaceholderLabel] != "":
		return ledgerPod{}
	case resources.IsSpare(pod):
		return ledgerPod{Node: nodeOf(pod), Requests: resources.CPUAndMemory(requests), Spare: true}
	}
	return ledgerPod{
		Node: nodeOf(pod), Requests: amountsOf(requests, devices), Daemon: resources.IsNodeBound(pod),
		OptedOut: strings.EqualFold(pod.Annotations[v1alpha1.AnnotationBiggest], v1alpha1.BiggestIgnore),
	}
}

// amountsOf returns the CPU, memory and devices of a list.
func amountsOf(list v1.ResourceList, devices []string) resources.Amounts {
	amounts := resources.CPUAndMemory(list)
	for _, name := range devices {
		if quantity, ok := list[v1.ResourceName(name)]; ok {
			resource := resources.NewResource(v1.ResourceName(name))
			amounts.Extended = amounts.Extended.With(resource.Name(), resource.Amount(quantity))
		}
	}
	return amounts
}

// PlaceholderLabel is a label of placeholder pods and of the objects of backends. Its value is the
// policy's name.
const PlaceholderLabel = "plimsoll.dev/placeholder"
