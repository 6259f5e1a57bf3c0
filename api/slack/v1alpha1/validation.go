package v1alpha1

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns the errors of a policy that its CRD cannot express, in the order of the fields: schedules that never apply, amounts that
// are probably in another unit, and names that the API server refuses in placeholders.
func (s *ResourceSlackSpec) Validate() error {
	path := field.NewPath("spec")
	errs := append(s.Minimum.validate(path.Child("minimum")), s.Maximum.validate(path.Child("maximum"))...)
	for i := range s.Schedules {
		errs = append(errs, s.Schedules[i].Minimum.validate(path.Child("schedules").Index(i).Child("minimum"))...)
	}
	_, invalid := s.Calendar()
	errs = append(append(errs, invalid...), s.Pool.validateScheduling(path.Child("pool"))...)
	errs = append(errs, s.Pool.NodeShape.validate(path.Child("pool", "nodeShape"))...)
	if name := s.PriorityClassName; name != "" {
		if strings.HasPrefix(name, "system-") {
			errs = append(errs, field.Invalid(path.Child("priorityClassName"), name,
				"must be a class with a value from -10 to -1: placeholders of this class would evict pods"))
		}
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path.Child("priorityClassName"), name, problem))
		}
	}
	if s.Spread != nil {
		errs = append(errs, metav1validation.ValidateLabelName(s.Spread.TopologyKey, path.Child("spread", "topologyKey"))...)
	}
	return append(errs, metav1validation.ValidateLabelSelector(s.Mirrors.NamespaceSelector,
		metav1validation.LabelSelectorValidationOptions{}, path.Child("mirrors", "namespaceSelector"))...).ToAggregate()
}

// validateScheduling returns errors for a node selector and tolerations that the API server refuses in the placeholders.
func (p *Pool) validateScheduling(path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(p.NodeSelector, path.Child("nodeSelector"))
	for i, t := range p.Tolerations {
		at := path.Child("tolerations").Index(i)
		switch exists := t.Operator == v1.TolerationOpExists; {
		case t.Operator != "" && t.Operator != v1.TolerationOpEqual && !exists:
			operators := []v1.TolerationOperator{v1.TolerationOpEqual, v1.TolerationOpExists}
			errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, operators))
		case t.Key == "" && !exists:
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "must be Exists if key is empty"))
		case t.Value != "" && exists:
			errs = append(errs, field.Invalid(at.Child("value"), t.Value, "must be empty if operator is Exists"))
		}
		if t.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		}
		for _, problem := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(at.Child("value"), t.Value, problem))
		}
		effects := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}
		if t.Effect != "" && !slices.Contains(effects, t.Effect) {
			errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, effects))
		}
		if t.TolerationSeconds != nil && t.Effect != v1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute if tolerationSeconds is set"))
		}
	}
	return errs
}

// validate returns errors for amounts in another unit.
func (a *Amount) validate(path *field.Path) (errs field.ErrorList) {
	if a != nil && a.CPU != nil && a.CPU.CmpInt64(1_000_000) > 0 {
		errs = append(errs, field.Invalid(path.Child("cpu"), a.CPU.String(), "must be a number of CPUs such as 8 or 500m"))
	}
	if a != nil && a.Memory != nil && a.Memory.CmpInt64(1<<20) < 0 {
		errs = append(errs, field.Invalid(path.Child("memory"), a.Memory.String(), "must be at least 1Mi; did you mean Gi?"))
	}
	return errs
}
