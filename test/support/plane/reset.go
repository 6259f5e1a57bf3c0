package plane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

// resetTimeout bounds the time until all objects of a test are gone.
const resetTimeout = 2 * time.Minute

// key identifies an object.
type key struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// object is an object of a control plane.
type object struct {
	key
	deleting   bool
	finalizers bool
}

// crdResource is the resource of CRDs.
var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// first are the groups and resources that are deleted before all others: they may intercept requests, or create objects.
var first = []string{
	"admissionregistration.k8s.io", "apiregistration.k8s.io", "deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch",
}

// reset deletes all objects except those of the start and the CRDs of the files, and creates these CRDs.
func (m *member) reset(ctx context.Context, files []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, resetTimeout, errors.New("objects of the previous test still exist"))
	defer cancel()
	wanted, manifests := map[string]string{}, [][]byte{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var crd metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		manifests = append(manifests, raw)
		wanted[crd.Name] = fmt.Sprintf("%x", sha256.Sum256(raw))
	}
	var left []object
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		all, err := m.objects(ctx)
		if err != nil {
			return false, err
		}
		left = slices.DeleteFunc(all, func(o object) bool {
			return m.base[o.key] || o.resource == crdResource && wanted[o.name] != "" && wanted[o.name] == m.crds[o.name]
		})
		return len(left) == 0, m.delete(ctx, left)
	})
	if err != nil {
		return fmt.Errorf("deleting %d objects, such as %v: %w", len(left), left[:min(3, len(left))], err)
	}
	m.crds = wanted
	return controlplane.InstallCRDs(ctx, m.config, manifests...)
}

// unlimited returns the configuration without a limit of the rate and without warnings about old versions.
func (m *member) unlimited() *rest.Config {
	config := rest.CopyConfig(m.config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return config
}

// objects returns all objects that tests can create.
func (m *member) objects(ctx context.Context) ([]object, error) {
	discovered, err := discovery.NewDiscoveryClientForConfig(m.unlimited())
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(m.unlimited())
	if err != nil {
		return nil, err
	}
	// The server of an APIService may have ended with the test that registered it.
	lists, err := discovered.ServerPreferredResources()
	if _, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); err != nil && !partial {
		return nil, err
	}
	var all []object
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "delete") || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			if all, err = appendObjects(ctx, all, client, version.WithResource(resource.Name)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// appendObjects appends the objects of a resource. There are none if it is no longer served.
func appendObjects(ctx context.Context, all []object, client metadata.Interface, of schema.GroupVersionResource) ([]object, error) {
	items, err := client.Resource(of).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsMethodNotSupported(err) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", of, err)
	}
	for i := range items.Items {
		if item := &items.Items[i]; !isOfServer(of, item) {
			all = append(all, object{key{of, item.Namespace, item.Name}, item.DeletionTimestamp != nil, len(item.Finalizers) > 0})
		}
	}
	return all, nil
}

// ownService is the name of the service in the namespace default with which pods find the API server.
const ownService = "kubernetes"

// isOfServer reports whether the API server itself creates an object, at any time.
func isOfServer(resource schema.GroupVersionResource, item *metav1.PartialObjectMetadata) bool {
	switch resource.Resource {
	case "ipaddresses", "servicecidrs", "flowschemas", "prioritylevelconfigurations":
		return true
	case "configmaps", "leases":
		return item.Namespace == metav1.NamespaceSystem
	case "services", "endpoints", "endpointslices":
		return item.Namespace == metav1.NamespaceDefault && item.Name == ownService
	case "namespaces":
		return item.Name == metav1.NamespaceDefault || strings.HasPrefix(item.Name, "kube-")
	case "apiservices":
		return item.Labels["kube-aggregator.kubernetes.io/automanaged"] != ""
	}
	return item.Labels["kubernetes.io/bootstrapping"] != ""
}

// delete deletes objects. Those that are deleted first must be gone before the others are deleted.
func (m *member) delete(ctx context.Context, objects []object) error {
	client, err := metadata.NewForConfig(m.unlimited())
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(m.unlimited())
	if err != nil {
		return err
	}
	isFirst := func(o object) bool {
		return slices.Contains(first, o.resource.Group) || slices.Contains(first, o.resource.GroupResource().String())
	}
	if slices.ContainsFunc(objects, isFirst) {
		objects = slices.DeleteFunc(objects, func(o object) bool { return !isFirst(o) })
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, o := range objects {
		group.Go(func() error {
			resource := client.Resource(o.resource).Namespace(o.namespace)
			var err error
			switch {
			case !o.deleting:
				err = resource.Delete(ctx, o.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			case o.resource.Resource == "namespaces": // the control plane has no controller that does this
				namespace, getErr := kube.CoreV1().Namespaces().Get(ctx, o.name, metav1.GetOptions{})
				if err = getErr; err == nil {
					namespace.Spec.Finalizers = nil
					_, err = kube.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
				}
			case o.finalizers && o.resource != crdResource:
				_, err = resource.Patch(
					ctx, o.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{},
				)
			}
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}
