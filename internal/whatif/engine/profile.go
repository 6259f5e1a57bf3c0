package engine

import (
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/plimsoll-k8s/plimsoll/plugins"
)

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
