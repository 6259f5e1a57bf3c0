// Package profiles has the configurations of the scheduler that a what-if can
// compare without a file: the ready-made ones.
package profiles

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
)

// Names of the ready-made profiles, in the order of the documentation.
var Names = []string{"default", "most-allocated", "limits", "allocatable-least", "allocatable-most", "low-risk", "low-risk+limits"}

//go:embed ready
var ready embed.FS

// Profile is a configuration, and what people call it.
type Profile struct {
	// Name is the name of a ready-made profile, or of a file.
	Name string `json:"name"`
	// Text is the configuration itself.
	Text []byte `json:"text"`
}

// Read returns the ready-made profile of a name, or else what a file says.
func Read(name string) (Profile, error) {
	if slices.Contains(Names, name) {
		text, err := ready.ReadFile("ready/" + name + ".yaml")
		return Profile{Name: name, Text: text}, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return Profile{}, fmt.Errorf("%w; want a file with a KubeSchedulerConfiguration, or one of %s", err, strings.Join(Names, ", "))
	}
	return Profile{Name: name, Text: text}, nil
}

// Config returns what the profile says. Errors name it and the field.
func (p Profile) Config() (*internalconfig.KubeSchedulerConfiguration, error) {
	return config.Decode(p.Name, p.Text)
}
