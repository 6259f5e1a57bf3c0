package fit

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Template is a pod template as far as summaries can answer for it. It has caches: it is not safe for concurrent use.
type Template struct {
	// Workload is the namespace and the name of the workload in the clusters. The name is empty if it is unknown.
	Workload types.NamespacedName

	pod      *v1.PodTemplateSpec
	requests []request
	// terms are the node selector and the required node affinity, nil for all nodes.
	terms       []v1.NodeSelectorTerm
	tolerations []v1.Toleration
	hostPorts   []v1.ContainerPort
	// alone is set if a node can have one pod of the template at most, and neverPreempts if its pods do not preempt placeholders.
	alone, neverPreempts bool
	// spread are the topology spread constraints that pods must satisfy, constraints by host first.
	spread []v1.TopologySpreadConstraint
	// labels are the labels of the pods. apart are the selectors of the pods that required anti-affinity keeps from their nodes.
	labels map[string]string
	apart  []labels.Selector
	// shared is set if its selectors can match pods of other workloads.
	shared bool
	// unsupported is why no summary can answer for the template, "" if summaries can.
	unsupported string

	// matched are the results of matchClass by key, and counts is the buffer of a fit.
	matched map[classKey]match
	counts  []int64
}

// request is a requested amount, above 0.
type request struct {
	resources.Resource

	amount int64
}

// NewTemplate returns the template of a pod with the given workload. Its metadata matters for the selectors of the template itself.
func NewTemplate(workload types.NamespacedName, pod *v1.PodTemplateSpec) (*Template, error) {
	if len(pod.Spec.Containers) == 0 {
		return nil, errors.New("spec.containers: required: the template must be a pod template")
	}
	t := &Template{
		Workload: workload, terms: termsOf(&pod.Spec), tolerations: pod.Spec.Tolerations, hostPorts: resources.HostPorts(&pod.Spec),
		labels: pod.Labels, pod: pod, matched: map[classKey]match{},
	}
	if err := t.setRequests(&pod.Spec); err != nil {
		return nil, err
	}
	t.alone, t.neverPreempts = len(t.hostPorts) > 0, ptr.Deref(pod.Spec.PreemptionPolicy, "") == v1.PreemptNever
	if err := t.setPodAffinity(pod); err != nil {
		return nil, err
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		t.unsupported = "it has resource claims, and summaries have no devices"
	}
	if pod.Spec.NodeName != "" {
		t.unsupported = "it names a node, and summaries have no names of nodes"
	}
	return t, t.setSpread(pod)
}

// Given returns the template as it was given.
func (t *Template) Given() *v1.PodTemplateSpec { return t.pod }

// Pod returns a pod of the template with a name, without topology spread constraints and requests.
func (t *Template) Pod(name string) *v1.Pod {
	out := &v1.Pod{ObjectMeta: *t.pod.ObjectMeta.DeepCopy(), Spec: *t.pod.Spec.DeepCopy()}
	out.Namespace, out.Name, out.UID = t.Workload.Namespace, name, types.UID(name)
	out.Spec.TopologySpreadConstraints, out.Spec.Resources, out.Spec.Overhead = nil, nil, nil
	for _, containers := range [][]v1.Container{out.Spec.InitContainers, out.Spec.Containers} {
		for i := range containers {
			containers[i].Resources = v1.ResourceRequirements{}
		}
	}
	return out
}

// termsOf returns the required node affinity of a pod, with the node selector in each term.
func termsOf(spec *v1.PodSpec) (terms []v1.NodeSelectorTerm) {
	var selector []v1.NodeSelectorRequirement
	for key, value := range spec.NodeSelector {
		selector = append(selector, v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}})
	}
	if a := spec.Affinity; a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		if selector == nil {
			return nil
		}
		return []v1.NodeSelectorTerm{{MatchExpressions: selector}}
	}
	terms = []v1.NodeSelectorTerm{}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions)+len(term.MatchFields) > 0 { // other terms match no node
			term.MatchExpressions = slices.Concat(selector, term.MatchExpressions)
			terms = append(terms, term)
		}
	}
	return terms
}

// setRequests sets the requests. As in the API server, no amount is negative.
func (t *Template) setRequests(spec *v1.PodSpec) error {
	for list, containers := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, amounts := range []v1.ResourceList{containers[i].Resources.Limits, containers[i].Resources.Requests} {
				for name, quantity := range amounts {
					if quantity.Sign() < 0 {
						field := []string{"initContainers", "containers"}[list]
						return fmt.Errorf("spec.%s[%d].resources: found %s %s: must be at least 0", field, i, &quantity, name)
					}
				}
			}
		}
	}
	t.requests = []request{{resources.NewResource(v1.ResourcePods), 1}}
	for name, quantity := range resources.RequestsOfTemplate(spec) {
		if r := resources.NewResource(name); r.Amount(quantity) > 0 {
			t.requests = append(t.requests, request{r, r.Amount(quantity)})
		}
	}
	slices.SortFunc(t.requests, func(a, b request) int { return a.Compare(b.Resource) })
	return nil
}

