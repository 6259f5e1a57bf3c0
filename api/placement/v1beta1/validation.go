package v1beta1

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// The bounds of numbers equal the bounds in the CRD.
const (
	MinWeight            = -10
	MaxWeight            = 10
	MaxTolerationSeconds = 100 * 365 * 24 * 60 * 60
	MaxSpreadConstraints = 8
	MaxReplicas          = 1_000_000_000
)

const maxNameLength = 253

// Validate returns the errors in a placement that its CRD cannot express: selectors that no label can meet, and a workload that cannot be
// requested.
func (s *PlacementSpec) Validate() (errs field.ErrorList) {
	path := field.NewPath("spec")
	for i := range s.Predicates {
		selector := &s.Predicates[i].RequiredClusterSelector
		at := path.Child("predicates").Index(i).Child("requiredClusterSelector")
		errs = append(errs, validateSelectors(at, &selector.LabelSelector, &selector.ClaimSelector)...)
	}
	for i := range s.DecisionStrategy.GroupStrategy.DecisionGroups {
		selector := &s.DecisionStrategy.GroupStrategy.DecisionGroups[i].ClusterSelector
		at := path.Child("decisionStrategy", "groupStrategy", "decisionGroups").Index(i).Child("groupClusterSelector")
		errs = append(errs, validateSelectors(at, &selector.LabelSelector, &selector.ClaimSelector)...)
	}
	if s.Workload != nil {
		errs = append(errs, s.Workload.Validate(path.Child("workload"))...)
	}
	return errs
}

// Validate returns the errors in a workload, which is at a path of a placement. It does not read the template.
func (w *WorkloadSpec) Validate(path *field.Path) (errs field.ErrorList) {
	if (w.Template != nil) == (w.Ref != nil) {
		errs = append(errs, field.Required(path, "must have exactly one of template and ref"))
	}
	if w.Ref != nil {
		errs = append(errs, oneOf(path.Child("ref", "kind"), w.Ref.Kind, "PodTemplate", "Deployment", "ManifestWork")...)
		name := path.Child("ref", "name")
		errs = append(errs, validateName(name, w.Ref.Name)...)
		for _, problem := range content.IsPathSegmentName(w.Ref.Name) { // such a name cannot be requested
			errs = append(errs, field.Invalid(name, w.Ref.Name, problem))
		}
	}
	if n := w.Replicas; n != nil && (*n < 0 || *n > MaxReplicas) {
		errs = append(errs, field.Invalid(path.Child("replicas"), *n, "must be in [0, 1000000000]"))
	}
	return errs
}

// oneOf returns an error if the value is not one of the allowed values.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func validateName(path *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "must have 1 to 253 characters")}
	case len(name) > maxNameLength:
		return field.ErrorList{field.TooLong(path, name, maxNameLength)}
	}
	return nil
}

// validateSelectors returns the errors in selectors of labels and claims. Claims are
// selected like labels: keys and values must be valid for labels.
func validateSelectors(path *field.Path, labels *metav1.LabelSelector, claims *clusterv1beta1.ClusterClaimSelector) field.ErrorList {
	at := path.Child("labelSelector")
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels.MatchLabels)) {
		errs = append(errs, validation.ValidateLabels(map[string]string{key: labels.MatchLabels[key]}, at.Child("matchLabels").Key(key))...)
	}
	errs = append(errs, validateRequirements(at.Child("matchExpressions"), labels.MatchExpressions)...)
	return append(errs, validateRequirements(path.Child("claimSelector", "matchExpressions"), claims.MatchExpressions)...)
}

func validateRequirements(path *field.Path, requirements []metav1.LabelSelectorRequirement) (errs field.ErrorList) {
	for i, r := range requirements {
		errs = append(errs, validation.ValidateLabelSelectorRequirement(r, validation.LabelSelectorValidationOptions{}, path.Index(i))...)
	}
	return errs
}
