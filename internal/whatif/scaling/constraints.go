package scaling

import (
	"cmp"
	"fmt"
	"math"
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
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// The autoscalers whose rules are known.
const (
	ClusterAutoscaler = "Cluster Autoscaler"
	Karpenter         = "Karpenter"
)

// nodePoolLabel is the label of the nodes that Karpenter adds and removes.
const nodePoolLabel = "karpenter.sh/nodepool"

// Annotations by which autoscalers do not remove a node or do not evict a pod.
const (
	doNotDisrupt      = "karpenter.sh/do-not-disrupt"
	safeToEvict       = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	safeToEvictLocal  = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// Kinds of constraints.
const (
	KindBudget       = "budget"
	KindAnnotation   = "annotation"
	KindController   = "no controller"
	KindSystem       = "system pod"
	KindLocalStorage = "local storage"
	KindUtilization  = "utilization"
	KindNode         = "node"
	KindRoom         = "no room"
)

// Constraint keeps a node, or pods on it.
type Constraint struct {
	Kind string `json:"kind"`
	// Object is what to change: a budget or a pod, as NAMESPACE/NAME, or the node.
	Object string `json:"object"`
	// Pods are the pods that it keeps on the node, empty if it keeps the node itself.
	Pods []string `json:"pods,omitempty"`
	// Text says what the object has, Change what would free the node.
	Text   string `json:"text"`
	Change string `json:"change"`
}

// forbidsEviction reports whether a pod has the annotation by which an autoscaler does not evict it.
func forbidsEviction(pod *v1.Pod, by string) bool {
	if by == Karpenter {
		return pod.Annotations[doNotDisrupt] == "true"
	}
	return pod.Annotations[safeToEvict] == "false"
}

// budget is a PodDisruptionBudget.
type budget struct {
	object   *policyv1.PodDisruptionBudget
	selector labels.Selector
	// allowed is the number of disruptions that it allows, text says why.
	allowed int32
	text    string
	pods    int
}

// budgets are the budgets by namespace.
type budgets map[string][]*budget

// newBudgets returns the budgets of a cluster, and sentences about those that select no pod.
func newBudgets(objects *manifest.Objects) (all budgets, warnings []string) {
	all = budgets{}
	pods := map[string][]*v1.Pod{}
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		pods[pod.Namespace] = append(pods[pod.Namespace], pod)
	}
	for _, object := range objects.Others {
		if object, ok := object.(*policyv1.PodDisruptionBudget); ok {
			b := &budget{object: object}
			var err error
			if b.selector, err = metav1.LabelSelectorAsSelector(object.Spec.Selector); err != nil {
				warnings = append(warnings, fmt.Sprintf("budget %s: ignored: %v", resources.Name(object), err))
				continue
			}
			if b.count(pods[object.Namespace]); b.pods == 0 {
				warnings = append(warnings, fmt.Sprintf("budget %s selects no pod: check spec.selector", resources.Name(object)))
			}
			all[object.Namespace] = append(all[object.Namespace], b)
		}
	}
	return all, warnings
}

// of returns the budgets of a pod.
func (b budgets) of(pod *v1.Pod) (list []*budget) {
	for _, one := range b[pod.Namespace] {
		if one.selector.Matches(labels.Set(pod.Labels)) {
			list = append(list, one)
		}
	}
	return list
}

// count sets how many disruptions the budget allows: what its status says or, without a status, what the pods of its namespace allow. All
// pods that are selected count as expected, and those that run and are not known to be unready as healthy.
func (b *budget) count(pods []*v1.Pod) {
	healthy, status, since := int32(0), b.object.Status, ""
	for _, pod := range pods {
		if !b.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		b.pods++
		_, ready := podutil.GetPodCondition(&pod.Status, v1.PodReady)
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && (ready == nil || ready.Status == v1.ConditionTrue) {
			healthy++
		}
	}
	if status.ObservedGeneration == 0 {
		status.CurrentHealthy, status.DesiredHealthy = healthy, b.desired(int32(b.pods))
		status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
	}
	for _, c := range status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			since = ", since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	b.allowed = status.DisruptionsAllowed
	b.text = fmt.Sprintf("allows no disruption: %d healthy, %d required%s", status.CurrentHealthy, status.DesiredHealthy, since)
}

// desired returns how many of the expected pods must be healthy, as the disruption controller computes it: percentages are rounded up.
func (b *budget) desired(expected int32) int32 {
	scaled := func(value *intstr.IntOrString) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(value, int(expected), true)
		if err != nil {
			return expected
		}
		return int32(min(n, math.MaxInt32))
	}
	switch spec := b.object.Spec; {
	case spec.MaxUnavailable != nil:
		return max(0, expected-scaled(spec.MaxUnavailable))
	case spec.MinAvailable != nil:
		return scaled(spec.MinAvailable)
	}
	return 0
}

// controllers are the kinds of controllers whose pods Cluster Autoscaler evicts by default.
var controllers = []string{"ReplicaSet", "StatefulSet", "Job", "ReplicationController"}

