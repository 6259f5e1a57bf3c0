package kube

import (
	"context"
	"errors"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// Scheme returns a new scheme with every type that Plimsoll reads or writes: the types
// of Kubernetes, CRDs, ResourceSlack, ClusterCapacity and Open Cluster Management.
func Scheme() *runtime.Scheme {
	return SchemeWith(func(s *runtime.Scheme) error {
		return errors.Join(clusterv1.Install(s), capacityv1alpha1.AddToScheme(s))
	})
}

// SchemeWith is Scheme with other types for managed clusters and their capacity. Programs that read the clusters of a hub use
// fleet.InstallHub.
func SchemeWith(hub func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
		v1beta1.AddToScheme, hub, clusterv1alpha1.Install, clusterv1beta2.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// The ConfigMap in which the chart stores the configuration of plimsoll-scheduler.
const (
	// SchedulerConfigurationSelector selects the ConfigMaps by their labels.
	SchedulerConfigurationSelector = "app.kubernetes.io/part-of=plimsoll,app.kubernetes.io/component=scheduler"
	// SchedulerConfigurationKey is the key of the KubeSchedulerConfiguration in the data.
	SchedulerConfigurationKey = "scheduler.yaml"
)

// RequestsOf returns each request that a rule permits in a namespace, or in the cluster if the namespace is empty: one for each combination
// of the values of the rule.
func RequestsOf(rule rbacv1.PolicyRule, namespace string) (all []*authorizationv1.ResourceAttributes) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, subresource, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, &authorizationv1.ResourceAttributes{
						Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name,
					})
				}
			}
		}
	}
	return all
}

// Apply creates an object unless it exists, and writes its status, if it has one, as an agent does for its managed cluster. It refuses
// unknown fields.
func Apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	if err := strict.Create(ctx, object.DeepCopy()); client.IgnoreAlreadyExists(err) != nil || object.Object["status"] == nil {
		return client.IgnoreAlreadyExists(err)
	}
	return strict.Status().Patch(ctx, object.DeepCopy(), client.Merge)
}
