package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
)

// Helm is the version of Helm in the module tools/helm, built for tests of the chart.
type Helm struct {
	// Chart is the folder of the project's chart.
	Chart string
	// Program is the path of the program.
	Program string
	// home is the folder of its cache, configuration and data.
	home string
}

// BuildHelm builds Helm, unless Go has cached it, for the project in a folder. Helm keeps its cache,
// configuration and data in the folder home.
func BuildHelm(ctx context.Context, project, home string) (*Helm, error) {
	// -n builds the program and prints its path.
	command := exec.CommandContext(ctx, "go", "tool", "-modfile="+filepath.Join("tools", "helm", "go.mod"), "-n", "helm")
	command.Dir = project
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("building Helm: %w\n%s", err, &stderr)
	}
	return &Helm{Chart: filepath.Join(project, "charts", "plimsoll"), Program: strings.TrimSpace(string(out)), home: home}, nil
}

// Run runs Helm and returns its standard output. An error contains all output.
func (h *Helm) Run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, h.Program, args...)
	for _, folder := range []string{"CACHE", "CONFIG", "DATA"} {
		command.Env = append(command.Env, "HELM_"+folder+"_HOME="+filepath.Join(h.home, strings.ToLower(folder)))
	}
	command.Env = append(os.Environ(), command.Env...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %s: %w: %s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// Template returns the objects of a release plimsoll in the namespace plimsoll-system. It takes further
// arguments such as --set.
func (h *Helm) Template(ctx context.Context, args ...string) ([]*unstructured.Unstructured, error) {
	out, err := h.Run(ctx, append([]string{"template", "plimsoll", h.Chart, "--namespace=plimsoll-system"}, args...)...)
	if err != nil {
		return nil, err
	}
	return ObjectsOf(out)
}

// ObjectsOf returns the objects in YAML documents.
func ObjectsOf(text string) (objects []*unstructured.Unstructured, err error) {
	err = manifest.Files([]string{"-"}, strings.NewReader(text))(func(where string, document []byte) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return fmt.Errorf("%s: %w\n%s", where, err, document)
		}
		objects = append(objects, object)
		return nil
	})
	return objects, err
}
