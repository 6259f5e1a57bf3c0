package placement

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// readWorkload updates the workload of a placement in the state, and reports whether it is an object that another client can change. It
// returns an error if the object could not be read for a reason that may pass.
func (c *Controller) readWorkload(ctx context.Context, p *v1beta1.Placement) (hasReference bool, err error) {
	object := fleet.ReferenceOf(p)
	if object == nil {
		c.state.SetWorkload(p, nil, nil)
		return false, nil
	}
	err = c.apiReader.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		c.state.SetWorkload(p, nil, err) // which reports the error
	case err != nil:
		return true, fmt.Errorf("reading the workload: %w", err)
	default:
		c.state.SetWorkload(p, object, nil)
	}
	return true, nil
}
