package slack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// planOf returns the output of plimsoll slack plan for the manifests of a cluster and of a policy.
func planOf(t *testing.T, cluster, policy string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"cluster.yaml": cluster, "policy.yaml": policy} {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	var out strings.Builder
	cmd := NewCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"plan", "-f", filepath.Join(folder, "cluster.yaml"), "--policy", filepath.Join(folder, "policy.yaml")})
	must.Succeed(t, cmd.Execute())
	return out.String()
}

// TestPlanOfMirrorsAndDevices checks the plan of a file with an annotated Job and of a policy with devices: 50% of 3 pods with 2
// devices are 2 placeholders.
func TestPlanOfMirrorsAndDevices(t *testing.T) {
	const pod = "{spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}"
	cluster := `
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110", nvidia.com/gpu: "8"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml, annotations: {plimsoll.dev/slack: "4"}}
spec: {template: ` + pod + `}
`
	for _, name := range []string{"a", "b", "c"} {
		cluster += "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {nodeName: node-1, containers: [{name: c, " +
			"resources: {requests: {cpu: 3, memory: 2Gi}, limits: {nvidia.com/gpu: 2}}}]}}\n"
	}
	const policy = `
apiVersion: plimsoll.dev/v1alpha1
kind: ResourceSlack
metadata: {name: gpus}
spec: {minRate: 50%, pool: {devices: [nvidia.com/gpu]}, mirrors: {namespaceSelector: {}}}
`
	out := planOf(t, cluster, policy)
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := `gpus
AMOUNT COUNT CPU MEMORY
base 9 6Gi
target 4.5 3Gi
with 2 nvidia.com/gpu 2 3 2Gi
like Job ml/train 4 1 1Gi
total 10 8Gi`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
