package config

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// Load reads a KubeSchedulerConfiguration of v1 or of a legacy version from a file, with all defaults.
// Unlike kube-scheduler it also validates the arguments of Plimsoll's plugins, before anything is
// started. Errors name the file and the field.
func Load(file string) (*internalconfig.KubeSchedulerConfiguration, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Decode(file, raw)
}

// Decode is Load for the content of a file.
func Decode(file string, raw []byte) (*internalconfig.KubeSchedulerConfiguration, error) {
	obj, version, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	cfg, ok := obj.(*internalconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s: want a KubeSchedulerConfiguration, got %s", file, version)
	}
	cfg.APIVersion = version.GroupVersion().String()
	if err := validate(cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cfg, nil
}

func validate(cfg *internalconfig.KubeSchedulerConfiguration) error {
	for i, profile := range cfg.Profiles {
		for j, plugin := range profile.PluginConfig {
			args, ok := plugin.Args.(interface{ Validate() error })
			if !ok {
				continue
			}
			if err := args.Validate(); err != nil {
				path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
				return fmt.Errorf("%s of %s: %w", path, plugin.Name, err)
			}
		}
	}
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return err
	}
	return nil
}
