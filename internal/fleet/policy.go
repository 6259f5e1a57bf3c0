package fleet

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// maxNameLength is the maximum length of the name of a placement, which is the value
// of a label of its PlacementDecisions.
const maxNameLength = 63

// Policy is the validated and compiled spec of a placement.
type Policy struct {
	sets []string
	// request is the part of requests that follows from the spec.
	request Request
	// fields are the fields of clusters that decisions depend on.
	fields fieldMask
	// addOns are the names of the AddOnPlacementScores that prioritizers use.
	addOns map[string]bool
	// warnings are about parts of the spec that are valid but probably a mistake.
	warnings []string
}

// DependsOnTime reports whether decisions of the policy can depend on the time: it tolerates taints for a while,
// or uses scores that can expire.
func (p *Policy) DependsOnTime() bool {
	return len(p.addOns) > 0 ||
		slices.ContainsFunc(p.request.Tolerations, func(t clusterv1beta1.Toleration) bool { return t.TolerationSeconds != nil })
}

// Compile validates and compiles the spec of a placement. It returns all errors.
func Compile(p *v1beta1.Placement) (*Policy, field.ErrorList) {
	spec := p.Spec.DeepCopy()
	spec.Default()
	var errs field.ErrorList
	if len(p.Name) > maxNameLength {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), p.Name, maxNameLength))
	}
	errs = append(errs, spec.Validate()...)
	if len(errs) > 0 {
		return nil, errs
	}
	groups := &spec.DecisionStrategy.GroupStrategy
	out := &Policy{
		sets: spec.ClusterSets, fields: existence | labelFields | taintFields, addOns: map[string]bool{},
		request: Request{
			Tolerations: spec.Tolerations, Number: All, Spread: spec.SpreadPolicy.SpreadConstraints,
			GroupSize: groups.ClustersPerDecisionGroup, SortByScore: spec.SortBy == clusterv1beta1.PlacementSortByScore,
		},
	}
	if spec.NumberOfClusters != nil {
		out.request.Number = int64(*spec.NumberOfClusters)
	}
	out.request.Predicates, errs = compilePredicates(spec.Predicates)
	out.request.Prioritizers, out.warnings = prioritizersOf(&spec.PrioritizerPolicy)
	for i := range groups.DecisionGroups {
		group := &groups.DecisionGroups[i]
		out.request.Groups = append(out.request.Groups, NamedGroup{
			Name:     group.GroupName,
			Selector: selectorOf(&group.ClusterSelector.LabelSelector, group.ClusterSelector.ClaimSelector.MatchExpressions),
		})
	}
	out.setFields()
	return out, errs
}

// setFields adds the fields of clusters that prioritizers and expressions read, and sets addOns.
func (p *Policy) setFields() {
	for i := range p.request.Prioritizers {
		prioritizer := &p.request.Prioritizers[i]
		p.fields |= kinds[prioritizer.Kind].reads
		if prioritizer.Kind == kindAddOn {
			p.addOns[prioritizer.Coordinate.ResourceName] = true
		}
	}
	if p.hasExpressions() {
		p.fields |= amountFields | scoreFields | otherFields
	}
}

// hasExpressions reports whether a predicate has CEL expressions.
func (p *Policy) hasExpressions() bool {
	return slices.ContainsFunc(p.request.Predicates, func(p Predicate) bool { return len(p.expressions) > 0 })
}

// compilePredicates compiles predicates whose selectors are valid.
func compilePredicates(predicates []clusterv1beta1.ClusterPredicate) (out []Predicate, errs field.ErrorList) {
	if errs := checkExpressions(predicates); len(errs) > 0 {
		return nil, errs
	}
	for i := range predicates {
		selector := &predicates[i].RequiredClusterSelector
		compiled := Predicate{Selector: selectorOf(&selector.LabelSelector, selector.ClaimSelector.MatchExpressions)}
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector", "celSelector", "celExpressions")
		for j, text := range selector.CelSelector.CelExpressions {
			e, err := compileExpression(path.Index(j).String(), text)
			if err != nil {
				errs = append(errs, field.Invalid(path.Index(j), text, err.Error()))
				continue
			}
			compiled.expressions = append(compiled.expressions, e)
		}
		out = append(out, compiled)
	}
	return out, errs
}

// checkExpressions checks the number and the total length of the expressions.
func checkExpressions(predicates []clusterv1beta1.ClusterPredicate) (errs field.ErrorList) {
	number, length := 0, 0
	for i := range predicates {
		for _, text := range predicates[i].RequiredClusterSelector.CelSelector.CelExpressions {
			number, length = number+1, length+len(text)
		}
	}
	path := field.NewPath("spec", "predicates")
	if number > maxExpressions {
		errs = append(errs, field.Invalid(path, number, fmt.Sprintf("at most %d CEL expressions are allowed", maxExpressions)))
	}
	if length > maxTextsLength {
		errs = append(errs, field.Invalid(path, length, fmt.Sprintf("CEL expressions must have at most %d bytes in total", maxTextsLength)))
	}
	return errs
}

// selectorOf returns the selector of valid selectors of labels and claims.
func selectorOf(labels *metav1.LabelSelector, claims []metav1.LabelSelectorRequirement) Selector {
	out := Selector{Labels: slices.Clone(labels.MatchExpressions), Claims: claims}
	for key, value := range labels.MatchLabels { // the order does not matter
		out.Labels = append(out.Labels, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value},
		})
	}
	return out
}

// prioritizersOf returns the prioritizers of a valid policy with defaults, and warnings
// about repeated prioritizers: the last weight of a built-in prioritizer counts, the
// weights of a score of an add-on are added, as Open Cluster Management does.
func prioritizersOf(policy *v1beta1.PrioritizerPolicy) (enabled []Prioritizer, warnings []string) {
	var configured []Prioritizer
	index := map[string]int{}
	for i := range policy.Configurations {
		coordinate := policy.Configurations[i].Coordinate()
		p := Prioritizer{Weight: *policy.Configurations[i].Weight}
		if coordinate.Type == v1beta1.AddOn {
			p.Kind, p.Coordinate = kindAddOn, *coordinate.AddOn
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
		if p.Kind == kindAddOn {
			configured[first].Weight += p.Weight
			warnings = append(warnings, fmt.Sprintf("%s: %s is listed repeatedly: its weights are added", path, p.Name()))
		} else {
			configured[first].Weight = p.Weight
			warnings = append(
				warnings,
				fmt.Sprintf("%s: %s is listed repeatedly: its last weight counts, which is %d", path, p.Name(), p.Weight),
			)
		}
	}
	return Resolve(policy.Mode != v1beta1.Exact, configured), warnings
}

// Prioritizers returns the names and weights of the prioritizers.
func (p *Policy) Prioritizers() (names []string, weights []int32) {
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
