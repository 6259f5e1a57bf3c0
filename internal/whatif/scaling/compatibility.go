package scaling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// compatibility caches which pods may run on which nodes. Most pods are independent:
// apart from free resources, only the labels and taints of nodes matter to them, so
// that the scheduler's filters are evaluated once for all pods of a class and all
// nodes of a kind.
type compatibility struct {
	engine         *engine.Engine
	classes, kinds map[string]int  // numbered from 1
	results        map[[2]int]bool // by class and kind
	// classOfPod has the class of pods of the run, by number.
	classOfPod map[int32]int
	// selectors are the selectors of the required anti-affinity of any pod, by their texts: the pods that they select are not independent.
	selectors map[string]labels.Selector
}

func newCompatibility(e *engine.Engine, pods []recording.InputPod) *compatibility {
	c := &compatibility{
		engine: e, classes: map[string]int{}, kinds: map[string]int{}, results: map[[2]int]bool{},
		classOfPod: map[int32]int{}, selectors: map[string]labels.Selector{},
	}
	for i := range pods {
		affinity := pods[i].Object.Spec.Affinity
		if affinity == nil || affinity.PodAntiAffinity == nil {
			continue
		}
		for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			c.addSelector(term.LabelSelector)
		}
	}
	return c
}

// addSelector adds a selector of pods that are not independent.
func (c *compatibility) addSelector(s *metav1.LabelSelector) {
	if selector, err := metav1.LabelSelectorAsSelector(s); err == nil && s != nil { // nil selects no pods
		c.selectors[selector.String()] = selector
	}
}

// addReferences adds the selectors of required affinity and spreading of a pod, for results that are exact if pods that it depends on move.
func (c *compatibility) addReferences(pod *v1.Pod) {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			c.addSelector(term.LabelSelector)
		}
	}
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable == v1.DoNotSchedule {
			c.addSelector(constraint.LabelSelector)
		}
	}
}

// NodeKind describes what distinguishes a node from others of its size: its labels without its name, and its taints.
func NodeKind(node *v1.Node) string {
	var b strings.Builder
	set := maps.Clone(node.Labels)
	delete(set, v1.LabelHostname)
	b.WriteString(labels.FormatLabels(set))
	for _, taint := range node.Spec.Taints {
		fmt.Fprintf(&b, ";%s=%s:%s", taint.Key, taint.Value, taint.Effect)
	}
	fmt.Fprint(&b, node.Spec.Unschedulable)
	return b.String()
}

// nodeKind returns the number of a node's kind: its labels and taints.
func (c *compatibility) nodeKind(node *v1.Node) int {
	key := NodeKind(node)
	if c.kinds[key] == 0 {
		c.kinds[key] = len(c.kinds) + 1
	}
	return c.kinds[key]
}

// podClass returns the number of a pod's class: its constraints on nodes. It returns 0
// if the pod is not independent.
func (c *compatibility) podClass(pod *v1.Pod, requests resources.Amounts) int {
	if !c.isIndependent(pod, requests) {
		return 0
	}
	key := constraintsKey(pod)
	if c.classes[key] == 0 {
		c.classes[key] = len(c.classes) + 1
	}
	return c.classes[key]
}

// numberedPodClass is podClass with a cache, for a pod of the run.
func (c *compatibility) numberedPodClass(number int32, pod *v1.Pod, requests resources.Amounts) int {
	class, known := c.classOfPod[number]
	if !known {
		class = c.podClass(pod, requests)
		c.classOfPod[number] = class
	}
	return class
}

// constraintsKey returns a text that is equal for independent pods with the same
// constraints on nodes.
func constraintsKey(pod *v1.Pod) string {
	spec := &pod.Spec
	affinity := spec.Affinity != nil && spec.Affinity.NodeAffinity != nil &&
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
	if !affinity && len(spec.NodeSelector) == 0 && len(spec.Tolerations) == 0 {
		return spec.SchedulerName
	}
	var b strings.Builder
	fmt.Fprint(&b, spec.SchedulerName, ";", spec.NodeSelector)
	if affinity {
		fmt.Fprint(&b, *spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	for _, t := range spec.Tolerations {
		fmt.Fprintf(&b, ";%s %s %s %s", t.Key, t.Operator, t.Value, t.Effect)
	}
	return b.String()
}

// withoutRequests returns a copy of a pod that is unassigned and requests nothing.
func withoutRequests(pod *v1.Pod) *v1.Pod {
	empty := *pod
	empty.Spec.NodeName = ""
	empty.Spec.Resources, empty.Spec.Overhead = nil, nil
	empty.Spec.InitContainers = nil
	empty.Spec.Containers = []v1.Container{{Name: "main"}}
	return &empty
}

// isIndependent reports whether the scheduling of a pod depends only on the labels and taints of nodes and on their free
// amounts of what requests has, and not on other pods, volumes, ports or other resources.
func (c *compatibility) isIndependent(pod *v1.Pod, requests resources.Amounts) bool {
	spreads := func(c v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == v1.DoNotSchedule }
	if namesNodes(pod) || hasPodAffinity(pod.Spec.Affinity) || slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, spreads) {
		return false
	}
	for _, selector := range c.selectors {
		if selector.Matches(labels.Set(pod.Labels)) {
			return false
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 || slices.ContainsFunc(pod.Spec.Volumes, restrictsNodes) || usesHostPorts(&pod.Spec) {
		return false
	}
	for name, quantity := range resources.Requests(pod) {
		if !quantity.IsZero() && requests.Get(resources.NewResource(name)) == 0 {
			return false
		}
	}
	return true
}

// namesNodes reports whether the constraints of a pod distinguish nodes by their names, so that equal nodes differ.
func namesNodes(pod *v1.Pod) bool {
	if _, found := pod.Spec.NodeSelector[v1.LabelHostname]; found {
		return true
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	isHostname := func(r v1.NodeSelectorRequirement) bool { return r.Key == v1.LabelHostname }
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(t v1.NodeSelectorTerm) bool {
		return len(t.MatchFields) > 0 || slices.ContainsFunc(t.MatchExpressions, isHostname)
	})
}

// hasPodAffinity reports whether there is required affinity or anti-affinity to pods.
func hasPodAffinity(a *v1.Affinity) bool {
	return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0)
}

// usesHostPorts reports whether a pod uses ports of its node.
func usesHostPorts(spec *v1.PodSpec) bool {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if slices.ContainsFunc(container.Ports, func(p v1.ContainerPort) bool { return p.HostPort > 0 }) {
			return true
		}
	}
	return spec.HostNetwork
}

// restrictsNodes reports whether a volume may be available on some nodes only.
func restrictsNodes(v v1.Volume) bool {
	s := v.VolumeSource
	return s.EmptyDir == nil && s.ConfigMap == nil && s.Secret == nil && s.Projected == nil && s.DownwardAPI == nil && s.HostPath == nil
}

// fits reports whether pods of the class of a pod may run on nodes of the kind of a node.
func (c *compatibility) fits(ctx context.Context, p *probedPod, n *probedNode) (bool, error) {
	key := [2]int{p.class, n.kind}
	fits, known := c.results[key]
	if known {
		return fits, nil
	}
	fits, err := c.engine.FitsEmpty(ctx, withoutRequests(p.object), n.object)
	if err == nil {
		c.results[key] = fits
	}
	return fits, err
}
