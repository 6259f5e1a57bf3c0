package resources

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControlPlaneLabel is the label of control-plane nodes, with any value, and their usual taint.
const ControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// IsNotServed reports whether an error of a client says that the API server does not serve a kind. A client that knew the kind before gets
// a 404 that does not come from the API of an object.
func IsNotServed(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsFinished reports whether a pod has ended: it no longer uses its node.
func IsFinished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// OccupiesNode reports whether a pod is bound to a node and has not finished.
func OccupiesNode(pod *v1.Pod) bool { return pod.Spec.NodeName != "" && !IsFinished(pod) }

// IsNodeBound reports whether a pod belongs to its node and cannot run on
// another one: a mirror pod, or a pod controlled by a DaemonSet or a Node.
func IsNodeBound(pod *v1.Pod) bool {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// HasFixedNode reports whether the creator of a pod chose its node. A binding by a scheduler is not among the managed fields, which
// informers of controllers strip.
func HasFixedNode(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:nodeName"`)
	})
}

// IsSpare reports whether a pod only reserves capacity, for example a pause pod of an overprovisioner: it has a negative priority, so that
// other pods preempt it, and is not bound to its node.
func IsSpare(pod *v1.Pod) bool {
	return pod.Spec.Priority != nil && *pod.Spec.Priority < 0 && !IsNodeBound(pod)
}

// IsSchedulable reports whether a node is neither cordoned nor being deleted.
func IsSchedulable(node *v1.Node) bool {
	return !node.Spec.Unschedulable && node.DeletionTimestamp == nil
}

// IsScaleDownTaint reports whether Cluster Autoscaler or Karpenter adds a taint to nodes that it is
// about to delete.
func IsScaleDownTaint(key string) bool {
	return key == "ToBeDeletedByClusterAutoscaler" || key == "karpenter.sh/disrupted"
}

// HasSwap reports whether a node reports swap memory. Measured memory excludes swapped pages, so that a node that swaps looks emptier.
func HasSwap(node *v1.Node) bool {
	swap := node.Status.NodeInfo.Swap
	return swap != nil && swap.Capacity != nil && *swap.Capacity > 0
}

// ReadyCondition returns the Ready condition of a node, nil if the node does not
// report one.
func ReadyCondition(node *v1.Node) *v1.NodeCondition {
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == v1.NodeReady {
			return condition
		}
	}
	return nil
}

// ReadyStatus returns the status of the Ready condition of a node, "" if the node
// does not report one.
func ReadyStatus(node *v1.Node) v1.ConditionStatus {
	if ready := ReadyCondition(node); ready != nil {
		return ready.Status
	}
	return ""
}

// Name returns NAMESPACE/NAME of an object, which identifies it among objects of
// its kind.
func Name(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }
