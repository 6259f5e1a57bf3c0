// Package karpenter builds and runs Karpenter with its simulated provider (kwok) for tests and experiments.
// The module test/karpenter in the project's folder defines its version.
package karpenter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
)

// Source is the source of Karpenter.
type Source struct {
	// tools is the folder of the module that defines the version, module the folder of Karpenter's
	// module.
	tools, module string
}

// Find finds the source from a folder in the project and downloads it if necessary.
func Find(ctx context.Context, from string) (*Source, error) {
	folder, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	for {
		s := &Source{tools: filepath.Join(folder, "test", "karpenter")}
		if _, err := os.Stat(filepath.Join(s.tools, "go.mod")); err == nil {
			return s, s.download(ctx)
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return nil, errors.New(
				"Karpenter is built from the folder test/karpenter of the project: run the command in the project's folder")
		}
		folder = parent
	}
}

// download sets the folder of Karpenter's module.
func (s *Source) download(ctx context.Context) error {
	if _, err := s.goTool(ctx, "mod", "download", "sigs.k8s.io/karpenter"); err != nil {
		return fmt.Errorf("downloading Karpenter: %w", err)
	}
	out, err := s.goTool(ctx, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter")
	if err != nil {
		return fmt.Errorf("finding Karpenter: %w", err)
	}
	s.module = strings.TrimSpace(out)
	return nil
}

// goTool runs the go command in the folder of the module and returns its standard output. Errors contain the standard error.
func (s *Source) goTool(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = s.tools
	out, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return string(out), err
}

// BufferCRD returns the file of Karpenter's CRD of CapacityBuffers.
func (s *Source) BufferCRD() string {
	return filepath.Join(s.module, "kwok", "charts", "crds", "autoscaling.x-k8s.io_capacitybuffers.yaml")
}

// CRDs returns the files of all CRDs that Karpenter needs, including BufferCRD.
func (s *Source) CRDs() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.module, "kwok", "charts", "crds", "*.yaml"))
	if err != nil {
		return nil, err
	}
	return append(files, filepath.Join(s.module, "kwok", "apis", "crds", "karpenter.kwok.sh_kwoknodeclasses.yaml")), nil
}

// Build builds the program. It takes about 2 minutes the first time.
func (s *Source) Build(ctx context.Context, program string) error {
	if _, err := s.goTool(ctx, "build", "-ldflags=-s -w", "-o", program, "sigs.k8s.io/karpenter/kwok"); err != nil {
		return fmt.Errorf("building Karpenter: %w", err)
	}
	return nil
}

// Options configure Karpenter.
type Options struct {
	// Program is the path of the program that Build has built.
	Program    string
	Kubeconfig string
	// Namespace must exist.
	Namespace string
	// InstanceTypes is a file with the instance types. Default: the built-in instance types.
	InstanceTypes string
	// Log receives the output.
	Log io.Writer
}

// Start starts Karpenter with CapacityBuffers enabled. It listens on free ports of all addresses: it has
// no option for the address.
func Start(options Options) (*subprocess.Process, error) {
	command := exec.Command(options.Program)
	command.Env = append(os.Environ(),
		"KUBECONFIG="+options.Kubeconfig, "DISABLE_LEADER_ELECTION=true", "FEATURE_GATES=CapacityBuffer=true",
		"BATCH_IDLE_DURATION=200ms", "BATCH_MAX_DURATION=1s", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0",
		"SYSTEM_NAMESPACE="+options.Namespace, "KARPENTER_SERVICE=karpenter",
	)
	if options.InstanceTypes != "" {
		command.Env = append(command.Env, "INSTANCE_TYPES_FILE_PATH="+options.InstanceTypes)
	}
	command.Stdout, command.Stderr = options.Log, options.Log
	return subprocess.Start(command)
}
