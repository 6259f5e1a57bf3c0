package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// elsewhere are the lines of the documentation with kubectl that are not run here,
// and why.
var elsewhere = map[string]string{
	"kubectl apply --server-side -f plimsoll.yaml":                                        "what helm template has printed; TestChart installs it",
	"kubectl create clusterrole node-metrics --verb=list --resource=nodes.metrics.k8s.io": "kubectl asks for the resource, which wants metrics-server; TestMetricsServer gives the same right",
}

// granted is what the documentation takes for granted: objects by the names that it uses.
const granted = `
{apiVersion: v1, kind: List, items: [
{apiVersion: v1, kind: Namespace, metadata: {name: name}},
{apiVersion: v1, kind: Namespace, metadata: {name: namespace}},
{apiVersion: v1, kind: Node, metadata: {name: node}, status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}, capacity: {cpu: "8", memory: 32Gi, pods: "110"}}},
{apiVersion: v1, kind: Pod, metadata: {name: pod, namespace: default}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}},
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 1,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}},
{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: name, namespace: namespace}, spec: {}}]}
`

// Every line of the documentation with kubectl does what it says, with the real
// kubectl on a real API server, on which nothing of Plimsoll is before.
func TestDocumentedKubectl(t *testing.T) {
	t.Parallel()
	commands, err := doccheck.Of("../..", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	known := map[string]bool{}
	for _, command := range commands {
		line := command.Shell
		if command.Inline || known[line] {
			continue
		}
		known[line] = true
		if _, other := elsewhere[line]; !other {
			lines = append(lines, line)
		}
	}
	for line := range elsewhere {
		if !known[line] {
			t.Errorf("the documentation has no %q", line)
		}
	}
	if len(lines) < 15 {
		t.Errorf("%d lines found", len(lines))
	}
	cp, config, _ := startControlPlane(t, controlplane.Options{})
	installCRDs(t, config, buffersCRD(t))
	run := inReadersFolder(t, cp)
	// The pages are for different readers: what one says first is what another
	// takes for granted. So lines are tried until those that are left all fail.
	lines = append(lines, "kubectl apply -f granted.yaml")
	for {
		var failed, said []string
		for _, line := range lines {
			if out, err := run(line); err != nil {
				failed, said = append(failed, line), append(said, line+"\n"+out+err.Error())
			}
		}
		if len(failed) == 0 {
			return
		}
		if len(failed) == len(lines) {
			t.Fatalf("these fail:\n%s", strings.Join(said, "\n"))
		}
		lines = failed
	}
}

// inReadersFolder returns what runs a line in a folder like that of a reader: with
// the project's manifests, files of their own, and kubectl with the plugin in PATH.
func inReadersFolder(t *testing.T, cp *controlplane.ControlPlane) func(line string) (string, error) {
	t.Helper()
	folder, programs := t.TempDir(), t.TempDir()
	if err := program.Build(t.Context(), "../kubectl", filepath.Join(programs, "kubectl"), "."); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plimsoll", "kubectl-plimsoll"} {
		if err := os.Symlink(binaries.plimsoll, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"config", "examples"} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join("../..", name))); err != nil {
			t.Fatal(err)
		}
	}
	for name, is := range map[string]string{
		"scheduler.yaml": "profiles/limits.yaml", "policy.yaml": "slack/policy.yaml", "cluster/cluster.yaml": "slack/cluster.yaml",
		"placement.yaml": "placement/prioritizers/placement.yaml",
	} {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(folder, "examples", is), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, is := range map[string]string{"granted.yaml": granted, "kubeconfig": "of a hub"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(line string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", line)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+folder, "KUBECONFIG="+cp.Kubeconfig)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}
