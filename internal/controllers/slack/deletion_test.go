package slack

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// testNamespace is the namespace of the controller, podNamespace the namespace of placeholder pods.
const (
	testNamespace = "plimsoll-system"
	podNamespace  = "placeholders"
)

// controllerOf returns a controller with a fake client that has objects, and interceptors.
func controllerOf(t *testing.T, faults interceptor.Funcs, objects ...client.Object) *Controller {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.ResourceSlack{}).WithInterceptorFuncs(faults)
	for _, kind := range workloadKinds() {
		builder.WithIndex(kind.object, annotatedIndex, indexAnnotated)
	}
	c := New(builder.Build(), events.NewFakeRecorder(100), prometheus.NewRegistry(), testNamespace, podNamespace)
	// No time passes: on a busy machine the controller would leave some objects for its next attempt.
	now := time.Now()
	c.now = func() time.Time { return now }
	return c
}

// template returns a template with the label of a policy.
func template(policy string) *v1.PodTemplate {
	return &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{
		Name: policy + "-head", Namespace: testNamespace,
		Labels: map[string]string{slack.PlaceholderLabel: policy},
	}}
}

// TestDeletionIsConfirmed checks that the objects of a policy that is not in the cache are deleted only if
// the API server confirms that the policy does not exist.
func TestDeletionIsConfirmed(t *testing.T) {
	policies := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "resourceslacks"}
	for name, tc := range map[string]struct {
		response error // of the API server; nil if the policy exists
		deleted  bool
		fails    bool
	}{
		"deleted":            {apierrors.NewNotFound(policies, "web"), true, false},
		"exists":             {nil, false, false},
		"server unreachable": {errors.New("connection refused"), false, true},
		"server starting":    {apierrors.NewServiceUnavailable("starting"), false, true},
		"CRD not served": {
			apierrors.NewGenericServerResponse(http.StatusNotFound, "get", policies, "web", "404 page not found", 0, true),
			false, true,
		},
		"forbidden": {apierrors.NewForbidden(policies, "web", errors.New("no")), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			faults := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
				options ...client.GetOption,
			) error {
				switch object.(type) {
				case *v1alpha1.ResourceSlack: // from the cache
					return apierrors.NewNotFound(policies, key.Name)
				case *unstructured.Unstructured:
					return tc.response
				}
				return c.Get(ctx, key, object, options...)
			}}
			c := controllerOf(t, faults, template("web"), template("other"))
			_, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}})
			if (err != nil) != tc.fails {
				t.Errorf("error %v", err)
			}
			objects := managed(t, c)
			if slices.Contains(objects, "PodTemplate plimsoll-system/web-head") == tc.deleted ||
				!slices.Contains(objects, "PodTemplate plimsoll-system/other-head") {
				t.Errorf("remaining objects: %v", objects)
			}
		})
	}
}