// constraintsOf returns what keeps a pod on its node, by the rules of an autoscaler.
func (b budgets) constraintsOf(pod *v1.Pod, by string) (list []Constraint) {
	_, isMirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	if pod.DeletionTimestamp != nil || isMirror || resources.IsNodeBound(pod) && (by != Karpenter || toleratesAll(pod)) {
		return nil
	}
	name, of := resources.Name(pod), b.of(pod)
	switch annotation := map[string]string{Karpenter: doNotDisrupt, ClusterAutoscaler: safeToEvict}[by]; {
	case forbidsEviction(pod, by):
		text := fmt.Sprintf("%s: %q", annotation, pod.Annotations[annotation])
		list = []Constraint{{KindAnnotation, name, nil, text, "remove the annotation of " + name}}
	case by == ClusterAutoscaler && pod.Annotations[safeToEvict] != "true":
		list = ownConstraints(pod, len(of) > 0)
	}
	if len(of) > 1 {
		text := fmt.Sprintf("one of %d budgets of the pod: the API server refuses to evict it", len(of))
		list = append(list, Constraint{KindBudget, resources.Name(of[1].object), nil, text, "let one budget select " + name})
	}
	for _, one := range of {
		if object := resources.Name(one.object); one.allowed < 1 {
			list = append(list, Constraint{KindBudget, object, nil, one.text, "let budget " + object + " allow a disruption"})
		}
	}
	for i := range list {
		list[i].Pods = []string{name}
	}
	return list
}

// ownConstraints returns the constraints of Cluster Autoscaler by what a pod is, with the defaults of skip-nodes-with-system-pods,
// skip-nodes-with-local-storage and skip-nodes-with-custom-controller-pods.
func ownConstraints(pod *v1.Pod, hasBudget bool) (list []Constraint) {
	name := resources.Name(pod)
	allow := "set " + safeToEvict + `: "true" on ` + name
	if owner := metav1.GetControllerOfNoCopy(pod); owner == nil {
		list = append(list, Constraint{KindController, name, nil, "no controller would create it elsewhere", allow})
	} else if !slices.Contains(controllers, owner.Kind) {
		list = append(list, Constraint{KindController, name, nil, "its controller is a " + owner.Kind, allow})
	}
	if pod.Namespace == metav1.NamespaceSystem && !hasBudget {
		list = append(list, Constraint{KindSystem, name, nil, "in kube-system without a budget", "create a budget that selects " + name})
	}
	if volume := localVolume(pod); volume != "" {
		list = append(list, Constraint{KindLocalStorage, name, nil, "volume " + volume + " is on the node", allow})
	}
	return list
}

// toleratesAll reports whether a pod tolerates every taint, also the one of nodes that Karpenter is about to delete.
func toleratesAll(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool {
		return t.Operator == v1.TolerationOpExists && (t.Key == "" || t.Key == "karpenter.sh/disrupted")
	})
}

// localVolume returns the name of a volume whose data are lost with the node, "" if there is none or the pod permits it.
func localVolume(pod *v1.Pod) string {
	allowed := strings.Split(pod.Annotations[safeToEvictLocal], ",")
	for _, volume := range pod.Spec.Volumes {
		isOnDisk := volume.EmptyDir != nil && volume.EmptyDir.Medium != v1.StorageMediumMemory
		if (isOnDisk || volume.HostPath != nil) && !slices.Contains(allowed, volume.Name) {
			return volume.Name
		}
	}
	return ""
}

// nodeConstraint returns what keeps a node itself, by the rules of an autoscaler, and whether there is a constraint.
func nodeConstraint(node *v1.Node, by string, utilization float64) (c Constraint, found bool) {
	c = Constraint{Kind: KindNode, Object: node.Name}
	annotation := map[string]string{Karpenter: doNotDisrupt, ClusterAutoscaler: scaleDownDisabled}[by]
	isControlPlaneTaint := func(t v1.Taint) bool { return t.Key == resources.ControlPlaneLabel }
	switch {
	case resources.IsControlPlane(node) || slices.ContainsFunc(node.Spec.Taints, isControlPlaneTaint):
		c.Text = "is a node of the control plane"
	case isVirtual(node):
		c.Text = "is a virtual node"
	case node.Annotations[annotation] == "true":
		c.Kind, c.Text, c.Change = KindAnnotation, annotation+`: "true"`, "remove the annotation "+annotation+" of "+node.Name
	case by == ClusterAutoscaler && utilization >= autoscaler.DefaultLoop.Utilization:
		c.Kind = KindUtilization
		c.Text = fmt.Sprintf("pods request %.0f %% of the node: must be below %.0f %%", 100*utilization, 100*autoscaler.DefaultLoop.Utilization)
		c.Change = "raise scale-down-utilization-threshold"
	default:
		return c, false
	}
	return c, true
}

// recognize returns the autoscaler of each node, and a sentence about what it was recognized by.
func recognize(objects *manifest.Objects) (of func(*v1.Node) string, text string) {
	of = func(node *v1.Node) string {
		if _, found := node.Labels[nodePoolLabel]; found {
			return Karpenter
		}
		return ClusterAutoscaler
	}
	karpenter, pod := 0, ""
	for _, node := range objects.Nodes {
		if of(node) == Karpenter {
			karpenter++
		}
	}
	for _, p := range objects.Running {
		name := cmp.Or(p.Labels["app.kubernetes.io/name"], p.Labels["k8s-app"], p.Labels["app"])
		if strings.HasSuffix(name, "cluster-autoscaler") {
			pod = resources.Name(p)
		}
	}
	var parts []string
	if karpenter > 0 {
		parts = append(parts, fmt.Sprintf("Karpenter for %s, recognized by label %s", format.Of(karpenter, "node"), nodePoolLabel))
	}
	if others := len(objects.Nodes) - karpenter; others > 0 {
		by := "the default, as none was recognized"
		if pod != "" {
			by = "recognized by pod " + pod
		}
		parts = append(parts, fmt.Sprintf("Cluster Autoscaler for %s, %s", format.Of(others, "node"), by))
	}
	return of, "rules: " + strings.Join(parts, "; ")
}
