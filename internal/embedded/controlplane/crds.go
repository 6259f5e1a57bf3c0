package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// InstallCRDs creates CRDs from their manifests and waits until they are served.
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
		if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			there, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
			return err == nil &&
				slices.ContainsFunc(there.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
					return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
				}), err
		})
		if err != nil {
			return fmt.Errorf("CRD %s is not served: %w", crd.Name, err)
		}
	}
	return nil
}
