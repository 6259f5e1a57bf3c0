package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWorkloadsWithoutPods checks that workloads without pods are counted, and no others: pods may have their ReplicaSet in the input, or a
// label with its hash; workloads with no replicas and Jobs that have started have none.
func TestWorkloadsWithoutPods(t *testing.T) {
	const nodes = `
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p1, labels: {pod-template-hash: x1}, ownerReferences: [{kind: ReplicaSet, name: hashed-x1, controller: true}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p2, ownerReferences: [{kind: ReplicaSet, name: other, controller: true}]}, spec: {nodeName: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p3, ownerReferences: [{kind: StatefulSet, name: db, controller: true}]}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: other, ownerReferences: [{kind: Deployment, name: owning, controller: true}]}}
---
`
	for text, want := range map[string]string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}":                                      "1 Deployment",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0}}":                 "",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: hashed}}":                                   "",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: owning}}":                                   "",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: owning, namespace: b}}":                     "1 Deployment",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}}":                                      "",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}}":                                     "1 StatefulSet",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web}}":                                       "",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: web}}":                                            "1 Job",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: web}, status: {startTime: 2026-11-21T12:00:00Z}}": "",
	} {
		objects, err := Read([]string{"-"}, strings.NewReader(nodes+text))
		must.Succeed(t, err)
		var missing []string
		if want != "" {
			missing = []string{"No pods are created from the templates of workloads without pods in the input: " + want + "."}
		}
		if diff := cmp.Diff(missing, objects.Missing); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
