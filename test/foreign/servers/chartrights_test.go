//go:build foreign

package servers

import (
	"context"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// deniedToAll are the actions that are denied to all components: verb, resource with group, namespace or
// "*", and optionally a name.
var deniedToAll = []string{
	"get secrets " + testcluster.SystemNamespace,
	"list secrets *",
	"get secrets kube-system",
	"create secrets " + testcluster.SystemNamespace,
	"create pods default",
	"create pods " + testcluster.SystemNamespace,
	"create pods/exec default",
	"update pods default",
	"delete nodes *",
	"patch nodes *",
	"update nodes *",
	"get nodes/proxy *",
	"delete namespaces *",
	"create clusterroles.rbac.authorization.k8s.io *",
	"escalate clusterroles.rbac.authorization.k8s.io *",
	"bind clusterroles.rbac.authorization.k8s.io *",
	"create rolebindings.rbac.authorization.k8s.io " + testcluster.SystemNamespace,
	"impersonate users *",
	"create serviceaccounts/token " +
		testcluster.SystemNamespace,
	"create deployments.apps default",
	"delete deployments.apps default",
	"create daemonsets.apps kube-system",
	"update configmaps kube-system",
	"create configmaps " + testcluster.SystemNamespace,
	"delete leases.coordination.k8s.io " + testcluster.SystemNamespace,
	"create validatingwebhookconfigurations.admissionregistration.k8s.io *",
	"patch customresourcedefinitions.apiextensions.k8s.io *",
	"delete resourceslacks.plimsoll.dev *",
	"update placements.cluster.open-cluster-management.io team",
	"patch managedclusters/status.cluster.open-cluster-management.io *",
}

// grants are the actions that are allowed to each component, and actions that are denied to it although they
// are allowed to another component or elsewhere.
var grants = map[string]struct{ allowed, denied []string }{
	"scheduler": {
		[]string{"create pods/binding default", "list nodes *", "update leases.coordination.k8s.io " + testcluster.SystemNamespace +
			" plimsoll-scheduler", "get configmaps kube-system extension-apiserver-authentication"},
		[]string{
			"update leases.coordination.k8s.io " + testcluster.SystemNamespace + " plimsoll-controller", "list nodes.metrics.k8s.io *",
			"list resourceslacks.plimsoll.dev *", "create podtemplates default", "get configmaps kube-system coredns",
		},
	},
	"controller": {
		[]string{
			"create podtemplates default", "patch capacitybuffers.autoscaling.x-k8s.io default", "create deployments.apps " +
				testcluster.PodNamespace, "patch priorityclasses.scheduling.k8s.io * plimsoll-placeholder",
			"create placementdecisions.cluster.open-cluster-management.io team",
			"update placements/finalizers.cluster.open-cluster-management.io team", "create resourceslacks.plimsoll.dev *",
			"update leases.coordination.k8s.io " + testcluster.SystemNamespace + " plimsoll-controller",
		},
		[]string{
			"update leases.coordination.k8s.io " + testcluster.SystemNamespace + " plimsoll-scheduler",
			"create deployments.apps " + testcluster.SystemNamespace,
			"update leases.coordination.k8s.io kube-system plimsoll-controller",
			"patch priorityclasses.scheduling.k8s.io * system-node-critical",
			"create pods/binding default",
			"delete pods default",
			"patch resourceslacks.plimsoll.dev *",
			"patch statefulsets.apps default",
			"delete jobs.batch default",
		},
	},
	"load-watcher": {
		[]string{"list nodes *", "watch nodes *", "list nodes.metrics.k8s.io *"},
		[]string{"list pods *", "list pods.metrics.k8s.io *", "create events default", "create leases.coordination.k8s.io " +
			testcluster.SystemNamespace, "get configmaps " + testcluster.SystemNamespace, "list services *"},
	},
	"agent": {
		[]string{"watch pods *", "list nodes *", "list resourceslacks.plimsoll.dev *", "update leases.coordination.k8s.io " +
			testcluster.SystemNamespace + " plimsoll-controller-agent"},
		[]string{
			"update leases.coordination.k8s.io " + testcluster.SystemNamespace + " plimsoll-controller", "list nodes.metrics.k8s.io *",
			"create podtemplates default", "create addonplacementscores.cluster.open-cluster-management.io cluster1",
			"delete pods default", "get configmaps " + testcluster.SystemNamespace,
		},
	},
}

// rights checks that the API server allows the allowed actions of each component and denies all other actions.
func (r *release) rights(t *testing.T) {
	for component, grant := range grants {
		t.Run(component, func(t *testing.T) {
			config, _ := r.access(t, component)
			as, err := kubernetes.NewForConfig(config)
			must.Succeed(t, err)
			// The authorizer observes new bindings with a delay.
			for _, action := range grant.allowed {
				eventually.True(t, "denied: "+action, nil, func(ctx context.Context) (bool, error) { return may(ctx, t, as, action), nil })
			}
			for _, action := range slices.Concat(deniedToAll, grant.denied) {
				if may(t.Context(), t, as, action) {
					t.Errorf("allowed: %s", action)
				}
			}
			// Actual requests, and not only access reviews.
			if _, err := as.CoreV1().Secrets(testcluster.SystemNamespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(
				err,
			) {
				t.Errorf("secrets: %v", err)
			}
			if err := as.CoreV1().Nodes().Delete(t.Context(), "node-0", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("deleting a node: %v", err)
			}
		})
	}
}

// may reports whether a client is allowed an action.
func may(ctx context.Context, t *testing.T, as kubernetes.Interface, action string) bool {
	t.Helper()
	fields := strings.Fields(action)
	resource, group, _ := strings.Cut(fields[1], ".")
	attributes := &authorizationv1.ResourceAttributes{Verb: fields[0], Group: group, Resource: resource}
	if base, subresource, ok := strings.Cut(resource, "/"); ok {
		attributes.Resource, attributes.Subresource = base, subresource
	}
	if fields[2] != "*" {
		attributes.Namespace = fields[2]
	}
	if len(fields) > 3 {
		attributes.Name = fields[3]
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	review, err := as.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	must.Succeed(t, err)
	return review.Status.Allowed
}

// held returns the number of objects of a kind with the label of a policy.
func (r *release) held(ctx context.Context, kind, namespace, policy string) (int, error) {
	versions := map[string]schema.GroupVersion{
		"CapacityBuffer": slack.CapacityBufferVersion, "PodTemplate": {Version: "v1"},
		"Deployment": {Group: "apps", Version: "v1"},
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(versions[kind].WithKind(kind + "List"))
	err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{slack.PlaceholderLabel: policy})
	return len(list.Items), err
}

// inventory returns all objects except events, as "resource namespace/name". It leaves out objects whose
// owner is deleted: the garbage collector, which the control plane does not have, would delete them.
func (r *release) inventory(t *testing.T) map[string]bool {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(r.config)
	must.Succeed(t, err)
	dynamicClient, err := dynamic.NewForConfig(r.config)
	must.Succeed(t, err)
	// metrics-server may not serve its group yet, which has no objects of interest.
	lists, err := discoverer.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	objects, uids := map[string]unstructured.Unstructured{}, map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must.Succeed(t, err)
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Event" || version.Group == "metrics.k8s.io" {
				continue
			}
			found, err := dynamicClient.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", resource.Name, err)
			}
			for _, object := range found.Items {
				if object.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != "" {
					continue // created by the API server for each version of a CRD
				}
				name := object.GetName()
				if object.GetNamespace() != "" {
					name = object.GetNamespace() + "/" + name
				}
				objects[version.WithResource(resource.Name).GroupResource().String()+" "+name] = object
				uids[string(object.GetUID())] = true
			}
		}
	}
	there := map[string]bool{}
	for name, object := range objects {
		if !orphaned(object, uids, objects) {
			there[name] = true
		}
	}
	return there
}

// orphaned reports whether an owner of an object, directly or indirectly, is deleted.
func orphaned(object unstructured.Unstructured, uids map[string]bool, objects map[string]unstructured.Unstructured) bool {
	for _, owner := range object.GetOwnerReferences() {
		if !uids[string(owner.UID)] {
			return true
		}
		for _, other := range objects {
			if other.GetUID() == owner.UID && orphaned(other, uids, objects) {
				return true
			}
		}
	}
	return false
}

// added returns the objects that did not exist before, except the objects that the test itself has created:
// the objects in these namespaces, and the fleet.
func (r *release) added(t *testing.T, before map[string]bool) (added []string) {
	t.Helper()
	own := []string{
		" default/", " team/", " cluster1/", "namespaces ", "managedcluster", "plimsoll-agent:cluster1",
		"ipaddresses.networking.k8s.io 10.0.0.1",
	} // of the service kubernetes, which the API server may create later than the first list
	for object := range r.inventory(t) {
		if !before[object] && !slices.ContainsFunc(own, func(part string) bool {
			return strings.Contains(object, part) && !strings.HasPrefix(object, "customresource")
		}) {
			added = append(added, object)
		}
	}
	slices.Sort(added)
	return added
}
