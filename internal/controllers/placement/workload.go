package placement

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// reading is a successful read of the object that the workload of a placement refers to.
type reading struct {
	// version is the version of the placement that names the object.
	version string
	at      time.Time
}

// readWorkload updates the workload of a placement in the state. If it is an object that another client can change, it returns the time
// after which to read it again, at most maxRequeue: in between, a decision does not read it. It returns an error if the object could not
// be read for a reason that may pass.
func (c *Controller) readWorkload(ctx context.Context, p *v1beta1.Placement, now time.Time) (time.Duration, error) {
	key, object := client.ObjectKeyFromObject(p), fleet.ReferenceOf(p)
	if object == nil {
		c.readings.Delete(key)
		c.state.SetWorkload(p, nil, nil)
		return 0, nil
	}
	version := fmt.Sprint(p.UID, " ", p.Generation, " ", p.Annotations[v1beta1.AnnotationWorkload])
	if last, known := c.readings.Load(key); known && last.(reading).version == version {
		if age := now.Sub(last.(reading).at); age >= 0 && age < maxRequeue {
			return maxRequeue - age, nil
		}
	}
	err := c.apiReader.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), resources.IsNotServed(err):
		c.readings.Delete(key)
		c.state.SetWorkload(p, nil, err) // which reports the error
	case err != nil:
		return maxRequeue, fmt.Errorf("reading the workload: %w", err)
	default:
		c.readings.Store(key, reading{version, now})
		c.state.SetWorkload(p, object, nil)
	}
	return maxRequeue, nil
}
