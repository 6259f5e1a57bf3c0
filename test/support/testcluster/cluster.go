package testcluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// SystemNamespace is the namespace of the programs, podNamespace the namespace of placeholder pods.
const (
	SystemNamespace = "plimsoll-system"
	PodNamespace    = "plimsoll-placeholders"
)

// Cluster is a control plane with CRDs and a client with administrator access.
type Cluster struct {
	*controlplane.ControlPlane
	Client client.WithWatch
}

// Start starts a cluster with the CRDs of the project and further ones.
func Start(t *testing.T, crds ...string) *Cluster {
	t.Helper()
	return StartWithCRDs(t, append(ProjectCRDs(t), crds...)...)
}

// StartWithCRDs starts a cluster with these CRDs only.
func StartWithCRDs(t *testing.T, crds ...string) *Cluster {
	t.Helper()
	return startWithOptions(t, controlplane.Options{}, crds...)
}

// startWithOptions starts a cluster with these options and CRDs only.
func startWithOptions(t *testing.T, options controlplane.Options, crds ...string) *Cluster {
	t.Helper()
	cp, config := plane.Start(t, options, crds...)
	c := &Cluster{cp, AdminClient(t, config)}
	for _, name := range []string{SystemNamespace, PodNamespace} {
		c.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return c
}

// AdminClient returns a client without a rate limit for every type that a test uses.
func AdminClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: kube.Scheme()})
	must.Succeed(t, err)
	return c
}

// Create creates an object.
func (c *Cluster) Create(t *testing.T, object client.Object) {
	t.Helper()
	must.Succeed(t, c.Client.Create(t.Context(), object))
}

// StartController starts the controller.
func (c *Cluster) StartController(t *testing.T, args ...string) *program.Process {
	t.Helper()
	return program.Start(t, program.Path(t, "plimsoll-controller"), c.controllerArgs(args)...)
}

// controllerArgs returns the arguments of a controller on the cluster. Later arguments override
// earlier ones.
func (c *Cluster) controllerArgs(args []string) []string {
	return append(
		[]string{
			"--kubeconfig=" + c.Kubeconfig,
			"--placeholder-namespace=" + PodNamespace,
			"--metrics-bind-address=0",
			"--health-probe-bind-address=0",
		},
		args...)
}

// StartDefaultScheduler starts the scheduler with its default profile.
func (c *Cluster) StartDefaultScheduler(t *testing.T, args ...string) *program.Process {
	t.Helper()
	const configuration = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: " +
		"{leaderElect: false}\nclientConnection: {kubeconfig: %q}\n"
	return program.Start(t, program.Path(t, "plimsoll-scheduler"), append([]string{
		"--config=" + WriteFile(t, fmt.Sprintf(configuration, c.Kubeconfig)),
		"--secure-port=0",
	}, args...)...)
}

// ChangeRecorder records every change of the objects of a kind.
type ChangeRecorder struct {
	Mu     sync.Mutex
	Events []watch.Event
	Times  []time.Time
}

// RecordChanges records the changes of all objects of a kind from now on.
func (c *Cluster) RecordChanges(t *testing.T, kind schema.GroupVersionKind) *ChangeRecorder {
	t.Helper()
	r := &ChangeRecorder{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	must.Succeed(t, c.Client.List(t.Context(), list))
	changes, err := c.Client.Watch(t.Context(), list, WatchFrom(list.GetResourceVersion()))
	must.Succeed(t, err)
	t.Cleanup(changes.Stop)
	go func() {
		for event := range changes.ResultChan() {
			r.Mu.Lock()
			r.Events, r.Times = append(r.Events, event), append(r.Times, time.Now())
			r.Mu.Unlock()
		}
		if t.Context().Err() == nil {
			t.Errorf("the watch of %s ended", kind.Kind)
		}
	}()
	return r
}

// WatchFrom returns the options of a watch for changes after a resource version.
func WatchFrom(resourceVersion string) *client.ListOptions {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: resourceVersion}}
}

// Changes returns the recorded changes, such as "DELETED general-rate".
func (r *ChangeRecorder) Changes() []string {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	var out []string
	for _, event := range r.Events {
		if object, ok := event.Object.(client.Object); ok {
			out = append(out, fmt.Sprintf("%s %s", event.Type, object.GetName()))
		} else {
			out = append(out, fmt.Sprintf("%s %v", event.Type, event.Object))
		}
	}
	return out
}

// Scale scales a Deployment of pods of 1 CPU and 1Gi, waits until all run, and returns their nodes.
func (c *Cluster) Scale(t *testing.T, log fmt.Stringer, name string, replicas int32) []string {
	t.Helper()
	labels := map[string]string{"app": name}
	requests := schedtest.Amounts("cpu", "1", "memory", "1Gi")
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{
				Containers: []v1.Container{{Name: "web", Image: "web", Resources: v1.ResourceRequirements{Requests: requests}}},
			}},
		},
	}
	patch, err := yaml.Marshal(map[string]any{"spec": map[string]any{"replicas": replicas}})
	if err == nil {
		patch, err = yaml.YAMLToJSON(patch)
	}
	must.Succeed(t, err)
	if err := c.Client.Create(t.Context(), deployment); err != nil {
		must.Succeed(t, c.Client.Patch(t.Context(), deployment, client.RawPatch("application/merge-patch+json", patch)))
	}
	var nodes []string
	eventually.True(t, fmt.Sprintf("%d pods are not running", replicas), log, func(ctx context.Context) (bool, error) {
		var pods v1.PodList
		if err := c.Client.List(ctx, &pods, client.MatchingLabels(labels)); err != nil {
			return false, err
		}
		nodes = nil
		for _, pod := range pods.Items {
			if pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
		return len(nodes) == int(replicas) && len(pods.Items) == int(replicas), nil
	})
	return nodes
}
