package manifest

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	placementv1beta1 "github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// hubSchema is the schema of a kind of a hub.
type hubSchema struct {
	structure *schema.Structural
	fields    validation.SchemaValidator
}

// newHubSchema returns the schema of a kind in a version, nil for kinds and versions without one.
func newHubSchema(kind, version string) (*hubSchema, error) {
	var manifest []byte
	switch kind {
	case "ClusterCapacity":
		manifest = crd.ClusterCapacities
	case "Placement":
		manifest = crd.Placements
	default:
		manifest, _ = crd.OCM.ReadFile("ocm/cluster.open-cluster-management.io_" + strings.ToLower(kind) + "s.yaml")
	}
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
		requirePositive(&properties)
		out := &hubSchema{}
		if out.structure, err = schema.NewStructural(&properties); err != nil {
			return nil, err
		}
		out.fields, _, err = validation.NewSchemaValidator(&properties)
		return out, err
	}
	return nil, nil
}

// requirePositive changes the quantities in a schema: no cluster has a negative amount.
func requirePositive(s *apiextensions.JSONSchemaProps) {
	if s.XIntOrString {
		s.Minimum = new(0.0)
		for _, sign := range []string{`^(\+|-)?`, "^[+-]?"} {
			if amount, isSigned := strings.CutPrefix(s.Pattern, sign); isSigned {
				s.Pattern = "^" + amount
			}
		}
	}
	for name, property := range s.Properties {
		requirePositive(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		requirePositive(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		requirePositive(s.AdditionalProperties.Schema)
	}
}

// bodyPhrases are texts of the validation of schemas in the words of other messages.
var bodyPhrases = strings.NewReplacer("should be at most the", "must be at most", "should be greater than or equal to", "must be at least",
	"should be at least", "must have at least", "chars long", "characters", "should", "must")

// inBody matches the repetition of a field, and the others a quantity or a name, in a text of the validation of schemas.
var (
	inBody    = regexp.MustCompile(`: \S+ in body `)
	ofAmounts = regexp.MustCompile(`should match '.*KMGTPE.*'`)
	ofNames   = regexp.MustCompile(`should match '.*'`)
)

// validate returns what an API server with the schema would refuse in an object.
func (s *hubSchema) validate(asJSON []byte) field.ErrorList {
	var object map[string]any
	_ = json.Unmarshal(asJSON, &object) // decoded before
	defaulting.Default(object, s.structure)
	errs := validation.ValidateCustomResource(nil, object, s.fields)
	return append(errs, listtype.ValidateListSetsAndMaps(nil, s.structure, object)...)
}

// schemaOf returns the schema of the kind of an object, nil if there is none.
func (r *hubReader) schemaOf(head *header) (s *hubSchema, err error) {
	s, isLoaded := r.schemas[head.TypeMeta]
	if !isLoaded {
		s, err = newHubSchema(head.Kind, head.groupVersionKind().Version)
		r.schemas[head.TypeMeta] = s
	}
	return s, err
}

// maxHubBytes is the size of the objects of a hub that are validated, in half a second. A larger hub comes from an API server, which has
// validated its objects.
const maxHubBytes = 1 << 19

// validate adds warnings about the fields of an object that the API server of a hub would refuse.
func (r *hubReader) validate(where string, asJSON []byte, head *header, obj object) error {
	if r.validated += len(asJSON); r.schemas == nil || r.validated > maxHubBytes {
		return nil
	}
	s, err := r.schemaOf(head)
	if err != nil {
		return err
	}
	isName, isValid := apivalidation.NameIsDNSSubdomain, true
	switch obj := obj.(type) {
	case *clusterv1.ManagedCluster:
		isName = apivalidation.NameIsDNSLabel // of its namespace
	case *clusterv1beta1.PlacementDecision:
		if obj.Labels[clusterv1beta1.PlacementLabel] == "" {
			r.warn("%s: %s: metadata.labels[%s]: required: the placement; without it, the decision is ignored", where, head,
				clusterv1beta1.PlacementLabel)
		}
	case *placementv1beta1.Placement: // a condition has other errors; the schema has values that the defaults replace, such as maxSkew 0
		spec := obj.Spec.DeepCopy()
		spec.Default()
		isValid = len(spec.Validate()) == 0
	case *fleet.ClusterCapacity:
		isValid = r.validateCapacity(where, asJSON, head, obj)
	}
	errs := apivalidation.ValidateObjectMetaAccessor(obj, obj.GetNamespace() != "", isName, field.NewPath("metadata"))
	if s != nil && isValid {
		errs = append(errs, s.validate(asJSON)...)
	}
	if b, ok := obj.(*clusterv1beta2.ManagedClusterSetBinding); ok && b.Spec.ClusterSet != b.Name {
		errs = append(
			errs,
			field.Invalid(field.NewPath("spec", "clusterSet"), b.Spec.ClusterSet, "must be the name of the binding, "+b.Name),
		)
	}
	for _, text := range problemTexts("", errs) {
		text = ofAmounts.ReplaceAllString(inBody.ReplaceAllString(text, ": "), "must be a quantity of at least 0, such as 2 or 4Gi")
		r.warn("%s: %s: %s", where, head, bodyPhrases.Replace(ofNames.ReplaceAllString(text, "must be a name such as spot")))
	}
	return nil
}

// validateCapacity adds warnings about unknown fields and the error of a ClusterCapacity, and reports whether it has no error.
func (r *hubReader) validateCapacity(where string, asJSON []byte, head *header, c *fleet.ClusterCapacity) bool {
	var whole capacityv1alpha1.ClusterCapacity
	unknown, _ := kubejson.UnmarshalStrict(asJSON, &whole) // see Err
	for _, problem := range resources.ExplainUnknown(unknown, &whole) {
		r.warn("%s: %s: %v", where, head, problem)
	}
	if c.Err != nil {
		r.warn("%s: %s: %v", where, head, c.Err)
	}
	counted := int32(0)
	for i, group := range whole.Status.Groups {
		counted += group.Nodes
		for _, problem := range memoryProblem(fmt.Sprintf("status.groups[%d].free", i), group.Free) {
			r.warn("%s: %s: %s", where, head, problem)
		}
	}
	if all := whole.Status.Nodes; all > 0 && counted > all {
		r.warn("%s: %s: status.groups: found %d nodes: must be at most status.nodes, %d", where, head, counted, all)
	}
	return c.Err == nil
}
