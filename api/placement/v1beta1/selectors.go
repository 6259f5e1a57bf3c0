package v1beta1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

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
		at := path.Index(i)
		wrong := oneOf(at.Child("operator"), r.Operator, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn,
			metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
		if len(wrong) == 0 {
			wrong = validation.ValidateLabelSelectorRequirement(r, validation.LabelSelectorValidationOptions{}, at)
		}
		errs = append(errs, wrong...)
	}
	return errs
}
