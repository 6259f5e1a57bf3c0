package manifest

import (
	"strings"
	"testing"

	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// TestPriorities checks that pods have the priority of their class, of the global default, or of their spec, as in an API server.
func TestPriorities(t *testing.T) {
	const input = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 8, memory: 32Gi, pods: 110}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
preemptionPolicy: Never
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
value: 10
globalDefault: true
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}]}
`
	for spec, want := range map[string]struct {
		priority int32
		policy   string
		warnings string
	}{
		"":                          {10, "PreemptLowerPriority", ""},
		"priority: 5, ":             {5, "PreemptLowerPriority", ""},
		"priorityClassName: high, ": {1000, "Never", ""},
		"priorityClassName: system-node-critical, ": {2_000_001_000, "PreemptLowerPriority", ""},
		"priorityClassName: hihg, ": {
			0, "PreemptLowerPriority",
			`spec.priorityClassName of 1 pod: found no PriorityClass "hihg" in the input: the priority is taken as 0; did you mean high?`,
		},
	} {
		objects, err := Read([]string{"-"}, strings.NewReader(strings.Replace(input, "{containers", "{"+spec+"containers", 1)))
		if err != nil {
			t.Fatal(spec, err)
		}
		pod := objects.Pending[0]
		policy := "PreemptLowerPriority"
		if pod.Spec.PreemptionPolicy != nil {
			policy = string(*pod.Spec.PreemptionPolicy)
		}
		if got := corev1helpers.PodPriority(
			pod,
		); got != want.priority || policy != want.policy ||
			strings.Join(objects.Warnings, " ") != want.warnings {
			t.Errorf("%s: priority %d, %s, %q, want %+v", spec, got, policy, objects.Warnings, want)
		}
	}
}
