package engine

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/plugins"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

// BuiltInProfiles are the names of the built-in profiles, in the order of the documentation.
var BuiltInProfiles = []string{
	"default", "most-allocated", "limits", "allocatable-least", "allocatable-most", "low-risk", "predicted", "packed", "batch",
}

//go:embed ready
var ready embed.FS

// NamedConfig is a named scheduler configuration.
type NamedConfig struct {
	// Name of a built-in profile or of a file.
	Name string `json:"name"`
	// Text is the configuration in YAML.
	Text []byte `json:"text"`
}

// IsBuiltIn reports whether a built-in profile has the name.
func IsBuiltIn(name string) bool { return slices.Contains(BuiltInProfiles, name) }

// ReadConfig returns the built-in profile with the name, or else reads the file with the name.
func ReadConfig(name string) (NamedConfig, error) {
	if IsBuiltIn(name) {
		text, err := ready.ReadFile("ready/" + name + ".yaml")
		return NamedConfig{Name: name, Text: text}, err
	}
	text, err := config.ReadFile(name)
	if err != nil {
		return NamedConfig{}, fmt.Errorf("%w: must be a file with a KubeSchedulerConfiguration, or one of %s%s",
			err, strings.Join(BuiltInProfiles, ", "), format.Suggestion(name, BuiltInProfiles))
	}
	return NamedConfig{Name: name, Text: text}, nil
}

// Config decodes the configuration. Errors name the profile and the field.
func (p NamedConfig) Config() (*internalconfig.KubeSchedulerConfiguration, error) {
	return config.Decode(p.Name, p.Text)
}

// DefaultConfig returns the default profile of kube-scheduler with all plugins of
// Plimsoll at weight 1.
func DefaultConfig() (*internalconfig.KubeSchedulerConfiguration, error) {
	weight := int32(1)
	var score configv1.PluginSet
	for _, plugin := range plugins.All {
		score.Enabled = append(score.Enabled, configv1.Plugin{Name: plugin.Name, Weight: &weight})
	}
	external := &configv1.KubeSchedulerConfiguration{
		Profiles: []configv1.KubeSchedulerProfile{{Plugins: &configv1.Plugins{MultiPoint: score}}},
	}
	scheme.Scheme.Default(external)
	var cfg internalconfig.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(external, &cfg, nil); err != nil {
		return nil, err
	}
	cfg.APIVersion = configv1.SchemeGroupVersion.String()
	return &cfg, nil
}

// withIgnored returns the profiles of a configuration, which ignore the resources that extenders handle as kube-scheduler makes them do.
func withIgnored(cfg *internalconfig.KubeSchedulerConfiguration) []internalconfig.KubeSchedulerProfile {
	var ignored []string
	for _, extender := range cfg.Extenders {
		for _, r := range extender.ManagedResources {
			if r.IgnoredByScheduler {
				ignored = append(ignored, r.Name)
			}
		}
	}
	if len(ignored) == 0 {
		return cfg.Profiles
	}
	profiles := cfg.DeepCopy().Profiles
	for _, args := range fitArgs(profiles) {
		args.IgnoredResources = ignored
	}
	return profiles
}

// fitArgs returns the arguments of NodeResourcesFit in profiles.
func fitArgs(profiles []internalconfig.KubeSchedulerProfile) (all []*internalconfig.NodeResourcesFitArgs) {
	for i := range profiles {
		for _, plugin := range profiles[i].PluginConfig {
			if args, ok := plugin.Args.(*internalconfig.NodeResourcesFitArgs); ok {
				all = append(all, args)
			}
		}
	}
	return all
}

// IgnoredResources returns a function that reports whether a profile of a configuration ignores the requests for an extended resource.
func IgnoredResources(cfg *internalconfig.KubeSchedulerConfiguration) func(v1.ResourceName) bool {
	all := fitArgs(withIgnored(cfg))
	return func(name v1.ResourceName) bool {
		group, _, _ := strings.Cut(string(name), "/")
		return slices.ContainsFunc(all, func(args *internalconfig.NodeResourcesFitArgs) bool {
			return slices.Contains(args.IgnoredResources, string(name)) || slices.Contains(args.IgnoredResourceGroups, group)
		})
	}
}

// Learns reports whether a profile of a configuration learns the usage of workloads.
func Learns(cfg *internalconfig.KubeSchedulerConfiguration) bool {
	return slices.ContainsFunc(cfg.Profiles, func(p internalconfig.KubeSchedulerProfile) bool {
		enabled := slices.Concat(p.Plugins.Score.Enabled, p.Plugins.MultiPoint.Enabled)
		return slices.ContainsFunc(enabled, func(e internalconfig.Plugin) bool { return e.Name == predictedutilization.Name })
	})
}
