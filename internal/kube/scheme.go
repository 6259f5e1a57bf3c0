package kube

import (
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

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
