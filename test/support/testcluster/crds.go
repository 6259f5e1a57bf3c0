package testcluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/karpenter"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// InstallCRDs installs the CRDs in files and waits until they are served.
func InstallCRDs(t *testing.T, config *rest.Config, files ...string) {
	t.Helper()
	var manifests [][]byte
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must.Succeed(t, err)
		manifests = append(manifests, raw)
	}
	must.Succeed(t, controlplane.InstallCRDs(t.Context(), config, manifests...))
}

// ProjectCRDs returns the files of the project's CRDs.
func ProjectCRDs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(program.File(t, "config/crd/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// KarpenterSource returns the source of Karpenter.
func KarpenterSource(t *testing.T) *karpenter.Source {
	t.Helper()
	source, err := karpenter.Find(t.Context(), program.File(t, "."))
	must.Succeed(t, err)
	return source
}

// ModuleFolder returns the folder of a module in the version that the project requires.
func ModuleFolder(t *testing.T, module string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", module)
	list.Dir = program.File(t, ".")
	out, err := list.Output()
	must.Succeed(t, err)
	return strings.TrimSpace(string(out))
}
