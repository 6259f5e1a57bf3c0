package setup

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsGone reports whether the API server confirms that an object does not exist or
// is being deleted. It must be called before dependents are deleted: a missing
// entry in a cache is not sufficient, nor is a 404 from an API server that does not
// serve the kind. The reader must not be cached; the object is overwritten.
func IsGone(ctx context.Context, live client.Reader, key client.ObjectKey, object client.Object) (bool, error) {
	err := live.Get(ctx, key, object)
	switch {
	case err == nil:
		return object.GetDeletionTimestamp() != nil, nil
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return true, nil
	}
	return false, err
}
