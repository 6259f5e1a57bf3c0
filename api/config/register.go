package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
)

// args are the arguments of all plugins. One Go type serves every version of
// the configuration, the internal one included, so that nothing has to be
// converted.
func args() []runtime.Object {
	return []runtime.Object{
		&NodeResourcesAllocatableArgs{},
		&NodeResourcesLimitsArgs{},
		&LowRiskOverCommitmentArgs{},
	}
}

// AddToScheme registers the arguments of all plugins, with their defaults, in
// every version of the scheduler's configuration.
func AddToScheme(s *runtime.Scheme) error {
	versions := append([]schema.GroupVersion{configv1.SchemeGroupVersion, internalconfig.SchemeGroupVersion}, legacyVersions...)
	for _, version := range versions {
		s.AddKnownTypes(version, args()...)
	}
	for _, obj := range args() {
		s.AddTypeDefaultingFunc(obj, func(obj any) { obj.(interface{ Default() }).Default() })
	}
	return nil
}

// kube-scheduler reads its configuration through these schemes, and nowhere
// lets a plugin say where its arguments are to be found: like the in-tree
// plugins, ours register when they are imported.
func init() {
	for _, s := range []*runtime.Scheme{scheme.Scheme, internalv1.GetPluginArgConversionScheme()} {
		utilruntime.Must(AddToScheme(s))
	}
	utilruntime.Must(addLegacyToScheme(scheme.Scheme))
}
