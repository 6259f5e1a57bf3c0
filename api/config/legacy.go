package config

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
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

// Warnings returns the warnings about a configuration and its text: of a legacy version, plugins with negative weights or a weight of 0,
// and plugins that are disabled or have arguments, but are not enabled.
func Warnings(cfg *internalconfig.KubeSchedulerConfiguration, text []byte) (warnings []string) {
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
	defaults := defaultPlugins()
	for i, profile := range cfg.Profiles {
		enabled := map[string]bool{}
		for _, set := range pluginSets(profile) {
			for _, plugin := range set.Enabled {
				enabled[plugin.Name] = true
				if plugin.Weight < 0 {
					warnings = append(
						warnings,
						fmt.Sprintf("profile %s: the weight of %s is %d: must be at least 0, or the plugin prefers the worst node",
							profile.SchedulerName, plugin.Name, plugin.Weight),
					)
				}
			}
		}
		known := slices.Concat(slices.Sorted(maps.Keys(enabled)), defaults)
		for point, set := range pluginSets(profile) {
			for j, plugin := range set.Disabled {
				if plugin.Name != "*" && !slices.Contains(known, plugin.Name) {
					warnings = append(
						warnings,
						fmt.Sprintf("profiles[%d].plugins.%s.disabled[%d]: plugin %s is not enabled: nothing is disabled%s",
							i, point, j, plugin.Name, format.Suggestion(plugin.Name, known)),
					)
				}
			}
		}
		for j, plugin := range profile.PluginConfig {
			if !enabled[plugin.Name] {
				warnings = append(
					warnings,
					fmt.Sprintf("profiles[%d].pluginConfig[%d]: plugin %s is not enabled: its arguments have no effect", i, j, plugin.Name),
				)
			}
		}
	}
	return append(warnings, zeroWeights(text)...)
}

// defaultPlugins returns the names of the plugins of the default profile.
func defaultPlugins() (names []string) {
	cfg, _ := Decode("", []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")) // which is valid
	for _, set := range pluginSets(cfg.Profiles[0]) {
		for _, plugin := range set.Enabled {
			names = append(names, plugin.Name)
		}
	}
	return names
}

// zeroWeights returns a warning for each plugin whose weight is 0 in the text of a configuration: kube-scheduler takes 0 as 1, and the
// decoded configuration has 0 for plugins without a weight, too.
func zeroWeights(text []byte) (warnings []string) {
	var cfg struct {
		Profiles []struct {
			Plugins map[string]struct {
				Enabled []configv1.Plugin `json:"enabled"`
			} `json:"plugins"`
		} `json:"profiles"`
	}
	_ = yaml.Unmarshal(text, &cfg) // the text was decoded before
	for i, profile := range cfg.Profiles {
		for _, point := range slices.Sorted(maps.Keys(profile.Plugins)) {
			for j, plugin := range profile.Plugins[point].Enabled {
				if plugin.Weight != nil && *plugin.Weight == 0 {
					warnings = append(warnings, fmt.Sprintf("profiles[%d].plugins.%s.enabled[%d].weight: 0 counts as 1: list %s in "+
						"plugins.score.disabled to switch its score off", i, point, j, plugin.Name))
				}
			}
		}
	}
	return warnings
}
