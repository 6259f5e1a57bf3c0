package plimsoll

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// workloadHub has a hub of three clusters, two with a ClusterCapacity, and placements that name workloads in all ways. Texts with
// "private" are names, and texts with "hidden" are in fields that no snapshot has.
const workloadHub = `
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: private-set},
 spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}}
---
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: private-set, namespace: private-team},
 spec: {clusterSet: private-set}}
---
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: private-a}, spec: {hubAcceptsClient: true}}
---
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: private-c}, spec: {hubAcceptsClient: true}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: private-b, annotations: {plimsoll.dev/capacity-limit: '{"cpu": "40"}'}}
spec: {hubAcceptsClient: true}
---
apiVersion: plimsoll.dev/v1alpha1
kind: ClusterCapacity
metadata: {name: plimsoll, namespace: private-a}
status:
  cluster: private-a
  observedAt: "2026-11-21T12:00:00Z"
  nodes: 8
  classes:
  - {labels: {private-pool: private-x, private-generation: "7", topology.kubernetes.io/zone: private-1}, variousLabels: [private-rack]}
  - labels: {private-pool: private-x, private-generation: "3", topology.kubernetes.io/zone: private-2}
    taints: [{key: private-dedicated, value: private-ml, effect: NoSchedule}]
  groups:
  - {class: 0, nodes: 4, free: {cpu: "8", memory: 32Gi, pods: "100"}, slack: {cpu: "1"}}
  - {class: 1, nodes: 4, free: {cpu: "12", memory: 32Gi, pods: "100", example.com/gpu: "1"}}
  hostPorts: [{port: 8080, protocol: TCP, nodes: 1}]
  scaleUp:
  - {pool: private-pool, source: Karpenter, class: 0, free: {cpu: "8", memory: 32Gi, pods: "100"}, maxNodes: 5, bootSeconds: 60, pricePerHour: "0.5"}
  quotas: [{namespace: private-team, left: {cpu: "60"}}]
  recent: [{namespace: private-team, name: private-web, pods: 2}, {namespace: private-team, name: private-work, pods: 3}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: ClusterCapacity
metadata: {name: plimsoll, namespace: private-b}
status:
  cluster: private-b
  observedAt: "2026-11-21T12:00:00Z"
  nodes: 5
  classes: [{labels: {private-pool: private-x, private-generation: "9"}}]
  groups: [{class: 0, nodes: 5, free: {cpu: "20", memory: 32Gi, pods: "100"}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: private-web, namespace: private-team}
spec:
  replicas: 3
  template:
    metadata: {labels: {private-app: private-web}}
    spec:
      nodeSelector: {private-pool: private-x}
      tolerations: [{key: private-dedicated, value: private-ml}]
      topologySpreadConstraints:
      - {topologyKey: topology.kubernetes.io/zone, maxSkew: 6, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {private-app: private-web}}}
      containers:
      - {name: private, image: private, env: [{name: PASSWORD, value: hidden}], resources: {requests: {cpu: "2"}}}
---
{apiVersion: v1, kind: PodTemplate, metadata: {name: private-template, namespace: private-team},
 template: {spec: {containers: [{name: private, ports: [{hostPort: 8080}], resources: {requests: {cpu: "1"}}}]}}}
---
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: private-manifests, namespace: private-team}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: Secret, metadata: {name: private-hidden, namespace: private-team}, data: {password: hidden}}
    - apiVersion: batch/v1
      kind: Job
      metadata: {name: private-work, namespace: private-team}
      spec: {parallelism: 2, template: {spec: {containers: [{name: private, args: [hidden], resources: {requests: {cpu: "3"}}}]}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: private-deployment, namespace: private-team}
spec:
  workload: {ref: {kind: Deployment, name: private-web}}
  numberOfClusters: 1
  prioritizerPolicy: {mode: Exact, configurations: [{name: FitReplicas}, {name: FitWait}, {name: FitCost}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata:
  name: private-deployment-decision-1
  namespace: private-team
  labels: {cluster.open-cluster-management.io/placement: private-deployment}
  annotations: {plimsoll.dev/replicas: '{"private-a": {"replicas": 3, "since": 1795262370}}'}
status: {decisions: [{clusterName: private-a, reason: ""}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: private-podtemplate, namespace: private-team}
spec:
  workload: {ref: {kind: PodTemplate, name: private-template}, replicas: 9, divide: true, requireFit: true}
  prioritizerPolicy: {configurations: [{name: FitReplicas}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: private-manifestwork, namespace: private-team}
spec:
  workload: {ref: {kind: ManifestWork, name: private-manifests}, replicas: 4}
  prioritizerPolicy: {configurations: [{name: FitReplicas}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: private-template
  namespace: private-team
  annotations:
    plimsoll.dev/workload: '{"replicas": 5, "template": {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchExpressions": [{"key": "private-generation", "operator": "Gt", "values": ["5"]}]}]}}},
      "containers": [{"name": "private", "command": ["hidden"], "resources": {"requests": {"cpu": "6"}}}]}}}'
spec:
  prioritizerPolicy: {configurations: [{name: FitReplicas}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: private-inline, namespace: private-team}
spec:
  workload:
    requireFit: true
    template:
      kind: ManifestWork
      spec: {workload: {manifests: [{kind: Pod, spec: {containers: [{name: private, resources: {requests: {example.com/gpu: "1"}}}]}}]}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: private-typo, namespace: private-team, annotations: {plimsoll.dev/workload: '{"private": "private"}'}}
spec: {}
---
{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: PlacementDecision, metadata: {name: private-typo-decision-1, namespace: private-team,
 labels: {cluster.open-cluster-management.io/placement: private-typo}}, status: {decisions: [{clusterName: private-c, reason: ""}]}}
---
# Its changed spec matches no cluster: the decisions are kept.
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: private-changed, namespace: private-team, generation: 2}
spec: {predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {private-label: private}}}}]}
status: {conditions: [{type: PlacementSatisfied, status: "True", reason: AllDecisionsScheduled, observedGeneration: 1, message: hidden}]}
---
{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: PlacementDecision, metadata: {name: private-changed-decision-1,
 namespace: private-team, labels: {cluster.open-cluster-management.io/placement: private-changed}},
 status: {decisions: [{clusterName: private-b, reason: ""}]}}
`

