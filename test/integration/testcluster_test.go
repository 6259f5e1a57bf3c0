package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// systemNamespace is the namespace of the programs, podNamespace the namespace of placeholder pods.
const (
	systemNamespace = "plimsoll-system"
	podNamespace    = "plimsoll-placeholders"
)

// testCluster is a control plane with CRDs and a client with administrator access.
type testCluster struct {
	*controlplane.ControlPlane
	client client.WithWatch
}

// startCluster starts a cluster with the CRDs of the project and further ones.
func startCluster(t *testing.T, crds ...string) *testCluster {
	t.Helper()
	return startClusterWithCRDs(t, append(projectCRDs(t), crds...)...)
}

// startClusterWithCRDs starts a cluster with these CRDs only.
func startClusterWithCRDs(t *testing.T, crds ...string) *testCluster {
	t.Helper()
	return startClusterWithOptions(t, controlplane.Options{}, crds...)
}

// startClusterWithOptions starts a cluster with these options and CRDs only.
func startClusterWithOptions(t *testing.T, options controlplane.Options, crds ...string) *testCluster {
	t.Helper()
	cp, config, _ := startControlPlane(t, options)
	installCRDs(t, config, crds...)
	c := &testCluster{cp, adminClient(t, config)}
	for _, name := range []string{systemNamespace, podNamespace} {
		c.create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return c
}

// adminClient returns a client without a rate limit for every type that a test uses.
func adminClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create creates an object.
func (c *testCluster) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// startController starts the controller.
func (c *testCluster) startController(t *testing.T, args ...string) *program.Process {
	t.Helper()
	return program.Start(t, binaries.controller, c.controllerArgs(args)...)
}

// controllerArgs returns the arguments of a controller on the cluster. Later arguments override
// earlier ones.
func (c *testCluster) controllerArgs(args []string) []string {
	return append(
		[]string{
			"--kubeconfig=" + c.Kubeconfig,
			"--placeholder-namespace=" + podNamespace,
			"--metrics-bind-address=0",
			"--health-probe-bind-address=0",
		},
		args...)
}

// startDefaultScheduler starts the scheduler with its default profile.
func (c *testCluster) startDefaultScheduler(t *testing.T, args ...string) *program.Process {
	t.Helper()
	const configuration = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: " +
		"{leaderElect: false}\nclientConnection: {kubeconfig: %q}\n"
	return program.Start(t, binaries.scheduler, append([]string{
		"--config=" + writeFile(t, fmt.Sprintf(configuration, c.Kubeconfig)),
		"--secure-port=0",
	}, args...)...)
}

// changeRecorder records every change of the objects of a kind.
type changeRecorder struct {
	mu     sync.Mutex
	events []watch.Event
	times  []time.Time
}

// recordChanges records the changes of all objects of a kind from now on.
func (c *testCluster) recordChanges(t *testing.T, kind schema.GroupVersionKind) *changeRecorder {
	t.Helper()
	r := &changeRecorder{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	changes, err := c.client.Watch(t.Context(), list, watchFrom(list.GetResourceVersion()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(changes.Stop)
	go func() {
		for event := range changes.ResultChan() {
			r.mu.Lock()
			r.events, r.times = append(r.events, event), append(r.times, time.Now())
			r.mu.Unlock()
		}
		if t.Context().Err() == nil {
			t.Errorf("the watch of %s ended", kind.Kind)
		}
	}()
	return r
}

// watchFrom returns the options of a watch for changes after a resource version.
func watchFrom(resourceVersion string) *client.ListOptions {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: resourceVersion}}
}

// changes returns the recorded changes, such as "DELETED general-rate".
func (r *changeRecorder) changes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, event := range r.events {
		if object, ok := event.Object.(client.Object); ok {
			out = append(out, fmt.Sprintf("%s %s", event.Type, object.GetName()))
		} else {
			out = append(out, fmt.Sprintf("%s %v", event.Type, event.Object))
		}
	}
	return out
}
