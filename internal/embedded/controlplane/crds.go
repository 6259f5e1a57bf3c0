package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// InstallCRDs creates CRDs from their manifests, unless they exist, and waits until they are served.
func InstallCRDs(ctx context.Context, config *rest.Config, manifests ...[]byte) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	for i, manifest := range manifests {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(manifest, crd); err != nil {
			return fmt.Errorf("CRD %d: %w", i, err)
		}
		// The CRD exists if a busy API server has created it and client-go repeats the request because the answer was late.
		if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return isDiscoverable(client.Discovery(), crd), nil
		})
		if err != nil {
			return fmt.Errorf("CRD %s is not served: %w", crd.Name, err)
		}
	}
	return nil
}

// isDiscoverable reports whether the API server lists the resource of a CRD in all its served
// versions. It is established before: clients that look up the resource fail until it is listed.
func isDiscoverable(client discovery.DiscoveryInterface, crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list, err := client.ServerResourcesForGroupVersion(crd.Spec.Group + "/" + version.Name)
		if err != nil {
			return false
		}
		isListed := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural })
		if !isListed {
			return false
		}
	}
	return true
}