// TestWorkloadsOverSnapshots checks that placements that name workloads have the same decisions, scores and replicas over a hub, over its
// snapshot and, except for names, over its redacted snapshot; and that plimsoll placement fit prints the same for the hub and the snapshot.
func TestWorkloadsOverSnapshots(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	folder := t.TempDir()
	hub := filepath.Join(folder, "hub.yaml")
	must.Succeed(t, os.WriteFile(hub, []byte(workloadHub), 0o600))
	plain, _, err := recording.ReadSnapshot(now, manifest.Files([]string{hub}, nil))
	must.Succeed(t, err)
	redacted, err := plain.Redact([]byte("key"))
	must.Succeed(t, err)
	want := ranked(t, decide(t, "--now", now.Format(time.RFC3339), "-f", hub))
	got := strings.Join(want, "\n")
	if len(want) != 7 || !strings.Contains(got, "[2]: Misconfigured") || !strings.Contains(got, "[1]: MatchesNothing") {
		t.Fatalf("got %s", got)
	}
	for name, s := range map[string]*recording.Recording{"plain": plain, "redacted": redacted} {
		path := filepath.Join(folder, name)
		must.Succeed(t, (base.NewFile{Path: path, Mode: 0o600}).Write(s.Write))
		if diff := cmp.Diff(want, ranked(t, decide(t, "--recording", path))); diff != "" {
			t.Errorf("%s: -hub +snapshot\n%s", name, diff)
		}
		content := ""
		for _, object := range s.Objects {
			content += string(object.JSON) + "\n"
		}
		if strings.Contains(content, "hidden") {
			t.Errorf("%s: has secrets:\n%s", name, content)
		}
		if name == "redacted" && strings.Contains(content, "private") {
			t.Errorf("has names:\n%s", content)
		}
	}
	pod := filepath.Join(folder, "pod.yaml")
	const workload = `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: "5"}}}]}}`
	must.Succeed(t, os.WriteFile(pod, []byte(workload), 0o600))
	fit := func(args ...string) string {
		return string(output(t, append([]string{"placement", "fit", "-f", pod}, args...)...))
	}
	if diff := cmp.Diff(fit("--clusters", hub), fit("--recording", filepath.Join(folder, "plain"))); diff != "" {
		t.Errorf("-hub +snapshot\n%s", diff)
	}
	table := string(output(t, "placement", "decide", "-f", hub, "--now", now.Format(time.RFC3339)))
	if !strings.Contains(table, "private-b            -300               -100             no data      no data\n") {
		t.Errorf("got\n%s", table)
	}
	summary := string(output(t, "snapshot", "-f", hub, "-o", filepath.Join(folder, "s.ndjson.gz"), "--redact"))
	if !strings.HasSuffix(summary, ": 0 nodes, 0 pods, no load; names are pseudonyms\n") {
		t.Errorf("got %s", summary)
	}
}

// TestMissingCapacities checks the warning about an input without ClusterCapacities whose placements name workloads.
func TestMissingCapacities(t *testing.T) {
	hub := filepath.Join(t.TempDir(), "hub.yaml")
	text, _, _ := strings.Cut(workloadHub, "---\napiVersion: plimsoll.dev/v1alpha1\n")
	_, workloads, _ := strings.Cut(workloadHub, "---\napiVersion: apps/v1\n")
	must.Succeed(t, os.WriteFile(hub, []byte(text+"---\napiVersion: apps/v1\n"+workloads), 0o600))
	const want = "the input has no ClusterCapacities: how many replicas of workloads fit the clusters is unknown"
	if got := string(output(t, "placement", "decide", "-f", hub)); strings.Count(got, want) != 1 {
		t.Errorf("got %s", got)
	}
}

// output returns the output and the warnings of plimsoll. Placements of the input may be misconfigured.
func output(t *testing.T, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	if cmd.SetErr(&out); slices.Contains(args, "json") {
		cmd.SetErr(io.Discard) // warnings
	}
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil && !strings.Contains(err.Error(), " misconfigured: ") {
		t.Fatal(err)
	}
	return out.Bytes()
}
