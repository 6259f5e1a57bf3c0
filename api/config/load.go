package config

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Load reads a KubeSchedulerConfiguration of v1 or of a legacy version from a file, with all defaults.
// Unlike kube-scheduler it also validates the arguments of Plimsoll's plugins, before anything is
// started. Errors name the file and the field.
func Load(file string) (*internalconfig.KubeSchedulerConfiguration, error) {
	raw, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Decode(file, raw)
}

// Kubeconfig returns the path of the kubeconfig in a KubeSchedulerConfiguration, empty for none. It reads nothing else: the defaults of
// the other fields depend on the version of Kubernetes that the process emulates, which can be set later.
func Kubeconfig(file string) (string, error) {
	raw, err := ReadFile(file)
	if err != nil {
		return "", err
	}
	var cfg struct {
		ClientConnection struct {
			Kubeconfig string `json:"kubeconfig"`
		} `json:"clientConnection"`
	}
	if err := yaml.Unmarshal(raw, &cfg); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return cfg.ClientConnection.Kubeconfig, nil
}

// MaxFileBytes is the size of the largest file with a configuration. A ConfigMap has at most 1 MiB.
const MaxFileBytes = 4 << 20

// ReadFile returns the content of a file of at most MaxFileBytes. Errors name the file.
func ReadFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err == nil && len(raw) > MaxFileBytes {
		err = fmt.Errorf("%s: exceeds the limit of %d MiB", name, MaxFileBytes>>20)
	}
	return raw, err
}

// Decode is Load for the content of a file.
func Decode(file string, raw []byte) (*internalconfig.KubeSchedulerConfiguration, error) {
	if err := checkDocuments(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	obj, version, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	cfg, ok := obj.(*internalconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s: found kind %q: must be %s", file, version.Kind, kind)
	}
	cfg.APIVersion = version.GroupVersion().String()
	if err := validate(cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cfg, nil
}

// kind is the kind of configurations.
const kind = "KubeSchedulerConfiguration"

// checkDocuments returns an error unless a file has one object, which has a kind: kube-scheduler reads only the first one, and prints an
// object without a kind.
func checkDocuments(raw []byte) error {
	found, kinds := 0, 0
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))); ; {
		document, err := documents.Read()
		if err != nil {
			break
		}
		var head *metav1.TypeMeta
		if err := yaml.Unmarshal(document, &head); err != nil {
			return err
		}
		if head != nil {
			found++
		}
		if head != nil && head.Kind != "" && head.APIVersion != "" {
			if kinds++; head.Kind != kind {
				return resources.WrongKind(*head, kind+" of "+configv1.SchemeGroupVersion.String())
			}
		}
	}
	switch {
	case found != 1:
		return fmt.Errorf("found %d documents: must be one %s", found, kind)
	case kinds == 0:
		return fmt.Errorf("kind, apiVersion: required: must be %s and %s", kind, configv1.SchemeGroupVersion)
	}
	return nil
}

func validate(cfg *internalconfig.KubeSchedulerConfiguration) error {
	seen := map[string]bool{}
	for i, profile := range cfg.Profiles {
		if name := profile.SchedulerName; seen[name] && name != "" {
			return fmt.Errorf("profiles[%d].schedulerName: found %q twice", i, name)
		}
		seen[profile.SchedulerName] = true
		for point, set := range pluginSets(profile) {
			for j, plugin := range set.Enabled {
				if slices.ContainsFunc(set.Enabled[:j], func(p internalconfig.Plugin) bool { return p.Name == plugin.Name }) {
					return fmt.Errorf("profiles[%d].plugins.%s.enabled: found %s twice", i, point, plugin.Name)
				}
			}
		}
		for j, plugin := range profile.PluginConfig {
			var err error
			switch args := plugin.Args.(type) {
			case interface{ Validate() error }:
				err = args.Validate()
			case *internalconfig.NodeResourcesFitArgs: // kube-scheduler validates them only when the plugin is built
				err = validation.ValidateNodeResourcesFitArgs(nil, args)
			}
			if err != nil {
				path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
				return fmt.Errorf("%s of %s: %w", path, plugin.Name, err)
			}
		}
	}
	return validation.ValidateKubeSchedulerConfiguration(cfg)
}

// pluginSets returns the extension points of a profile by their names.
func pluginSets(profile internalconfig.KubeSchedulerProfile) iter.Seq2[string, internalconfig.PluginSet] {
	return func(yield func(string, internalconfig.PluginSet) bool) {
		if profile.Plugins == nil {
			return
		}
		for point, value := range reflect.ValueOf(*profile.Plugins).Fields() {
			set, ok := reflect.TypeAssert[internalconfig.PluginSet](value)
			if ok && !yield(strings.ToLower(point.Name[:1])+point.Name[1:], set) {
				return
			}
		}
	}
}
