package fleet

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// maxNameLength is the maximum length of the name of a placement, which is the value
// of a label of its PlacementDecisions.
const maxNameLength = 63

// placementPolicy is the validated and compiled spec of a placement.
type placementPolicy struct {
	sets []string
	// request is the part of requests that follows from the spec.
	request decide.Request
	// expressions are the expressions of each predicate.
	expressions [][]*expression.Expression
	// fields are the fields of clusters that decisions depend on.
	fields fieldMask
	// addOns are the names of the AddOnPlacementScores that prioritizers use.
	addOns map[string]bool
	// warnings are about parts of the spec that are valid but probably a mistake.
	warnings []string
}

// DependsOnTime reports whether decisions of the policy can depend on the time: it tolerates taints for a while,
// or uses scores that can expire.
func (p *placementPolicy) DependsOnTime() bool {
	return len(p.addOns) > 0 ||
		slices.ContainsFunc(p.request.Tolerations, func(t clusterv1beta1.Toleration) bool { return t.TolerationSeconds != nil })
}

// compilePolicy validates and compiles the spec of a placement. It returns all errors.
func compilePolicy(p *v1beta1.Placement) (*placementPolicy, field.ErrorList) {
	spec := p.Spec.DeepCopy()
	spec.Default()
	var errs field.ErrorList
	if len(p.Name) > maxNameLength {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), p.Name, maxNameLength))
	}
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}
	errs = append(errs, crd.ValidatePlacement(&v1beta1.Placement{ObjectMeta: meta, Spec: *spec})...)
	if len(errs) == 0 {
		errs = spec.Validate()
	}
	if len(errs) > 0 {
		return nil, errs
	}
	groups := &spec.DecisionStrategy.GroupStrategy
	out := &placementPolicy{
		sets: spec.ClusterSets, fields: existence | labelFields | taintFields, addOns: map[string]bool{},
		request: decide.Request{
			Tolerations: spec.Tolerations, Number: decide.All, Spread: spec.SpreadPolicy.SpreadConstraints,
			GroupSize: groups.ClustersPerDecisionGroup, SortByScore: spec.SortBy == clusterv1beta1.PlacementSortByScore,
		},
	}
	if spec.NumberOfClusters != nil {
		out.request.Number = int64(*spec.NumberOfClusters)
	}
	out.request.Prioritizers, out.warnings = prioritizersOf(&spec.PrioritizerPolicy)
	errs = out.compilePredicates(spec.Predicates)
	for i := range groups.DecisionGroups {
		group := &groups.DecisionGroups[i]
		out.request.Groups = append(out.request.Groups, decide.NamedGroup{
			Name:     group.GroupName,
			Selector: selectorOf(&group.ClusterSelector.LabelSelector, group.ClusterSelector.ClaimSelector.MatchExpressions),
		})
	}
	out.setFields()
	return out, errs
}

// setFields adds the fields of clusters that prioritizers and expressions read, and sets addOns.
func (p *placementPolicy) setFields() {
	for i := range p.request.Prioritizers {
		prioritizer := &p.request.Prioritizers[i]
		if prioritizer.ReadsAmounts() {
			p.fields |= amountFields
		}
		if prioritizer.Kind == decide.KindAddOn {
			p.fields |= scoreFields
			p.addOns[prioritizer.Coordinate.ResourceName] = true
		}
	}
	if p.hasExpressions() {
		p.fields |= amountFields | scoreFields | otherFields
	}
}

// hasExpressions reports whether a predicate has CEL expressions.
func (p *placementPolicy) hasExpressions() bool {
	return slices.ContainsFunc(p.request.Predicates, func(p decide.Predicate) bool { return p.HasExpressions })
}

// compilePredicates sets the predicates, whose selectors are valid.
func (p *placementPolicy) compilePredicates(predicates []clusterv1beta1.ClusterPredicate) (errs field.ErrorList) {
	var texts []string
	for i := range predicates {
		texts = append(texts, predicates[i].RequiredClusterSelector.CelSelector.CelExpressions...)
	}
	if err := expression.CheckAll(texts); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "predicates"), field.OmitValueType{}, err.Error())}
	}
	for i := range predicates {
		selector := &predicates[i].RequiredClusterSelector
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector", "celSelector", "celExpressions")
		var compiled []*expression.Expression
		for j, text := range selector.CelSelector.CelExpressions {
			e, err := expression.Compile(path.Index(j).String(), text)
			if err != nil {
				errs = append(errs, field.Invalid(path.Index(j), text, err.Error()))
				continue
			}
			compiled = append(compiled, e)
		}
		p.expressions = append(p.expressions, compiled)
		p.request.Predicates = append(p.request.Predicates, decide.Predicate{
			Selector:       selectorOf(&selector.LabelSelector, selector.ClaimSelector.MatchExpressions),
			HasExpressions: len(selector.CelSelector.CelExpressions) > 0,
		})
	}
	return errs
}

// selectorOf returns the selector of valid selectors of labels and claims.
func selectorOf(labelSelector *metav1.LabelSelector, claims []metav1.LabelSelectorRequirement) (out decide.Selector) {
	compile := func(selector *metav1.LabelSelector) labels.Selector {
		compiled, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil { // validated before
			return labels.Nothing()
		}
		return compiled
	}
	out.Labels = compile(labelSelector)
	out.Claims = compile(&metav1.LabelSelector{MatchExpressions: claims})
	return out
}

// prioritizersOf returns the prioritizers of a valid policy with defaults, and warnings
// about repeated prioritizers: the last weight of a built-in prioritizer counts, the
// weights of a score of an add-on are added, as Open Cluster Management does.
func prioritizersOf(policy *v1beta1.PrioritizerPolicy) (enabled []decide.Prioritizer, warnings []string) {
	var configured []decide.Prioritizer
	index := map[string]int{}
	for i := range policy.Configurations {
		coordinate := policy.Configurations[i].Coordinate()
		p := decide.Prioritizer{Weight: *policy.Configurations[i].Weight}
		if coordinate.Type == v1beta1.AddOn {
			p.Kind, p.Coordinate = decide.KindAddOn, *coordinate.AddOn
		} else {
			p.Kind = coordinate.BuiltIn
		}
		first, repeated := index[p.Name()]
		if !repeated {
			index[p.Name()] = len(configured)
			configured = append(configured, p)
			continue
		}
		path := field.NewPath("spec", "prioritizerPolicy", "configurations").Index(i)
		if p.Kind == decide.KindAddOn {
			configured[first].Weight += p.Weight
			warnings = append(warnings, fmt.Sprintf("%s: %s is listed repeatedly: its weights are added", path, p.Name()))
		} else {
			configured[first].Weight = p.Weight
			warnings = append(warnings,
				fmt.Sprintf("%s: %s is listed repeatedly: its last weight counts, which is %d", path, p.Name(), p.Weight))
		}
	}
	return decide.EnabledPrioritizers(policy.Mode != v1beta1.Exact, configured), warnings
}

// Prioritizers returns the names and weights of the prioritizers.
func (p *placementPolicy) Prioritizers() (names []string, weights []int32) {
	for i := range p.request.Prioritizers {
		prioritizer := &p.request.Prioritizers[i]
		names, weights = append(names, prioritizer.Name()), append(weights, prioritizer.Weight)
	}
	return names, weights
}

// joinErrors returns the first errors and the number of further errors.
func joinErrors(errs field.ErrorList) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return format.Abbreviate(texts, 5, "; ")
}
