package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Validate validates a policy after Default. Each error names the field and the allowed values.
func (s *ResourceSlackSpec) Validate() error {
	var errs field.ErrorList
	path := field.NewPath("spec")
	errs = append(errs, s.validateRate(path, s.MinRate)...)
	errs = append(errs, s.Minimum.validate(path.Child("minimum"), s.Maximum)...)
	errs = append(errs, s.Maximum.validate(path.Child("maximum"), nil)...)
	errs = append(errs, s.validateSchedules(path.Child("schedules"))...)
	_, invalid := s.Calendar()
	errs = append(errs, invalid...)
	if s.Base != BaseRequested && s.Base != BaseAllocatable {
		errs = append(errs, field.NotSupported(path.Child("base"), s.Base, []Base{BaseRequested, BaseAllocatable}))
	}
	errs = append(errs, validateRange(path.Child("granularity"), s.Granularity, 100)...)
	errs = append(errs, validateRange(path.Child("maxPlaceholders"), s.MaxPlaceholders, 100_000)...)
	errs = append(errs, s.validateDevices(path)...)
	errs = append(errs, s.Pool.validateScheduling(path.Child("pool"))...)
	if name := s.PriorityClassName; name != "" {
		if strings.HasPrefix(name, "system-") {
			errs = append(errs, field.Invalid(path.Child("priorityClassName"), name,
				"must be a class with a value from -10 to -1: placeholders of this class would evict pods"))
		}
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path.Child("priorityClassName"), name, problem))
		}
	}
	shape := s.Pool.NodeShape
	errs = append(errs, shape.validate(path.Child("pool", "nodeShape"), nil)...)
	if shape != nil && (shape.CPU == nil || shape.Memory == nil || shape.Placeholders != nil) {
		errs = append(errs, field.Required(path.Child("pool", "nodeShape"), "must have cpu and memory, and nothing else"))
	}
	if s.Spread != nil {
		spread := path.Child("spread")
		if invalid := validation.IsQualifiedName(s.Spread.TopologyKey); len(invalid) > 0 {
			errs = append(errs, field.Invalid(spread.Child("topologyKey"), s.Spread.TopologyKey, "must be a label such as "+
				"topology.kubernetes.io/zone: "+invalid[0]))
		}
		errs = append(errs, validateRange(spread.Child("minPerDomain"), s.Spread.MinPerDomain, 1000)...)
	}
	mirrors := path.Child("mirrors")
	errs = append(errs, validateRange(mirrors.Child("maxPerWorkload"), s.Mirrors.MaxPerWorkload, 10_000)...)
	errs = append(errs, validateRange(mirrors.Child("maxPerNamespace"), s.Mirrors.MaxPerNamespace, 100_000)...)
	errs = append(errs, metav1validation.ValidateLabelSelector(s.Mirrors.NamespaceSelector,
		metav1validation.LabelSelectorValidationOptions{}, mirrors.Child("namespaceSelector"))...)
	if !slices.Contains(Backends, s.Backend) {
		errs = append(errs, field.NotSupported(path.Child("backend"), s.Backend, Backends))
	}
	return errs.ToAggregate()
}

