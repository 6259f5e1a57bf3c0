package slack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planOf returns the output of plimsoll slack plan for the manifests of a cluster and of a policy.
func planOf(t *testing.T, cluster, policy string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"cluster.yaml": cluster, "policy.yaml": policy} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	cmd := NewCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"plan", "-f", filepath.Join(folder, "cluster.yaml"), "--policy", filepath.Join(folder, "policy.yaml")})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPlanOfGangsAndDevices checks the plan of a file with a JobSet and of a policy with devices: 50% of 3 pods with 2 devices are 2
// placeholders, and the group of the JobSet is 1 + 4 pods.
func TestPlanOfGangsAndDevices(t *testing.T) {
	const pod = "{spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}"
	cluster := `
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110", nvidia.com/gpu: "8"}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: ml, annotations: {plimsoll.dev/slack: "1"}}
spec:
  replicatedJobs:
  - {name: driver, template: {spec: {template: ` + pod + `}}}
  - {name: workers, replicas: 2, template: {spec: {parallelism: 2, template: ` + pod + `}}}
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
like JobSet ml/train driver 1 1 1Gi
like JobSet ml/train workers 4 1 1Gi
total 11 9Gi`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// TestPlanOfPodGroups checks the plan of a file with a PodGroup of 3 pods of 1 CPU, of which one is pending, and with a PodGroup of
// Kubernetes that has a pod too few.
func TestPlanOfPodGroups(t *testing.T) {
	cluster := `
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train, namespace: ml, annotations: {plimsoll.dev/slack: "2"}}
spec: {minMember: 3}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train, namespace: ml, annotations: {plimsoll.dev/slack: "1"}}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
`
	for i, spec := range []string{"nodeName: node-1, ", "nodeName: node-1, ", "", "schedulingGroup: {podGroupName: train}, "} {
		cluster += fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: a%d, namespace: ml, "+
			"labels: {scheduling.x-k8s.io/pod-group: train}}, spec: {%scontainers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}\n", i, spec)
	}
	const policy = `
apiVersion: plimsoll.dev/v1alpha1
kind: ResourceSlack
metadata: {name: general}
spec: {minRate: "0", coverBiggestPod: false, mirrors: {namespaceSelector: {}}}
`
	out := planOf(t, cluster, policy)
	got := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"like PodGroup ml/train ", " 6 1 1Gi total 6 6Gi", "PodGroup ml/train: found 1 pod: must be at least 2, its minCount"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
}
