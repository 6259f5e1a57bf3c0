package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
)

// legacyVersions are the versions of the scheduler configuration that Kubernetes no longer reads.
// Files of these versions are read as v1; Warnings has a warning about it.
var legacyVersions = []schema.GroupVersion{
	{Group: configv1.GroupName, Version: "v1beta2"},
	{Group: configv1.GroupName, Version: "v1beta3"},
}

// LegacyKubeSchedulerConfiguration is a KubeSchedulerConfiguration of version v1beta2 or v1beta3: that
// of v1, plus two addresses of v1beta2 that have no effect.
//
// +kubebuilder:object:root=true
type LegacyKubeSchedulerConfiguration struct {
	configv1.KubeSchedulerConfiguration `json:",inline"`
	// HealthzBindAddress was the address of the insecure health endpoint.
	HealthzBindAddress *string `json:"healthzBindAddress,omitempty"`
	// MetricsBindAddress was the address of the insecure metrics endpoint.
	MetricsBindAddress *string `json:"metricsBindAddress,omitempty"`
}

// addLegacyToScheme registers the legacy versions of the configuration and of the arguments of in-tree
// plugins.
func addLegacyToScheme(s *runtime.Scheme) error {
	const kind = "KubeSchedulerConfiguration"
	for _, version := range legacyVersions {
		s.AddKnownTypeWithName(version.WithKind(kind), &LegacyKubeSchedulerConfiguration{})
		for name := range s.KnownTypes(configv1.SchemeGroupVersion) {
			if name == kind || s.Recognizes(version.WithKind(name)) {
				continue
			}
			if obj, err := s.New(configv1.SchemeGroupVersion.WithKind(name)); err == nil {
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
			return internalv1.Convert_v1_KubeSchedulerConfiguration_To_config_KubeSchedulerConfiguration(
				&legacy.KubeSchedulerConfiguration, out.(*internalconfig.KubeSchedulerConfiguration), scope)
		})
}

// Warnings returns the warnings about a configuration: of a legacy version, and of plugins with negative weights.
func Warnings(cfg *internalconfig.KubeSchedulerConfiguration) (warnings []string) {
	for _, version := range legacyVersions {
		if version.String() == cfg.APIVersion {
			warnings = append(
				warnings,
				fmt.Sprintf("scheduler configuration: apiVersion %s is not served by Kubernetes and is read as %s: "+
					"change apiVersion, and remove healthzBindAddress and metricsBindAddress, which have no effect",
					cfg.APIVersion, configv1.SchemeGroupVersion),
			)
		}
	}
	for _, profile := range cfg.Profiles {
		if profile.Plugins == nil {
			continue
		}
		for _, plugin := range slices.Concat(profile.Plugins.MultiPoint.Enabled, profile.Plugins.Score.Enabled) {
			if plugin.Weight < 0 {
				warnings = append(
					warnings,
					fmt.Sprintf("profile %s: the weight of %s is %d: must be at least 0, or the plugin prefers the worst node",
						profile.SchedulerName, plugin.Name, plugin.Weight),
				)
			}
		}
	}
	return warnings
}
