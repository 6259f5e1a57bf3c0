package scaling

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// The autoscalers whose rules are known. The nodes of Karpenter have its label.
const (
	clusterAutoscaler = "Cluster Autoscaler"
	karpenter         = "Karpenter"
	karpenterLabel    = "karpenter.sh/nodepool"
)

// Annotations by which autoscalers do not remove a node or do not evict a pod.
const (
	doNotDisrupt      = "karpenter.sh/do-not-disrupt"
	safeToEvict       = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	safeToEvictLocal  = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// Kinds of constraints.
const (
	kindBudget = "budget"
	kindNode   = "node"
	kindRoom   = "no room"
)

// Constraint keeps a node, or pods on it.
type Constraint struct {
	Kind string `json:"kind"`
	// Object is what to change: a budget or a pod, as NAMESPACE/NAME, or the node.
	Object string `json:"object"`
	// Text says what the object has, Change what would free the node.
	Text   string `json:"text"`
	Change string `json:"change,omitempty"`
	// Pods are the pods that it keeps on the node, empty if it keeps the node itself.
	Pods []string `json:"pods,omitempty"`
}

// forbidsEviction reports whether a pod has the annotation by which an autoscaler does not evict it at a time. Karpenter's annotation can
// be the duration after the start of the pod for which it holds.
func forbidsEviction(pod *v1.Pod, by string, now time.Time) bool {
	if by != karpenter {
		return pod.Annotations[safeToEvict] == "false"
	}
	value := pod.Annotations[doNotDisrupt]
	duration, err := time.ParseDuration(value)
	started := pod.Status.StartTime
	return value == "true" || err == nil && duration > 0 && (started == nil || now.Sub(started.Time) < duration)
}

// budget is a PodDisruptionBudget that selects a pod. It is exhausted if it allows no disruption, for the reason in text.
type budget struct {
	name, text  string
	isExhausted bool
	// freesUnready is set if pods that are not ready can be evicted nevertheless.
	freesUnready bool
}

// budgetsByPod returns the budgets of pods, and sentences about budgets that select none.
func budgetsByPod(objects *manifest.Objects) (budgets map[*v1.Pod][]budget, warnings []string) {
	budgets = map[*v1.Pod][]budget{}
	byNamespace := map[string][]*v1.Pod{}
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		byNamespace[pod.Namespace] = append(byNamespace[pod.Namespace], pod)
	}
	for _, object := range objects.Others {
		b, ok := object.(*policyv1.PodDisruptionBudget)
		if !ok {
			continue
		}
		var pods []*v1.Pod
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		for _, pod := range byNamespace[b.Namespace] {
			if err == nil && selector.Matches(labels.Set(pod.Labels)) {
				pods = append(pods, pod)
			}
		}
		if len(pods) == 0 {
			warnings = append(warnings, fmt.Sprintf("budget %s selects no pod: check spec.selector", resources.Name(b)))
		}
		text, isExhausted := disruptions(b, pods)
		for _, pod := range pods {
			policy := b.Spec.UnhealthyPodEvictionPolicy
			freesUnready := policy != nil && *policy == policyv1.AlwaysAllow
			budgets[pod] = append(budgets[pod], budget{resources.Name(b), text, isExhausted, freesUnready})
		}
	}
	return budgets, warnings
}

// disruptions reports whether a budget allows no disruption of its pods, and why. Its status says so or, without a status, the formulas of
// the disruption controller: all pods are expected, those that run and are not known to be unready are healthy, and percentages are rounded
// up.
func disruptions(b *policyv1.PodDisruptionBudget, pods []*v1.Pod) (text string, isExhausted bool) {
	status, since := b.Status, ""
	if status.ObservedGeneration == 0 {
		status = policyv1.PodDisruptionBudgetStatus{}
		for _, pod := range pods {
			_, ready := podutil.GetPodCondition(&pod.Status, v1.PodReady)
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && (ready == nil || ready.Status == v1.ConditionTrue) {
				status.CurrentHealthy++
			}
		}
		value := intstr.ValueOrDefault(b.Spec.MinAvailable, intstr.FromString("100%")) // with neither field, no disruption is allowed
		if b.Spec.MaxUnavailable != nil {
			value = b.Spec.MaxUnavailable
		}
		required, err := intstr.GetScaledValueFromIntOrPercent(value, len(pods), true)
		if err != nil || b.Spec.MaxUnavailable != nil {
			required = max(0, len(pods)-required) // all, if the value is invalid
		}
		status.DesiredHealthy = int32(required)
		status.DisruptionsAllowed = status.CurrentHealthy - status.DesiredHealthy
	}
	for _, c := range status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			since = ", since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	return fmt.Sprintf("allows no disruption: %d healthy, %d required%s", status.CurrentHealthy, status.DesiredHealthy, since),
		status.DisruptionsAllowed < 1
}