func (s *ResourceSlackSpec) validateSchedules(path *field.Path) (errs field.ErrorList) {
	for i := range s.Schedules {
		schedule := path.Index(i)
		if s.Schedules[i].MinRate != "" {
			errs = append(errs, s.validateRate(schedule, s.Schedules[i].MinRate)...)
		}
		errs = append(errs, s.Schedules[i].Minimum.validate(schedule.Child("minimum"), s.Maximum)...)
		if lead := ptr.Deref(s.Schedules[i].LeadSeconds, 0); lead < 0 || lead > 3600 {
			errs = append(errs, field.Invalid(schedule.Child("leadSeconds"), lead, "must be in [0, 3600]"))
		}
	}
	return errs
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

// extendedResource matches the names of extended resources, and of resources of Kubernetes that have a domain.
var extendedResource = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// validateDevices returns errors for devices that are not different extended resources.
func (s *ResourceSlackSpec) validateDevices(path *field.Path) (errs field.ErrorList) {
	devices, list := path.Child("pool", "devices"), s.Pool.Devices
	if len(list) > 0 && s.Base == BaseAllocatable {
		errs = append(errs, field.Invalid(path.Child("base"), s.Base,
			"must be Requested if pool.devices is set: devices are counted by the requests of pods"))
	}
	if len(list) > MaxDevices {
		errs = append(errs, field.TooMany(devices, len(list), MaxDevices))
	}
	for i, name := range list {
		switch {
		case !extendedResource.MatchString(name) || strings.Contains(name, "kubernetes.io/") || strings.HasPrefix(name, "requests."):
			errs = append(errs, field.Invalid(devices.Index(i), name, "must be the name of an extended resource such as nvidia.com/gpu"))
		case slices.Contains(list[:i], name):
			errs = append(errs, field.Duplicate(devices.Index(i), name))
		}
	}
	return errs
}

// validateRate returns an error for an invalid rate in a field minRate.
func (s *ResourceSlackSpec) validateRate(path *field.Path, rate string) field.ErrorList {
	path = path.Child("minRate")
	parsed, err := ParseRate(rate)
	switch {
	case rate == "":
		return field.ErrorList{field.Required(path, "must be "+RateForm)}
	case err != nil:
		return field.ErrorList{field.Invalid(path, rate, "must be "+RateForm)}
	case s.Base == BaseAllocatable && parsed >= Millionth:
		return field.ErrorList{field.Invalid(path, rate,
			"must be less than 100% if base is Allocatable: the base includes the nodes that the slack adds")}
	case parsed > MaxRate:
		return field.ErrorList{field.Invalid(path, rate, "must be at most 200%: set a minimum for more")}
	}
	return nil
}

// validate returns errors for amounts that are not positive, or more than those of a maximum, which may be nil.
func (a *Amount) validate(path *field.Path, maximum *Amount) (errs field.ErrorList) {
	if a == nil {
		return nil
	}
	if maximum == nil {
		maximum = &Amount{}
	}
	for _, q := range []struct {
		name         string
		amount, most *resource.Quantity
	}{{"cpu", a.CPU, maximum.CPU}, {"memory", a.Memory, maximum.Memory}} {
		switch {
		case q.amount == nil:
		case q.amount.Sign() <= 0:
			errs = append(errs, field.Invalid(path.Child(q.name), q.amount.String(), "must be a quantity of more than 0"))
		case q.most != nil && q.amount.Cmp(*q.most) > 0:
			errs = append(errs, field.Invalid(path.Child(q.name), q.amount.String(),
				fmt.Sprintf("must be at most spec.maximum.%s, %s", q.name, q.most)))
		case q.name == "cpu" && q.amount.CmpInt64(1_000_000) > 0:
			errs = append(errs, field.Invalid(path.Child(q.name), q.amount.String(), "must be a number of CPUs such as 8 or 500m"))
		case q.name == "memory" && q.amount.CmpInt64(1<<20) < 0:
			errs = append(errs, field.Invalid(path.Child(q.name), q.amount.String(), "must be at least 1Mi; did you mean Gi?"))
		}
	}
	if a.Placeholders == nil {
		return errs
	}
	errs = append(errs, validateRange(path.Child("placeholders"), a.Placeholders, 100_000)...)
	if maximum.Placeholders != nil && *a.Placeholders > *maximum.Placeholders {
		errs = append(errs, field.Invalid(path.Child("placeholders"), *a.Placeholders,
			fmt.Sprintf("must be at most spec.maximum.placeholders, %d", *maximum.Placeholders)))
	}
	return errs
}

// validateRange returns an error if a number is not in [1, maximum].
func validateRange(path *field.Path, number *int32, maximum int32) field.ErrorList {
	if *number >= 1 && *number <= maximum {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *number, fmt.Sprintf("must be in [1, %d]", maximum))}
}
