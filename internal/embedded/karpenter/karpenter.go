// Package karpenter builds and runs a real Karpenter with its simulated
// provider (kwok), for tests and the demo. Its version is that of the module in
// test/karpenter, so the project's folder is needed.
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

// Source is where Karpenter is built from.
type Source struct {
	// tools is the folder of the module that names the version, module that of
	// Karpenter itself.
	tools, module string
}

// ErrNoFolder is that the project's folder is not around.
var ErrNoFolder = errors.New("Karpenter is built from test/karpenter of the project's folder: run this from there")

// Find looks for the source from a folder upwards, and downloads it where it
// is not on this machine yet.
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
			return nil, ErrNoFolder
		}
		folder = parent
	}
}

// download sets the folder of Karpenter's module.
func (s *Source) download(ctx context.Context) error {
	command := exec.CommandContext(ctx, "go", "mod", "download", "sigs.k8s.io/karpenter")
	command.Dir = s.tools
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("downloading Karpenter: %w\n%s", err, out)
	}
	command = exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter")
	command.Dir = s.tools
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("finding Karpenter: %w", err)
	}
	s.module = strings.TrimSpace(string(out))
	return nil
}

// BufferCRD is the file with the CRD of CapacityBuffers as Karpenter brings it.
func (s *Source) BufferCRD() string {
	return filepath.Join(s.module, "kwok", "charts", "crds", "autoscaling.x-k8s.io_capacitybuffers.yaml")
}

// CRDs are the files with all CRDs that Karpenter needs, that one included.
func (s *Source) CRDs() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.module, "kwok", "charts", "crds", "*.yaml"))
	if err != nil {
		return nil, err
	}
	return append(files, filepath.Join(s.module, "kwok", "apis", "crds", "karpenter.kwok.sh_kwoknodeclasses.yaml")), nil
}

// Build builds the program. It takes about 2 minutes the first time.
func (s *Source) Build(ctx context.Context, program string) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", program, "sigs.k8s.io/karpenter/kwok")
	command.Dir = s.tools
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building Karpenter: %w\n%s", err, out)
	}
	return nil
}

// Options say how Karpenter is run.
type Options struct {
	// Program is what Build built.
	Program    string
	Kubeconfig string
	// Namespace must exist.
	Namespace string
	// InstanceTypes is a file with the machines it may choose from; its own ones
	// if left out.
	InstanceTypes string
	// Log is where it writes.
	Log io.Writer
}

// Start starts Karpenter, with buffers turned on. It listens on all addresses,
// which it has no option to change, at ports that the system chooses.
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
