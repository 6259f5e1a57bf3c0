package plane

import (
	"maps"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

const (
	slackCRD    = "../../../config/crd/plimsoll.dev_resourceslacks.yaml"
	capacityCRD = "../../../config/crd/plimsoll.dev_clustercapacities.yaml"
)

// TestReset expects that a test finds nothing of the test before: objects with finalizers, namespaces, pods of controllers, webhooks and
// APIServices without a server, and CRDs that it does not need. The service of the API server stays, also if the server created it after
// the objects of the start were listed: it would create it again ten seconds later, in the middle of a test.
func TestReset(t *testing.T) {
	start := func(t *testing.T, crds ...string) client.Client {
		_, config := Start(t, controlplane.Options{}, crds...)
		c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
		must.Succeed(t, err)
		return c
	}
	slack := func(name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minRate": "10%"}}}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "plimsoll.dev", Version: "v1alpha1", Kind: "ResourceSlack"})
		object.SetName(name)
		return object
	}
	t.Run("first", func(t *testing.T) {
		c := start(t, slackCRD, capacityCRD)
		two, labels := int32(2), map[string]string{"app": "a"}
		withFinalizer := slack("kept")
		withFinalizer.SetFinalizers([]string{"example.com/never"})
		service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group":                 "example.com",
			"version":               "v1",
			"groupPriorityMinimum":  int64(1),
			"versionPriority":       int64(1),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "default", "name": "none"},
		}}}
		service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		service.SetName("v1.example.com")
		for _, object := range []client.Object{
			withFinalizer, service,
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
			&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
			&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "c", Finalizers: []string{"example.com/never"}}},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role"}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}, Spec: appsv1.DeploymentSpec{
				Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{
					NodeName: "node", Containers: []v1.Container{{Name: "c", Image: "i"}},
				}},
			}},
			// It refuses every later request to create or delete a pod.
			&admissionv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: "webhook"},
				Webhooks: []admissionv1.ValidatingWebhook{{
					Name: "w.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
					Rules: []admissionv1.RuleWithOperations{{
						Operations: []admissionv1.OperationType{admissionv1.OperationAll},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
					}},
					SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
				}},
			},
		} {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatalf("%T: %v", object, err)
			}
		}
		maps.DeleteFunc(planes.all[0].base, func(k key, _ bool) bool { return k.resource.Resource == "services" })
	})
	t.Run("second", func(t *testing.T) {
		c := start(t, slackCRD)
		if len(planes.all) != 1 {
			t.Errorf("%d control planes, want 1", len(planes.all))
		}
		must.Succeed(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &v1.Service{}))
		left, err := planes.all[0].objects(t.Context())
		must.Succeed(t, err)
		for _, object := range left {
			if !planes.all[0].base[object.key] && object.name != "resourceslacks.plimsoll.dev" {
				t.Errorf("left: %v", object)
			}
		}
		for _, object := range []client.Object{
			slack("kept"), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
			&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "c"}},
		} {
			if err := c.Create(t.Context(), object); err != nil {
				t.Errorf("%T: %v", object, err)
			}
		}
	})
}

// TestCompact expects that etcd has no revision from before a compaction.
func TestCompact(t *testing.T) {
	cp, _ := Start(t, controlplane.Options{})
	must.Succeed(t, Compact(t.Context(), cp))
	client, err := etcdClient(t.Context(), cp)
	must.Succeed(t, err)
	defer client.Close()
	if _, err := client.Get(t.Context(), "/registry", clientv3.WithRev(1)); err == nil || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("reading revision 1: %v, want an error that it has been compacted", err)
	}
}
