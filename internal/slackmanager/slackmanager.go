// Package slackmanager puts the slack controller into a manager, for the
// program and for the demo.
package slackmanager

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
)

// Scheme returns the types that the controller reads and writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// New returns a manager that runs the controller when it is started. The
// controller writes into the namespace, and events in the given name. The
// options' scheme and cache are set.
func New(config *rest.Config, name, namespace string, options ctrl.Options) (ctrl.Manager, error) {
	options.Scheme = Scheme()
	options.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	m, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	return m, slack.New(m.GetClient(), m.GetEventRecorder(name), namespace).Register(m)
}
