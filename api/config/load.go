package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"
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
	obj, version, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	cfg, ok := obj.(*internalconfig.KubeSchedulerConfiguration)
	switch {
	case err == nil && !ok, runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err):
		return nil, fmt.Errorf("%s: %w", file, kindError(raw))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, explain(err))
	}
	cfg.APIVersion = version.GroupVersion().String()
	if err := validate(cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cfg, nil
}

// unknownArgument matches the error for an argument that a plugin does not have.
var unknownArgument = regexp.MustCompile(`\.(profiles\[\d+\]\.pluginConfig\[\d+\]): .* plugin (\w+): .*unknown field "(\w+)"$`)

// wrongType matches the error for a field that has a value of another type: the value, the field and the type.
var wrongType = regexp.MustCompile(`json: cannot unmarshal (\w+(?: \S+)?) into Go struct field \w+\.(\S+) of type (\S+)`)

// goTypes are the types of fields in words.
var goTypes = strings.NewReplacer("int32", "an integer of 32 bits", "int64", "an integer", "float64", "a number", "bool", "true or false",
	"string", "a string")

// explain returns an error that lists the arguments of a plugin if the argument is unknown, and names the field, the value and what it
// may be if it has another type.
func explain(err error) error {
	found := unknownArgument.FindStringSubmatch(err.Error())
	if found == nil {
		if match := wrongType.FindStringSubmatch(err.Error()); match != nil {
			explained := fmt.Sprintf("%s: found a value of type %s: must be %s", match[2], match[1], goTypes.Replace(match[3]))
			return errors.New(strings.Replace(err.Error(), match[0], explained, 1))
		}
		return err
	}
	args, unknown := scheme.Scheme.New(configv1.SchemeGroupVersion.WithKind(found[2] + "Args"))
	if unknown != nil {
		return err
	}
	var names []string
	for field := range reflect.TypeOf(args).Elem().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return fmt.Errorf("%s.args of %s: unknown argument %q: must be one of %s", found[1], found[2], found[3], strings.Join(names, ", "))
}

// kindError returns the error for an object that is no KubeSchedulerConfiguration.
func kindError(raw []byte) error {
	var found metav1.TypeMeta
	if err := yaml.Unmarshal(raw, &found); err != nil {
		return err
	}
	return fmt.Errorf(
		"kind: invalid value %q of apiVersion %q: must be KubeSchedulerConfiguration of %s, or of the legacy v1beta3 or v1beta2",
		found.Kind,
		found.APIVersion,
		configv1.SchemeGroupVersion,
	)
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
	return validation.ValidateKubeSchedulerConfiguration(cfg)
}
