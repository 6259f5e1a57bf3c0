package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// fit knows which pods may be on which nodes. Most pods are plain: beside room they
// ask for labels and taints only, so that the scheduler's filters are asked once
// for all pods of a class and all nodes of a kind.
type fit struct {
	engine *engine.Engine
	// classes and kinds have numbers from 1; examples has a pod or node of each.
	classes, kinds map[string]int
	pods           []*v1.Pod
	nodes          []*v1.Node
	suits          map[[2]int]bool
	// ofPod has the class of each pod of the run, once it was asked for.
	ofPod map[int32]int
	// repelled are what pods look like that others must be apart from.
	repelled []labels.Selector
}

func newFit(r *run) *fit {
	f := &fit{engine: r.engine, classes: map[string]int{}, kinds: map[string]int{}, suits: map[[2]int]bool{}, ofPod: map[int32]int{}}
	seen := map[string]bool{}
	for i := range r.Pods {
		for _, selector := range repels(r.Pods[i].Object) {
			if !seen[selector.String()] {
				seen[selector.String()] = true
				f.repelled = append(f.repelled, selector)
			}
		}
	}
	return f
}

// repels returns which pods a pod must be apart from.
func repels(pod *v1.Pod) (selectors []labels.Selector) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector); err == nil {
			selectors = append(selectors, selector)
		}
	}
	return selectors
}

// kind returns the number of what a node is like, to pods that are plain.
func (f *fit) kind(node *v1.Node) int {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		if key != v1.LabelHostname {
			fmt.Fprintf(&b, "%s=%s,", key, node.Labels[key])
		}
	}
	for _, taint := range node.Spec.Taints {
		fmt.Fprintf(&b, ";%s=%s:%s", taint.Key, taint.Value, taint.Effect)
	}
	fmt.Fprint(&b, node.Spec.Unschedulable)
	key := b.String()
	if f.kinds[key] == 0 {
		f.nodes = append(f.nodes, node)
		f.kinds[key] = len(f.nodes)
	}
	return f.kinds[key]
}

// class returns the number of what a pod asks of nodes beside room, 0 if it is not
// plain.
func (f *fit) class(pod *v1.Pod) int {
	if !f.plain(pod) {
		return 0
	}
	key := wishes(pod)
	if f.classes[key] == 0 {
		f.pods = append(f.pods, without(pod))
		f.classes[key] = len(f.pods)
	}
	return f.classes[key]
}

// classOf is class for a pod of the run.
func (f *fit) classOf(r *run, number int32) int {
	class, known := f.ofPod[number]
	if !known {
		class = f.class(r.Pods[number].Object)
		f.ofPod[number] = class
	}
	return class
}

// wishes says what a plain pod asks of nodes beside room.
func wishes(pod *v1.Pod) string {
	spec := &pod.Spec
	affinity := spec.Affinity != nil && spec.Affinity.NodeAffinity != nil && spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
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

// without returns a pod that asks for no room.
func without(pod *v1.Pod) *v1.Pod {
	light := *pod
	light.Spec.NodeName = ""
	light.Spec.Resources, light.Spec.Overhead = nil, nil
	light.Spec.InitContainers = nil
	light.Spec.Containers = []v1.Container{{Name: "main"}}
	return &light
}

// plain reports whether a pod asks for nothing but labels, taints, CPU, memory and
// parts of GPUs, and no other pod must be apart from it.
func (f *fit) plain(pod *v1.Pod) bool {
	spreads := func(c v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == v1.DoNotSchedule }
	repelled := func(s labels.Selector) bool { return s.Matches(labels.Set(pod.Labels)) }
	if looksAtPods(pod.Spec.Affinity) || slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, spreads) || slices.ContainsFunc(f.repelled, repelled) {
		return false
	}
	if len(pod.Spec.ResourceClaims) > 0 || slices.ContainsFunc(pod.Spec.Volumes, bindsToNodes) || takesPorts(&pod.Spec) {
		return false
	}
	for name, quantity := range noderes.Requests(pod) {
		if name != v1.ResourceCPU && name != v1.ResourceMemory && name != GPU && !quantity.IsZero() {
			return false
		}
	}
	return true
}

// looksAtPods reports whether a pod has to be near other pods, or apart from them.
func looksAtPods(a *v1.Affinity) bool {
	return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0)
}

// takesPorts reports whether a pod takes ports of its node.
func takesPorts(spec *v1.PodSpec) bool {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if slices.ContainsFunc(container.Ports, func(p v1.ContainerPort) bool { return p.HostPort > 0 }) {
			return true
		}
	}
	return spec.HostNetwork
}

// bindsToNodes reports whether a volume may be on some nodes only.
func bindsToNodes(v v1.Volume) bool {
	s := v.VolumeSource
	return s.EmptyDir == nil && s.ConfigMap == nil && s.Secret == nil && s.Projected == nil && s.DownwardAPI == nil && s.HostPath == nil
}

// admits reports whether pods of a class may be on nodes of a kind.
func (f *fit) admits(ctx context.Context, class, kind int) (bool, error) {
	key := [2]int{class, kind}
	suits, known := f.suits[key]
	if known {
		return suits, nil
	}
	suits, err := f.engine.Suits(ctx, f.pods[class-1], f.nodes[kind-1])
	if err == nil {
		f.suits[key] = suits
	}
	return suits, err
}
