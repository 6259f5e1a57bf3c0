package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Template is a pod template as far as summaries can answer for it. It has caches: it is not safe for concurrent use.
type Template struct {
	// Workload is the namespace and the name of the workload in the clusters. The name is empty if it is unknown.
	Workload types.NamespacedName

	requests    []request
	selector    map[string]string
	terms       []v1.NodeSelectorTerm // nil for all nodes
	tolerations []v1.Toleration
	hostPorts   []hostPort
	// alone is set if a node can have one pod of the template at most.
	alone  bool
	spread []spread
	// unsupported is why no summary can answer for the template, "" if summaries can.
	unsupported string

	// matched are the results of match by class, and counts is the buffer of a fit.
	matched map[class]matching
	counts  []int64
}

// request is a requested amount, above 0.
type request struct {
	resources.Resource

	amount int64
	// inverse is 1/amount, with a relative excess of more than the errors of a product.
	inverse float64
}

// spread is a topology spread constraint that pods must satisfy.
type spread struct {
	key                 string
	maxSkew, minDomains int64
	// honorsAffinity and honorsTaints are the policies of the constraint: which nodes count as domains.
	honorsAffinity, honorsTaints bool
}

// NewTemplate returns the template of a pod with the given workload. Its metadata matters for the selectors of the template itself.
func NewTemplate(workload types.NamespacedName, pod *v1.PodTemplateSpec) (*Template, error) {
	if len(pod.Spec.Containers) == 0 {
		return nil, errors.New("spec.containers: required: the template must be a pod template")
	}
	t := &Template{
		Workload: workload, selector: pod.Spec.NodeSelector, tolerations: pod.Spec.Tolerations, hostPorts: hostPortsOf(&pod.Spec),
		matched: map[class]matching{},
	}
	t.setRequests(&pod.Spec)
	t.alone = len(t.hostPorts) > 0
	if affinity := pod.Spec.Affinity; affinity != nil {
		if affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			t.terms = append(
				[]v1.NodeSelectorTerm{},
				affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms...)
		}
		if err := t.setPodAffinity(affinity, pod.Labels); err != nil {
			return nil, err
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		t.unsupported = "it has resource claims, and summaries have no devices"
	}
	if pod.Spec.NodeName != "" {
		t.unsupported = "it names a node, and summaries have no names of nodes"
	}
	return t, t.setSpread(pod)
}

// setRequests sets the requests. As in the API server, a limit without a request is also the request.
func (t *Template) setRequests(spec *v1.PodSpec) {
	pod := v1.Pod{Spec: *spec.DeepCopy()}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, given := r.Requests[name]; !given {
					if r.Requests == nil {
						r.Requests = v1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
	for name, quantity := range resources.Requests(&pod) {
		if r := resources.NewResource(name); r.Amount(quantity) > 0 {
			t.requests = append(t.requests, newRequest(r, r.Amount(quantity)))
		}
	}
	t.requests = append(t.requests, newRequest(resources.NewResource(v1.ResourcePods), 1))
	slices.SortFunc(t.requests, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.Index(), b.Index()), cmp.Compare(a.Name(), b.Name()))
	})
}

func newRequest(r resources.Resource, amount int64) request {
	return request{Resource: r, amount: amount, inverse: (1 + 0x1p-50) / float64(amount)}
}

// setPodAffinity sets alone if pods of the template exclude each other from a node. Summaries have no pods: other required terms
// cannot be answered.
func (t *Template) setPodAffinity(affinity *v1.Affinity, own map[string]string) error {
	if affinity.PodAffinity != nil && len(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		t.unsupported = "it requires pod affinity, and summaries have no pods"
	}
	if affinity.PodAntiAffinity == nil {
		return nil
	}
	for i, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			return fmt.Errorf("spec.affinity.podAntiAffinity[%d].labelSelector: %w", i, err)
		}
		if !selector.Matches(labels.Set(own)) || term.TopologyKey != v1.LabelHostname {
			t.unsupported = "it requires anti-affinity to other pods or by " + term.TopologyKey + ", and summaries have no pods"
		}
		t.alone = true
	}
	return nil
}

