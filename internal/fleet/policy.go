package fleet

import (
	"errors"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// MaxNameLength is how long the name of a placement may be: it is the value of a
// label of its PlacementDecisions.
const MaxNameLength = 63

// Policy is what a placement asks for, checked and made ready for many decisions.
type Policy struct {
	sets         []string
	predicates   []predicate
	tolerations  []placement.Toleration
	prioritizers []placement.Prioritizer
	number       int64
	spread       []placement.SpreadConstraint
	groups       []placement.NamedGroup
	groupSize    placement.Size
	sortByScore  bool
	// reads is what of a member of its sets can change the answer.
	reads Aspect
	// addOns are the AddOnPlacementScores whose values count, by name.
	addOns map[string]bool
}

// predicate is a way to qualify: a selector and expressions that must all hold.
type predicate struct {
	selector    placement.Selector
	expressions []*expression
}

// Compile reads a placement. The errors name all that is wrong, each with its
// field, what was found and what is allowed.
func Compile(p *v1beta1.Placement) (*Policy, field.ErrorList) {
	spec := p.Spec.DeepCopy()
	spec.Default()
	var errs field.ErrorList
	if len(p.Name) > MaxNameLength {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), p.Name, MaxNameLength))
	}
	errs = append(errs, spec.Validate()...)
	if len(errs) > 0 {
		return nil, errs
	}
	out := &Policy{
		sets: spec.ClusterSets, number: placement.All, reads: Existence | Labels | Taints,
		sortByScore: spec.SortBy == clusterv1beta1.PlacementSortByScore, addOns: map[string]bool{},
	}
	if spec.NumberOfClusters != nil {
		out.number = int64(*spec.NumberOfClusters)
	}
	out.predicates, errs = compilePredicates(spec.Predicates)
	var err error
	if out.prioritizers, err = prioritizersOf(&spec.PrioritizerPolicy); err != nil {
		path := field.NewPath("spec", "prioritizerPolicy")
		if mistake, ok := errors.AsType[*placement.ConfigurationError](err); ok && mistake.Index >= 0 {
			path = path.Child("configurations").Index(mistake.Index)
		}
		errs = append(errs, field.Invalid(path, "", err.Error()))
	}
	for i := range spec.Tolerations {
		out.tolerations = append(out.tolerations, tolerationOf(&spec.Tolerations[i]))
	}
	for _, term := range spec.SpreadPolicy.SpreadConstraints {
		out.spread = append(out.spread, placement.SpreadConstraint{
			Key: term.TopologyKey, Claim: term.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim,
			MaxSkew: term.MaxSkew, DoNotSchedule: term.WhenUnsatisfiable == clusterv1beta1.DoNotSchedule,
		})
	}
	for i := range spec.DecisionStrategy.GroupStrategy.DecisionGroups {
		group := &spec.DecisionStrategy.GroupStrategy.DecisionGroups[i]
		out.groups = append(out.groups, placement.NamedGroup{
			Name:     group.GroupName,
			Selector: selectorOf(&group.ClusterSelector.LabelSelector, group.ClusterSelector.ClaimSelector.MatchExpressions),
		})
	}
	out.groupSize = sizeOf(spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup)
	out.reads |= out.depends()
	return out, errs
}

// depends returns what of clusters, beside labels and taints, the policy looks
// at.
func (p *Policy) depends() (reads Aspect) {
	for i := range p.prioritizers {
		switch p.prioritizers[i].Kind {
		case placement.ResourceRatioCPU:
			reads |= AllocatableCPU | CapacityCPU
		case placement.ResourceRatioMemory:
			reads |= AllocatableMemory | CapacityMemory
		case placement.ResourceAllocatableCPU:
			reads |= AllocatableCPU
		case placement.ResourceAllocatableMemory:
			reads |= AllocatableMemory
		case placement.AddOn:
			reads |= Scores
			p.addOns[p.prioritizers[i].Coordinate.ResourceName] = true
		case placement.Balance, placement.Steady:
		}
	}
	if p.hasExpressions() {
		reads |= AllocatableCPU | AllocatableMemory | CapacityCPU | CapacityMemory | Scores | Others
	}
	return reads
}

