package config

import (
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
)

// legacyVersions are versions of the scheduler's configuration that Kubernetes
// no longer reads and that files with these plugins are still written in.
// They are read as v1, with a warning.
var legacyVersions = []schema.GroupVersion{
	{Group: configv1.GroupName, Version: "v1beta2"},
	{Group: configv1.GroupName, Version: "v1beta3"},
}

// LegacyKubeSchedulerConfiguration is a KubeSchedulerConfiguration of version
// v1beta2 or v1beta3: that of v1, and two addresses that went away with
// v1beta2 and mean nothing any more.
//
// +kubebuilder:object:root=true
type LegacyKubeSchedulerConfiguration struct {
	configv1.KubeSchedulerConfiguration `json:",inline"`
	// HealthzBindAddress was the address of the insecure health endpoint.
	HealthzBindAddress *string `json:"healthzBindAddress,omitempty"`
	// MetricsBindAddress was the address of the insecure metrics endpoint.
	MetricsBindAddress *string `json:"metricsBindAddress,omitempty"`
}

// addLegacyToScheme registers the legacy versions of the configuration and of
// the arguments of the in-tree plugins.
func addLegacyToScheme(s *runtime.Scheme) error {
	const kind = "KubeSchedulerConfiguration"
	for _, version := range legacyVersions {
		s.AddKnownTypeWithName(version.WithKind(kind), &LegacyKubeSchedulerConfiguration{})
		for name := range s.KnownTypes(configv1.SchemeGroupVersion) {
			if obj, err := s.New(configv1.SchemeGroupVersion.WithKind(name)); err == nil && name != kind && !s.Recognizes(version.WithKind(name)) {
				s.AddKnownTypeWithName(version.WithKind(name), obj)
			}
		}
	}
	s.AddTypeDefaultingFunc(&LegacyKubeSchedulerConfiguration{}, func(obj any) {
		internalv1.SetObjectDefaults_KubeSchedulerConfiguration(&obj.(*LegacyKubeSchedulerConfiguration).KubeSchedulerConfiguration)
	})
	return s.AddConversionFunc((*LegacyKubeSchedulerConfiguration)(nil), (*internalconfig.KubeSchedulerConfiguration)(nil),
		func(in, out any, scope conversion.Scope) error {
			legacy := in.(*LegacyKubeSchedulerConfiguration)
			klog.Background().Info("Warning: the scheduler configuration is of a version that is no longer served and is read as v1; please change its apiVersion",
				"found", legacy.APIVersion, "readAs", configv1.SchemeGroupVersion.String())
			if legacy.HealthzBindAddress != nil || legacy.MetricsBindAddress != nil {
				klog.Background().Info("Warning: healthzBindAddress and metricsBindAddress have no effect; the scheduler serves health and metrics on its secure port (--secure-port)")
			}
			return internalv1.Convert_v1_KubeSchedulerConfiguration_To_config_KubeSchedulerConfiguration(
				&legacy.KubeSchedulerConfiguration, out.(*internalconfig.KubeSchedulerConfiguration), scope)
		})
}
