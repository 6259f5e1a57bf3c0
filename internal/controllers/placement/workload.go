package placement

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// referenced are the kinds that a placement can refer to.
var referenced = map[string]schema.GroupVersion{
	"PodTemplate":  {Version: "v1"},
	"Deployment":   {Group: "apps", Version: "v1"},
	"ManifestWork": {Group: "work.open-cluster-management.io", Version: "v1"},
}

// readWorkload updates the workload of a placement in the state, and reports whether it is an object that another client can change. It
// returns an error if the object could not be read for a reason that may pass.
func (c *Controller) readWorkload(ctx context.Context, p *v1beta1.Placement) (hasReference bool, err error) {
	spec, err := fleet.WorkloadOf(p)
	if err != nil || spec == nil || spec.Ref == nil {
		c.state.SetWorkload(p, nil, nil)
		return false, nil //nolint:nilerr // SetWorkload reports that the workload is invalid
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(referenced[spec.Ref.Kind].WithKind(spec.Ref.Kind))
	err = c.apiReader.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: spec.Ref.Name}, object)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		c.state.SetWorkload(p, nil, fmt.Errorf("ref: %w", err))
		return true, nil
	case err != nil:
		return true, fmt.Errorf("reading the workload: %w", err)
	}
	// Metadata and status change often, and do not matter.
	unstructured.RemoveNestedField(object.Object, "status")
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	raw, err := object.MarshalJSON()
	if err != nil {
		return true, err
	}
	c.state.SetWorkload(p, raw, nil)
	return true, nil
}
