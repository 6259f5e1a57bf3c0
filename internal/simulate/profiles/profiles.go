// Package profiles has the built-in scheduler profiles of a what-if, and reads profiles
// from files.
package profiles

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
)

// Names of the built-in profiles, in the order of the documentation.
var Names = []string{
	"default", "most-allocated", "limits", "allocatable-least", "allocatable-most", "low-risk", "low-risk+limits", "predicted", "batch",
}

//go:embed ready
var ready embed.FS

// Profile is a named scheduler configuration.
type Profile struct {
	// Name of a built-in profile or of a file.
	Name string `json:"name"`
	// Text is the configuration in YAML.
	Text []byte `json:"text"`
}

// IsBuiltIn reports whether a name is that of a built-in profile.
func IsBuiltIn(name string) bool { return slices.Contains(Names, name) }

// Read returns the built-in profile of a name, or reads the file of that name.
func Read(name string) (Profile, error) {
	if IsBuiltIn(name) {
		text, err := ready.ReadFile("ready/" + name + ".yaml")
		return Profile{Name: name, Text: text}, err
	}
	text, err := config.ReadFile(name)
	if err != nil {
		return Profile{}, fmt.Errorf("%w: must be a file with a KubeSchedulerConfiguration, or one of %s", err, strings.Join(Names, ", "))
	}
	return Profile{Name: name, Text: text}, nil
}

// Config decodes the configuration. Errors name the profile and the field.
func (p Profile) Config() (*internalconfig.KubeSchedulerConfiguration, error) {
	return config.Decode(p.Name, p.Text)
}
