//go:build foreign

package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// skipped are the command lines with kubectl in the documentation that are not run here, with the
// reasons.
var skipped = map[string]string{
	"kubectl port-forward -n monitoring service/prometheus 9090": "it runs until it is stopped, and requires a Prometheus " +
		"in the cluster; TestRealPrometheus records from a Prometheus server",
	"kubectl krew install --manifest-url=https://github.com/plimsoll-k8s/plimsoll/releases/download/$VERSION/plimsoll.yaml": "it requires " +
		"krew and a release",
	"kubectl apply --server-side -f plimsoll.yaml": "the output of helm template; " +
		"TestChart installs it",
	"kubectl create clusterrole node-metrics --verb=list --resource=nodes.metrics.k8s.io": "the resource requires " +
		"metrics-server; TestMetricsServer creates the same right",
	"kubectl create clusterrole pod-metrics --verb=list --resource=pods.metrics.k8s.io": "the resource requires " +
		"metrics-server; TestHistoryRights checks the same right of the chart",
	"kubectl port-forward -n plimsoll-system service/plimsoll-shadow 7654": "it requires a running pod; TestShadowCommand reads the page",
}

// assumed are objects that the documentation assumes, by the names that it uses.
const assumed = `
{apiVersion: v1, kind: List, items: [
{apiVersion: v1, kind: Namespace, metadata: {name: name}},
{apiVersion: v1, kind: Namespace, metadata: {name: namespace}},
{apiVersion: v1, kind: Node, metadata: {name: node}, status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}, capacity: {cpu: "8", memory: 32Gi, pods: "110"}}},
{apiVersion: v1, kind: Pod, metadata: {name: pod, namespace: default}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}},
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 1,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}},
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: cluster2}, spec: {hubAcceptsClient: true}},
{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: name, namespace: namespace}, spec: {}}]}
`

// TestDocumentedKubectl checks that all command lines with kubectl in the documentation succeed on an API
// server without Plimsoll.
func TestDocumentedKubectl(t *testing.T) {
	commands, err := doccheck.CommandsOf("../../..", "kubectl")
	must.Succeed(t, err)
	var lines []string
	known := map[string]bool{}
	for _, command := range commands {
		line := command.Shell
		if command.Inline || known[line] {
			continue
		}
		known[line] = true
		if _, skip := skipped[line]; !skip {
			lines = append(lines, line)
		}
	}
	for line := range skipped {
		if !known[line] {
			t.Errorf("the documentation does not contain %q", line)
		}
	}
	if len(lines) < 15 {
		t.Errorf("found %d lines", len(lines))
	}
	// The second CRD is from the chart of a hub.
	cp, _, _ := testcluster.StartControlPlane(t, testcluster.BuffersCRD(t), "../../../config/crd/plimsoll.dev_clustercapacities.yaml")
	run := readerShell(t, cp)
	// Lines depend on other lines, also on other pages: repeat the lines that fail until all
	// remaining lines fail.
	lines = append(lines, "kubectl apply -f assumed.yaml")
	for {
		var failed, messages []string
		for _, line := range lines {
			if out, err := run(line); err != nil {
				failed, messages = append(failed, line), append(messages, line+"\n"+out+err.Error())
			}
		}
		if len(failed) == 0 {
			return
		}
		if len(failed) == len(lines) {
			t.Fatalf("these lines fail:\n%s", strings.Join(messages, "\n"))
		}
		lines = failed
	}
}

// readerShell returns a function that runs a line in a directory as readers have it: with the
// manifests of the project, files of their own, and kubectl with the plugin in PATH.
func readerShell(t *testing.T, cp *controlplane.ControlPlane) func(line string) (string, error) {
	t.Helper()
	folder, programs := t.TempDir(), filepath.Dir(kubectl(t))
	for _, name := range []string{"config", "examples"} {
		must.Succeed(t, os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join("../../..", name))))
	}
	for name, source := range map[string]string{
		"scheduler.yaml": "profiles/limits.yaml", "policy.yaml": "slack/policy.yaml", "cluster/cluster.yaml": "slack/cluster.yaml",
		"placement.yaml": "placement/prioritizers/placement.yaml",
	} {
		must.Succeed(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o700))
		must.Succeed(t, os.Link(filepath.Join(folder, "examples", source), filepath.Join(folder, name)))
	}
	for name, content := range map[string]string{"assumed.yaml": assumed, "kubeconfig": "of a hub"} {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return func(line string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", line)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+folder, "KUBECONFIG="+cp.Kubeconfig)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}
