package manifest

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	kubejson "sigs.k8s.io/json"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	placementv1beta1 "github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// newValidator returns the validator of a kind of a hub in a version, nil for kinds and versions without a CRD.
func newValidator(kind, version string) (*crd.Validator, error) {
	switch kind {
	case "Placement":
		return crd.NewValidator(crd.Placements, version)
	case "ClusterCapacity":
		return crd.NewValidator(crd.ClusterCapacities, version)
	}
	manifest, _ := crd.OCM.ReadFile("ocm/cluster.open-cluster-management.io_" + strings.ToLower(kind) + "s.yaml")
	return crd.NewValidator(manifest, version)
}

// validatorOf returns the validator of the kind of an object, nil if there is none.
func (r *hubReader) validatorOf(head *header) (v *crd.Validator, err error) {
	v, isLoaded := r.validators[head.TypeMeta]
	if !isLoaded {
		v, err = newValidator(head.Kind, head.groupVersionKind().Version)
		r.validators[head.TypeMeta] = v
	}
	return v, err
}

// maxHubBytes is the size of the objects of a hub that are validated, in half a second. A larger hub comes from an API server, which has
// validated its objects.
const maxHubBytes = 1 << 19

// validate adds warnings about the fields of an object that the API server of a hub would refuse.
func (r *hubReader) validate(where string, asJSON []byte, head *header, obj object) error {
	if r.validated += len(asJSON); r.validators == nil || r.validated > maxHubBytes {
		return nil
	}
	v, err := r.validatorOf(head)
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
	case *placementv1beta1.Placement: // a condition has the errors of its spec with defaults
		p := obj.DeepCopy()
		p.Spec.Default()
		isValid = len(crd.ValidatePlacement(p)) == 0
	case *fleet.ClusterCapacity:
		isValid = r.validateCapacity(where, asJSON, head, obj)
	}
	errs := apivalidation.ValidateObjectMetaAccessor(obj, obj.GetNamespace() != "", isName, field.NewPath("metadata"))
	if v != nil && isValid {
		var content map[string]any
		_ = json.Unmarshal(asJSON, &content) // decoded before
		errs = append(errs, v.Validate(content)...)
	}
	if b, ok := obj.(*clusterv1beta2.ManagedClusterSetBinding); ok && b.Spec.ClusterSet != b.Name {
		errs = append(
			errs,
			field.Invalid(field.NewPath("spec", "clusterSet"), b.Spec.ClusterSet, "must be the name of the binding, "+b.Name),
		)
	}
	for _, text := range problemTexts("", errs) {
		r.warn("%s: %s: %s", where, head, text)
	}
	return nil
}

// validateCapacity adds warnings about unknown fields and the error of a ClusterCapacity, and reports whether it has no error.
func (r *hubReader) validateCapacity(where string, asJSON []byte, head *header, c *fleet.ClusterCapacity) bool {
	var whole capacityv1alpha1.ClusterCapacity
	unknown, _ := kubejson.UnmarshalStrict(asJSON, &whole) // see Err
	for _, problem := range resources.SuggestFields(unknown, &whole) {
		r.warn("%s: %s: %v", where, head, problem)
	}
	if c.Err != nil {
		r.warn("%s: %s: %v", where, head, c.Err)
	}
	counted := int32(0)
	for _, group := range whole.Status.Groups {
		counted += group.Nodes
	}
	if all := whole.Status.Nodes; all > 0 && counted > all {
		r.warn("%s: %s: status.groups: found %d nodes: must be at most status.nodes, %d", where, head, counted, all)
	}
	return c.Err == nil
}