// steady returns what a cluster gains by being chosen.
func (p *Policy) steady() int64 {
	for i := range p.prioritizers {
		if p.prioritizers[i].Kind == placement.Steady {
			return 100 * int64(p.prioritizers[i].Weight)
		}
	}
	return 0
}

// hasExpressions reports whether anything is written in CEL.
func (p *Policy) hasExpressions() bool {
	for i := range p.predicates {
		if len(p.predicates[i].expressions) > 0 {
			return true
		}
	}
	return false
}

func compilePredicates(predicates []clusterv1beta1.ClusterPredicate) (out []predicate, errs field.ErrorList) {
	for i := range predicates {
		selector := &predicates[i].RequiredClusterSelector
		compiled := predicate{selector: selectorOf(&selector.LabelSelector, selector.ClaimSelector.MatchExpressions)}
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector", "celSelector", "celExpressions")
		for j, text := range selector.CelSelector.CelExpressions {
			e, err := compileExpression(text)
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

// selectorOf returns selectors of labels and claims that have been validated.
func selectorOf(labels *metav1.LabelSelector, claims []metav1.LabelSelectorRequirement) placement.Selector {
	out := placement.Selector{Labels: requirementsOf(labels.MatchExpressions), Claims: requirementsOf(claims)}
	for key, value := range labels.MatchLabels { // all must hold: their order means nothing
		out.Labels = append(out.Labels, placement.Requirement{Key: key, Operator: placement.In, Values: []string{value}})
	}
	return out
}

func requirementsOf(in []metav1.LabelSelectorRequirement) (out []placement.Requirement) {
	operators := map[metav1.LabelSelectorOperator]placement.Operator{
		metav1.LabelSelectorOpIn: placement.In, metav1.LabelSelectorOpNotIn: placement.NotIn,
		metav1.LabelSelectorOpExists: placement.Exists, metav1.LabelSelectorOpDoesNotExist: placement.DoesNotExist,
	}
	for _, r := range in {
		out = append(out, placement.Requirement{Key: r.Key, Operator: operators[r.Operator], Values: r.Values})
	}
	return out
}

// prioritizersOf returns what the policy's mode and list come to.
func prioritizersOf(policy *v1beta1.PrioritizerPolicy) ([]placement.Prioritizer, error) {
	mode, err := placement.ParseMode(string(policy.Mode))
	if err != nil {
		return nil, err
	}
	var listed []placement.Configuration
	for i := range policy.Configurations {
		coordinate := policy.Configurations[i].Coordinate()
		c := placement.Configuration{Type: string(coordinate.Type), BuiltIn: string(coordinate.BuiltIn), Weight: 1}
		if weight := policy.Configurations[i].Weight; weight != nil {
			c.Weight = *weight
		}
		if coordinate.AddOn != nil {
			c.Coordinate = &placement.Coordinate{ResourceName: coordinate.AddOn.ResourceName, ScoreName: coordinate.AddOn.ScoreName}
		}
		listed = append(listed, c)
	}
	return placement.Resolve(mode, listed)
}

func tolerationOf(t *clusterv1beta1.Toleration) placement.Toleration {
	out := placement.Toleration{Key: t.Key, Value: t.Value, Effect: effectOf(string(t.Effect)), Seconds: t.TolerationSeconds}
	if t.Operator == clusterv1beta1.TolerationOpExists {
		out.Operator = placement.TolerateExists
	}
	return out
}

// sizeOf reads a number or a percentage that has been validated.
func sizeOf(n intstr.IntOrString) placement.Size {
	if n.Type == intstr.Int {
		return placement.Size{Number: int64(n.IntVal)}
	}
	percent, err := strconv.ParseInt(strings.TrimSuffix(n.StrVal, "%"), 10, 64)
	if err != nil {
		return placement.Size{}
	}
	return placement.Size{Percent: percent}
}

// Prioritizers returns the names and weights of what the policy ranks by.
func (p *Policy) Prioritizers() (names []string, weights []int32) {
	for i := range p.prioritizers {
		names, weights = append(names, p.prioritizers[i].Name()), append(weights, p.prioritizers[i].Weight)
	}
	return names, weights
}

// problems joins what is wrong into one message.
func problems(errs field.ErrorList) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return facts.Abbreviate(all, 5, "; ")
}