// setSpread sets the constraints that must be satisfied and that pods of the template can violate.
func (t *Template) setSpread(pod *v1.PodTemplateSpec) error {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable == v1.ScheduleAnyway {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			return fmt.Errorf("spec.topologySpreadConstraints[%d].labelSelector: %w", i, err)
		}
		next := spread{
			key: c.TopologyKey, maxSkew: int64(max(c.MaxSkew, 1)), minDomains: 1,
			honorsAffinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
			honorsTaints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
		}
		if c.MinDomains != nil {
			next.minDomains = int64(*c.MinDomains)
		}
		if !selector.Matches(labels.Set(pod.Labels)) {
			t.unsupported = "it spreads from other pods, and summaries have no pods"
		}
		t.spread = append(t.spread, next)
	}
	return nil
}

// matching is how the nodes of a class match a template.
type matching uint8

const (
	// selected means that the selector and the affinity of the template match, maySelect that they match if labels that differ
	// between the nodes of the class have certain values.
	selected matching = 1 << iota
	maySelect
	// tolerated means that the template tolerates all taints.
	tolerated
	feasible = selected | tolerated
)

// match returns how a class matches the template.
func (t *Template) match(c class) matching {
	if m, known := t.matched[c]; known {
		return m
	}
	if len(t.matched) >= maxMatched {
		clear(t.matched)
	}
	nodes := parseClass(c.Value())
	m := t.matchAffinity(&nodes)
	if t.intolerable(&nodes) == nil {
		m |= tolerated
	}
	t.matched[c] = m
	return m
}

// maxMatched is the number of classes whose results a template keeps.
const maxMatched = 100_000

// intolerable returns a taint that the template does not tolerate, nil if there is none.
func (t *Template) intolerable(c *v1alpha1.NodeClass) *v1alpha1.Taint {
	for i := range c.Taints {
		taint := v1.Taint{Key: c.Taints[i].Key, Value: c.Taints[i].Value, Effect: c.Taints[i].Effect}
		if !slices.ContainsFunc(t.tolerations, func(tol v1.Toleration) bool { return tol.ToleratesTaint(klog.Logger{}, &taint, false) }) {
			return &c.Taints[i]
		}
	}
	return nil
}

// matchAffinity returns selected, maySelect or neither.
func (t *Template) matchAffinity(c *v1alpha1.NodeClass) matching {
	bySelector := selected
	for key, value := range t.selector {
		bySelector = both(bySelector, requirement(c, v1.NodeSelectorRequirement{
			Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value},
		}))
	}
	if t.terms == nil {
		return bySelector
	}
	var byTerms matching
	for i := range t.terms {
		term := &t.terms[i]
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			continue // matches no node
		}
		m := selected
		if len(term.MatchFields) > 0 { // names of nodes
			m = maySelect
		}
		for _, e := range term.MatchExpressions {
			m = both(m, requirement(c, e))
		}
		if m == selected || byTerms == 0 {
			byTerms = m
		}
	}
	return both(bySelector, byTerms)
}

// both returns the result of two conditions: selected, maySelect or neither.
func both(a, b matching) matching {
	switch {
	case a == 0 || b == 0:
		return 0
	case a == selected && b == selected:
		return selected
	}
	return maySelect
}

// requirement returns selected, maySelect or neither for a requirement on a label.
func requirement(c *v1alpha1.NodeClass, r v1.NodeSelectorRequirement) matching {
	if slices.Contains(c.VariousLabels, r.Key) {
		return maySelect
	}
	value, has := c.Labels[r.Key]
	isTrue := false
	switch r.Operator {
	case v1.NodeSelectorOpIn:
		isTrue = has && slices.Contains(r.Values, value)
	case v1.NodeSelectorOpNotIn:
		isTrue = !has || !slices.Contains(r.Values, value)
	case v1.NodeSelectorOpExists:
		isTrue = has
	case v1.NodeSelectorOpDoesNotExist:
		isTrue = !has
	case v1.NodeSelectorOpGt:
		isTrue = has && compareNumbers(value, r.Values) > 0
	case v1.NodeSelectorOpLt:
		isTrue = has && compareNumbers(value, r.Values) < 0
	}
	if isTrue {
		return selected
	}
	return 0
}

// compareNumbers compares a label with the only value of a requirement, 0 if one of them is not an integer.
func compareNumbers(label string, values []string) int {
	if len(values) != 1 {
		return 0
	}
	a, errA := strconv.ParseInt(label, 10, 64)
	b, errB := strconv.ParseInt(values[0], 10, 64)
	if errA != nil || errB != nil {
		return 0
	}
	return cmp.Compare(a, b)
}
