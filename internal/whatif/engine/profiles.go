package engine

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
)

// BuiltInProfiles are the names of the built-in profiles, in the order of the documentation.
var BuiltInProfiles = []string{
	"default", "most-allocated", "limits", "allocatable-least", "allocatable-most", "low-risk", "low-risk+limits", "predicted", "batch",
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
		return NamedConfig{}, fmt.Errorf(
			"%w: must be a file with a KubeSchedulerConfiguration, or one of %s",
			err,
			strings.Join(BuiltInProfiles, ", "),
		)
	}
	return NamedConfig{Name: name, Text: text}, nil
}

// Config decodes the configuration. Errors name the profile and the field.
func (p NamedConfig) Config() (*internalconfig.KubeSchedulerConfiguration, error) {
	return config.Decode(p.Name, p.Text)
}