// setPodAffinity sets alone if pods of the template exclude each other from a node. Summaries have no pods: other required terms
// cannot be answered.
func (t *Template) setPodAffinity(pod *v1.PodTemplateSpec) error {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return nil
	}
	if affinity.PodAffinity != nil && len(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		t.unsupported = "it requires pod affinity, and summaries have no pods"
	}
	if affinity.PodAntiAffinity == nil {
		return nil
	}
	for i, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			return fmt.Errorf("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[%d].labelSelector: %w", i, err)
		}
		isElsewhere := func(namespace string) bool { return namespace != t.Workload.Namespace }
		switch {
		case term.TopologyKey != v1.LabelHostname:
			t.unsupported = "it requires anti-affinity by " + term.TopologyKey + ", and summaries have no pods"
		case !selector.Matches(labels.Set(pod.Labels)), slices.ContainsFunc(term.Namespaces, isElsewhere), term.NamespaceSelector != nil,
			len(term.MismatchLabelKeys) > 0:
			t.unsupported = "it requires anti-affinity to other pods, and summaries have no pods"
		}
		t.alone, t.apart = true, append(t.apart, selector)
	}
	return nil
}

// setShared sets shared, given labels that only pods of the workload have.
func (t *Template) setShared(own map[string]string) {
	selectors := slices.Clone(t.apart)
	for i := range t.spread {
		selectors = append(selectors, selectorOf(&t.spread[i], nil))
	}
	for key, value := range own {
		isOther := func(s labels.Selector) bool {
			required, found := s.RequiresExactMatch(key)
			return !found || required != value
		}
		t.shared = t.shared || slices.ContainsFunc(selectors, isOther)
	}
}

// setSpread sets the constraints that must be satisfied and that pods of the template can violate.
func (t *Template) setSpread(pod *v1.PodTemplateSpec) error {
	for i, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == v1.ScheduleAnyway {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			return fmt.Errorf("spec.topologySpreadConstraints[%d].labelSelector: %w", i, err)
		}
		if !selector.Matches(labels.Set(pod.Labels)) {
			t.unsupported = "it spreads from other pods, and summaries have no pods"
		}
		if isByHost(&c) {
			t.spread = slices.Insert(t.spread, 0, c)
		} else {
			t.spread = append(t.spread, c)
		}
	}
	return nil
}

// match is how the nodes of a class match a template.
type match struct {
	// selected is set if the terms of the template match all nodes of the class, and tolerated if it tolerates all taints.
	selected, tolerated bool
	// domains are the domains of the nodes by spread constraint.
	domains []domain
}

// domain is a domain of a spread constraint.
type domain struct {
	value string
	// isNone is set for nodes that are in no domain, isUnknown for nodes that are in several or unknown domains.
	isNone, isUnknown bool
}

// maxMatched is the number of classes whose results a template keeps.
const maxMatched = 100_000

// matchClass returns how a class matches the template.
func (t *Template) matchClass(c classKey) match {
	m, known := t.matched[c]
	if known {
		return m
	}
	if len(t.matched) >= maxMatched {
		clear(t.matched)
	}
	nodes := classOf(c)
	selected, maySelect := t.selects(&nodes)
	_, intolerable := t.intolerableTaint(&nodes)
	m = match{selected: selected, tolerated: !intolerable}
	for i := range t.spread {
		constraint := &t.spread[i]
		value, has := nodes.Labels[constraint.TopologyKey]
		isUnknown := slices.Contains(nodes.VariousLabels, constraint.TopologyKey)
		honorsTaints := constraint.NodeTaintsPolicy != nil && *constraint.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor
		honorsAffinity := constraint.NodeAffinityPolicy == nil || *constraint.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor
		isNone := !has && !isUnknown || honorsTaints && intolerable || honorsAffinity && !maySelect
		m.domains = append(m.domains, domain{value, isNone, isUnknown && !isNone})
	}
	t.matched[c] = m
	return m
}

// intolerableTaint returns a taint that the template does not tolerate, and whether there is one.
func (t *Template) intolerableTaint(c *v1alpha1.NodeClass) (v1.Taint, bool) {
	return corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, c.Taints, t.tolerations, nil, false)
}

// selects reports whether the terms match all nodes of a class, and whether they match some nodes if labels that differ between them
// have certain values.
func (t *Template) selects(c *v1alpha1.NodeClass) (all, some bool) {
	if t.terms == nil {
		return true, true
	}
	isVarious := func(r v1.NodeSelectorRequirement) bool { return slices.Contains(c.VariousLabels, r.Key) }
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.Labels}}
	for _, term := range t.terms {
		known := slices.DeleteFunc(slices.Clone(term.MatchExpressions), isVarious)
		matches := len(known) == 0
		if !matches {
			selector := v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: known}}}
			matches, _ = nodeaffinity.NewLazyErrorNodeSelector(&selector).Match(node) // invalid terms match no node
		}
		some = some || matches
		all = all || matches && len(known) == len(term.MatchExpressions) && len(term.MatchFields) == 0 // no names of nodes
	}
	return all, some
}