// podConstraints returns what keeps a pod on its node at a time, by the rules of an autoscaler. Karpenter also respects its annotation of
// pods that it does not evict.
func podConstraints(pod *v1.Pod, budgets []budget, by string, now time.Time) (list []Constraint) {
	isEvicted := evicts(pod, by)
	if pod.DeletionTimestamp != nil || !isEvicted && by != karpenter {
		return nil
	}
	name := resources.Name(pod)
	switch {
	case forbidsEviction(pod, by, now):
		annotation := map[string]string{karpenter: doNotDisrupt, clusterAutoscaler: safeToEvict}[by]
		text := fmt.Sprintf("%s: %q", annotation, pod.Annotations[annotation])
		list = []Constraint{{"annotation", name, text, "remove the annotation of " + name, nil}}
	case by == clusterAutoscaler && pod.Annotations[safeToEvict] != "true":
		list = ownConstraints(pod, len(budgets) > 0)
	}
	if !isEvicted {
		budgets = nil
	}
	for _, b := range budgets {
		if b.isExhausted && !(by == karpenter && b.freesUnready && isUnready(pod)) {
			list = append(list, Constraint{kindBudget, b.name, b.text, "let budget " + b.name + " allow a disruption", nil})
		}
	}
	if len(budgets) > 1 {
		text := fmt.Sprintf("one of %d budgets of the pod: the API server refuses to evict it", len(budgets))
		list = append(list, Constraint{kindBudget, budgets[1].name, text, "let one budget select " + name, nil})
	}
	for i := range list {
		list[i].Pods = []string{name}
	}
	return list
}

// evicts reports whether an autoscaler evicts a pod from a node that is to go.
func evicts(pod *v1.Pod, by string) bool {
	if _, isMirror := pod.Annotations[v1.MirrorPodAnnotationKey]; isMirror {
		return false
	}
	if by == karpenter {
		return !toleratesAll(pod)
	}
	return !resources.IsNodeBound(pod)
}

// isUnready reports whether a pod is known not to be ready.
func isUnready(pod *v1.Pod) bool {
	_, ready := podutil.GetPodCondition(&pod.Status, v1.PodReady)
	return ready != nil && ready.Status == v1.ConditionFalse
}

// ownConstraints returns the constraints of Cluster Autoscaler by what a pod is, with the defaults of skip-nodes-with-system-pods,
// skip-nodes-with-local-storage and skip-nodes-with-custom-controller-pods.
func ownConstraints(pod *v1.Pod, hasBudget bool) (list []Constraint) {
	name := resources.Name(pod)
	add := func(kind, text string) {
		list = append(list, Constraint{kind, name, text, "set " + safeToEvict + `: "true" on ` + name, nil})
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner == nil {
		add("no controller", "no controller would create it elsewhere")
	} else if !slices.Contains([]string{"ReplicaSet", "StatefulSet", "Job", "ReplicationController"}, owner.Kind) {
		add("no controller", "its controller is a "+owner.Kind)
	}
	if pod.Namespace == metav1.NamespaceSystem && !hasBudget {
		add("system pod", "in kube-system without a budget")
	}
	allowed := strings.Split(pod.Annotations[safeToEvictLocal], ",")
	for _, volume := range pod.Spec.Volumes {
		isOnDisk := volume.EmptyDir != nil && volume.EmptyDir.Medium != v1.StorageMediumMemory
		if (isOnDisk || volume.HostPath != nil) && !slices.Contains(allowed, volume.Name) {
			add("local storage", "volume "+volume.Name+" is on the node")
			break
		}
	}
	return list
}

// toleratesAll reports whether a pod tolerates every taint, also the one of nodes that Karpenter is about to delete.
func toleratesAll(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool {
		return t.Operator == v1.TolerationOpExists && (t.Key == "" || t.Key == "karpenter.sh/disrupted")
	})
}

// nodeConstraints returns what keeps a node itself, by the rules of an autoscaler.
func nodeConstraints(node *v1.Node, by string, utilization float64) []Constraint {
	one := func(kind, text, change string) []Constraint {
		return []Constraint{{kind, node.Name, text, change, nil}}
	}
	annotation := map[string]string{karpenter: doNotDisrupt, clusterAutoscaler: scaleDownDisabled}[by]
	isControlPlaneTaint := func(t v1.Taint) bool { return t.Key == resources.ControlPlaneLabel }
	switch most := autoscaler.DefaultLoop.Utilization; {
	case slices.ContainsFunc(node.Spec.Taints, isControlPlaneTaint):
		return one(kindNode, "is a node of the control plane", "")
	case isVirtual(node):
		return one(kindNode, "is a virtual node", "")
	case node.Annotations[annotation] == "true":
		return one("annotation", annotation+`: "true"`, "remove the annotation of "+node.Name)
	case by == clusterAutoscaler && utilization >= most:
		text := fmt.Sprintf("pods request %.0f %% of the node: must be below %.0f %%", 100*utilization, 100*most)
		return one("utilization", text, "raise scale-down-utilization-threshold")
	}
	return nil
}
