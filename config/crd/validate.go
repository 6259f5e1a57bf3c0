package crd

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Validator validates objects as an API server with a CRD does: by the schema, and by the rules in CEL.
type Validator struct {
	structure *schema.Structural
	fields    validation.SchemaValidator
	rules     *cel.Validator
}

// NewValidator returns the validator of a version of a CRD, nil if the CRD does not have the version.
func NewValidator(manifest []byte, version string) (*Validator, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(manifest, &definition); err != nil {
		return nil, err
	}
	for _, v := range definition.Spec.Versions {
		var properties apiextensions.JSONSchemaProps
		if v.Name != version {
			continue
		}
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &properties, nil)
		if err != nil {
			return nil, err
		}
		out := &Validator{}
		if out.structure, err = schema.NewStructural(&properties); err != nil {
			return nil, err
		}
		if out.fields, _, err = validation.NewSchemaValidator(&properties); err != nil {
			return nil, err
		}
		out.rules = cel.NewValidator(out.structure, true, celconfig.PerCallLimit)
		return out, nil
	}
	return nil, nil
}

// Validate returns what an API server would refuse in an object, in the order of the fields. It sets the defaults of the object.
func (v *Validator) Validate(object map[string]any) field.ErrorList {
	defaulting.Default(object, v.structure)
	errs := validation.ValidateCustomResource(nil, object, v.fields)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structure, object)...)
	if len(errs) == 0 && v.rules != nil {
		errs, _ = v.rules.Validate(context.Background(), nil, v.structure, object, nil, celconfig.RuntimeCELCostBudget)
	}
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	return errs
}

var (
	slackValidator     = sync.OnceValues(func() (*Validator, error) { return NewValidator(ResourceSlacks, "v1alpha1") })
	placementValidator = sync.OnceValues(func() (*Validator, error) { return NewValidator(Placements, "v1beta1") })
)

// ValidateResourceSlack returns what the API server would refuse in a ResourceSlack.
func ValidateResourceSlack(policy any) field.ErrorList { return validate(slackValidator, policy) }

// ValidatePlacement returns what an API server with the CRD of Plimsoll would refuse in a Placement.
func ValidatePlacement(placement any) field.ErrorList { return validate(placementValidator, placement) }

// validate validates an object of a type of Go.
func validate(validator func() (*Validator, error), object any) field.ErrorList {
	v, err := validator()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return v.Validate(content)
}
